//! Tests of memory placement and its cost.

use super::guest::{DISTANCES, LOCAL_NS, NODE_BANDWIDTH, boot, booted};
use super::lab::{assert_near, is_long_or_not_run, not_run, rounds};

/// Returns the latency from a cpu of node 0 to a node, in ns.
fn from_node_0(node: usize) -> f64 {
    LOCAL_NS * f64::from(DISTANCES[0][node]) / 10.0
}

#[test]
fn latency_finds_the_charged_distance_between_every_two_nodes() {
    let Some(booted) = booted() else { return };
    let medians = booted.answer.medians("matrix");
    assert_eq!(medians.len(), 16, "{medians:?}");
    for (&(cpu, node), &median) in &medians {
        let (from, to) = (cpu as usize / 2, node as usize);
        let distance = f64::from(DISTANCES[from][to]);
        let what = format!("cpu {cpu} to node {node}");
        assert_near(median, LOCAL_NS * distance / 10.0, 0.02, &what);
        let local = medians[&(cpu, cpu / 2)];
        assert_near(median / local, distance / 10.0, 0.01, &format!("{what} by its own"));
    }
}

#[test]
fn a_cell_has_the_same_median_in_every_plan_that_has_it() {
    let Some(booted) = booted() else { return };
    let (all, again) = (booted.answer.medians("matrix"), booted.answer.medians("again"));
    assert_eq!(again.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3].map(|node| (6, node)));
    for (cell, median) in &again {
        // Interrupts come at other moments of a walk: up to 0.11 % was seen.
        assert_near(*median, all[cell], 0.005, &format!("{cell:?}"));
    }
}

#[test]
fn numactl_binds_memory_to_the_node_and_its_cost() {
    let Some(booted) = booted() else { return };
    for node in 0..4 {
        let found = rounds(&booted.answer.part(&format!("numactl {node}")));
        let (pages, ns) = &found[0];
        assert_eq!(pages.keys().copied().collect::<Vec<_>>(), [node]);
        assert_near(*ns, from_node_0(node as usize), 0.02, &format!("node {node}"));
    }
}

#[test]
fn policies_place_memory_as_they_promise() {
    let Some(booted) = booted() else { return };
    // First touch by cpu 6 of node 3; then the nodes named in policies.
    for (policy, node) in [("first touch", 3), ("bind", 2), ("preferred", 1)] {
        let (pages, ns) = &rounds(&booted.answer.part(policy))[0];
        assert_eq!(pages.clone().into_iter().collect::<Vec<_>>(), [(node, 512)], "{policy}");
        assert_near(*ns, from_node_0(node as usize), 0.02, policy);
    }
    let (pages, ns) = &rounds(&booted.answer.part("interleave"))[0];
    assert_eq!(pages.values().copied().collect::<Vec<_>>(), [128; 4], "{pages:?}");
    // A random walk makes the same number of loads to each node.
    assert_near(*ns, (0..4).map(from_node_0).sum::<f64>() / 4.0, 0.02, "interleave");
}

#[test]
fn weighted_interleave_gives_each_node_its_weight_in_pages() {
    let Some(booted) = booted() else { return };
    let part = booted.answer.part("weights");
    if part[0].starts_with("none in Linux") {
        not_run(&format!("weighted interleave: {}; NUMALAB_LONG=1 boots a newer one", part[0]));
        return;
    }
    assert_weights(&part);
}

fn assert_weights(part: &[&str]) {
    let (pages, ns) = &rounds(part)[0];
    assert_eq!(pages.clone().into_iter().collect::<Vec<_>>(), [(0, 384), (3, 128)]);
    assert_near(*ns, (3.0 * from_node_0(0) + from_node_0(3)) / 4.0, 0.02, "weights");
}

#[test]
fn the_kernel_of_the_backports_has_weights() {
    if !is_long_or_not_run("a boot of the backports' kernel") {
        return;
    }
    let Some(booted) = boot(&["--kernel", "backports"]) else { return };
    assert_weights(&booted.answer.part("weights"));
}

#[test]
fn huge_pages_are_two_where_small_ones_are_a_thousand_at_the_same_cost_of_memory() {
    let Some(booted) = booted() else { return };
    let (pages, ns) = &rounds(&booted.answer.part("huge"))[0];
    assert_eq!(pages.clone().into_iter().collect::<Vec<_>>(), [(2, 2)]);
    // The emulator charges accesses, not page walks.
    assert_near(*ns, from_node_0(2), 0.02, "huge pages");
}

#[test]
fn numa_balancing_brings_memory_to_its_user_and_without_it_memory_stays() {
    let Some(booted) = booted() else { return };
    for (pages, ns) in rounds(&booted.answer.part("stays")) {
        assert_eq!(pages.into_iter().collect::<Vec<_>>(), [(3, 512)]);
        assert_near(ns, from_node_0(3), 0.02, "without balancing");
    }
    let moving = rounds(&booted.answer.part("moves"));
    let (first, last) = (&moving[0], &moving[moving.len() - 1]);
    assert_near(first.1, from_node_0(3), 0.05, "before it moves");
    let moved = last.0.get(&0).copied().unwrap_or_default();
    assert!(moved >= 500, "{moved} of 512 pages moved: {moving:?}");
    assert_near(last.1, from_node_0(0), 0.05, "after it moved");
}

#[test]
fn zone_reclaim_drops_page_cache_before_taking_memory_of_another_node() {
    let Some(booted) = booted() else { return };
    // Cached file pages fill node 3: memory comes from the next node unless they are reclaimed. A
    // little is free in either case.
    for (mode, node) in [("reclaim 0", 2), ("reclaim 1", 3)] {
        let (pages, ns) = &rounds(&booted.answer.part(mode))[0];
        let there = pages.get(&node).copied().unwrap_or_default();
        assert!(there >= 1850, "{mode}: {there} of 2048 pages on node {node}: {pages:?}");
        let cost = |node: &u32| LOCAL_NS * f64::from(DISTANCES[3][*node as usize]) / 10.0;
        let charged: f64 = pages.iter().map(|(node, count)| cost(node) * *count as f64).sum();
        assert_near(*ns, charged / 2048.0, 0.02, mode);
    }
}

#[test]
fn two_readers_of_one_node_share_its_bandwidth() {
    let Some(booted) = booted() else { return };
    // A reader waits for one line at a time: 64 bytes in 100 ns.
    assert_near(booted.answer.last_median("one reader"), 64.0 / LOCAL_NS, 0.05, "one reader");
    assert_near(booted.answer.last_median("two readers"), NODE_BANDWIDTH, 0.10, "two readers");
}
