//! What is wrong with the nodes' memory, by rules.

use numalab_formats::size::format_rounded;
use numalab_host::base_page_bytes;

use super::{NodeView, NodesView};
use crate::finding::Finding;
use crate::spread::{self, percent};

/// A node is short when so little of it is free or can be freed at once, while another
/// has `PLENTY`.
const SHORT: f64 = 0.04;
const PLENTY: f64 = 0.2;
/// The share of allocations that go elsewhere, now, that is worth a sentence; and the
/// least of them in a second.
const MANY_FOREIGN: f64 = 0.01;
const LEAST_FOREIGN: f64 = 100.0;
/// Free memory is fragmented when more of it than this cannot serve a huge page, and there
/// is enough of it to matter, in bytes.
const FRAGMENTED: f64 = 0.9;
const LEAST_FREE_BYTES: u64 = 256 << 20;

pub(super) fn findings(view: &NodesView) -> Vec<Finding> {
    let mut findings = Vec::new();
    for node in view.nodes.iter().filter(|node| node.total_bytes > 0) {
        findings.extend(short(view, node));
        findings.extend(spills(node));
        findings.extend(fragmented(view, node));
    }
    findings.extend(lopsided_pools(view));
    findings
}

fn available(node: &NodeView) -> f64 {
    spread::ratio(node.available_bytes().min(node.total_bytes), node.total_bytes).unwrap_or(0.0)
}

fn short(view: &NodesView, node: &NodeView) -> Option<Finding> {
    let roomy = view.nodes.iter().max_by(|a, b| available(a).total_cmp(&available(b)))?;
    if available(node) >= SHORT || available(roomy) < PLENTY {
        return None;
    }
    let what = format!(
        "node {} has {} of its {} left, page cache included, while node {} has {}: new memory spills over to other nodes",
        node.node,
        percent(available(node)),
        format_rounded(node.total_bytes),
        roomy.node,
        percent(available(roomy))
    );
    let mend = format!(
        "numactl --preferred={} -- COMMAND for what you start next, or migratepages PID {} {} for what runs (numastat -p shows who is there)",
        roomy.node, node.node, roomy.node
    );
    Some(Finding::wrong(what, mend))
}

fn spills(node: &NodeView) -> Option<Finding> {
    let rates = node.rates?;
    let share = rates.foreign_share()?;
    (share >= MANY_FOREIGN && rates.foreign >= LEAST_FOREIGN).then(|| {
        let what = format!(
            "{:.0} pages a second that were meant for node {} go elsewhere, {} of all",
            rates.foreign,
            node.node,
            percent(share)
        );
        let huge = node.huge_pages.iter().find(|pool| pool.free > 0);
        match huge {
            Some(pool) => {
                let (kib, used) = (pool.page_bytes >> 10, pool.total - pool.free.min(pool.total));
                Finding::wrong(
                    format!(
                        "{what}; {} of it wait in reserved huge pages that nobody uses",
                        format_rounded(pool.free.saturating_mul(pool.page_bytes))
                    ),
                    format!("echo {used} > /sys/devices/system/node/node{}/hugepages/hugepages-{kib}kB/nr_hugepages", node.node),
                )
            }
            None => Finding::wrong(what, "sysctl vm.zone_reclaim_mode=1 (gives up page cache of the node first)"),
        }
    })
}

fn fragmented(view: &NodesView, node: &NodeView) -> Option<Finding> {
    let share = node.fragmentation?;
    if share <= FRAGMENTED || node.free_bytes < LEAST_FREE_BYTES {
        return None;
    }
    let huge = base_page_bytes() << view.huge_order;
    let what = format!(
        "node {} has {} free, but {} of it lie in pieces smaller than a huge page of {}{}",
        node.node,
        format_rounded(node.free_bytes),
        percent(share),
        format_rounded(huge),
        movable(node)
    );
    Some(Finding::note(
        what,
        format!("echo 1 > /sys/devices/system/node/node{}/compact", node.node),
    ))
}

/// What compaction can hope for, where root let us see it.
fn movable(node: &NodeView) -> String {
    let all: u64 = node.zones.iter().flat_map(|zone| zone.pageblocks.values()).sum();
    let movable: u64 = node.zones.iter().filter_map(|zone| zone.pageblocks.get("Movable")).sum();
    match spread::ratio(movable, all) {
        Some(share) => format!("; {} of its pageblocks can be moved together", percent(share)),
        None => String::new(),
    }
}

/// All the huge pages of a size on some of the nodes with memory.
fn lopsided_pools(view: &NodesView) -> Vec<Finding> {
    let with_memory: Vec<&NodeView> =
        view.nodes.iter().filter(|node| node.total_bytes > 0 && !node.cpus.is_empty()).collect();
    let sizes: std::collections::BTreeSet<u64> =
        with_memory.iter().flat_map(|node| &node.huge_pages).map(|pool| pool.page_bytes).collect();
    let mut findings = Vec::new();
    for page_bytes in sizes {
        let total = |node: &NodeView| {
            let pools = node.huge_pages.iter().filter(|pool| pool.page_bytes == page_bytes);
            pools.map(|pool| pool.total).sum::<u64>()
        };
        let all: u64 = with_memory.iter().map(|node| total(node)).sum();
        let Some(without) = with_memory.iter().find(|node| total(node) == 0) else { continue };
        if all == 0 {
            continue;
        }
        let each = all.div_ceil(with_memory.len() as u64);
        findings.push(Finding::note(
            format!(
                "all {all} reserved huge pages of {} are on other nodes than node {}: who runs there gets remote ones or none",
                format_rounded(page_bytes),
                without.node
            ),
            format!(
                "echo {each} > /sys/devices/system/node/node{}/hugepages/hugepages-{}kB/nr_hugepages",
                without.node,
                page_bytes >> 10
            ),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use numalab_topology::{CpuId, CpuSet, HugePagePool, NodeId};

    use super::*;
    use crate::nodes::{Counters, ZoneView};

    fn node(number: u32, free_share: f64) -> NodeView {
        let total: u64 = 10 << 30;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a test")]
        let free_bytes = (10.0 * free_share * f64::from(1 << 30)) as u64;
        NodeView {
            node: NodeId(number),
            cpus: CpuSet::from_iter([CpuId(number)]),
            total_bytes: total,
            free_bytes,
            ..NodeView::default()
        }
    }

    fn sentences(nodes: Vec<NodeView>) -> Vec<String> {
        let view = NodesView {
            nodes,
            migrations_since_boot: None,
            migrations_rates: None,
            huge_order: 9,
            findings: Vec::new(),
            unseen: Vec::new(),
        };
        findings(&view).into_iter().map(|f| f.what + " | " + &f.mend.unwrap_or_default()).collect()
    }

    #[test]
    fn a_full_node_beside_an_empty_one_is_wrong_and_two_half_full_ones_are_not() {
        let found = sentences(vec![node(0, 0.01), node(1, 0.6)]);
        assert!(found[0].starts_with("node 0 has 1.0 % of its 10 GiB left"), "{found:?}");
        assert!(found[0].contains("node 1 has 60 %"), "{found:?}");
        assert!(sentences(vec![node(0, 0.4), node(1, 0.5)]).is_empty());
    }

    #[test]
    fn allocations_that_go_elsewhere_now_are_wrong() {
        let mut busy = node(1, 0.5);
        busy.rates = Some(Counters { hit: 9000.0, foreign: 1000.0, ..Counters::default() });
        busy.huge_pages = vec![HugePagePool { page_bytes: 2 << 20, total: 100, free: 60 }];
        let found = sentences(vec![busy]);
        assert!(
            found[0]
                .starts_with("1000 pages a second that were meant for node 1 go elsewhere, 10 %")
        );
        assert!(found[0].ends_with(
            "echo 40 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"
        ));
    }

    #[test]
    fn free_memory_in_small_pieces_is_told_with_what_can_be_moved() {
        let mut crumbs = node(2, 0.5);
        let pageblocks = [("Movable".to_owned(), 3), ("Unmovable".to_owned(), 1)].into();
        crumbs.zones = vec![ZoneView { pageblocks, ..ZoneView::default() }];
        crumbs.fragmentation = Some(0.97);
        let found = sentences(vec![crumbs]);
        assert!(found[0].contains("97 % of it lie in pieces smaller"), "{found:?}");
        assert!(found[0].contains("75 % of its pageblocks"), "{found:?}");
        assert!(found[0].ends_with("| echo 1 > /sys/devices/system/node/node2/compact"));
    }

    #[test]
    fn huge_pages_on_some_nodes_only_are_told() {
        let mut rich = node(0, 0.5);
        rich.huge_pages = vec![HugePagePool { page_bytes: 1 << 30, total: 4, free: 4 }];
        let found = sentences(vec![rich, node(1, 0.5)]);
        assert!(found[0].contains("all 4 reserved huge pages of 1 GiB"), "{found:?}");
        assert!(found[0].contains("echo 2 > "), "{found:?}");
    }
}
