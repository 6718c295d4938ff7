//! Other machines: latencies of the firmware, nodes without cpus, eight nodes, and the
//! control experiment.

use std::fs;

use crate::lab::{Lab, assert_near};

const LATENCY: &str = "echo '== matrix'
numalab latency --size 2M --per node --pages 4k --seed 1 --format csv -q";

/// Nodes 0 and 1 with two cpus each, node 2 without, and latencies in nanoseconds.
fn machine_with_latencies() -> String {
    let node = |(id, cpus): (u32, &str)| {
        let cpus = if cpus.is_empty() { String::new() } else { format!("cpus = \"{cpus}\"\n") };
        format!("[[node]]\nid = {id}\n{cpus}memory = \"512M\"\n")
    };
    let access = |(from, to, ns): (u32, u32, u32)| {
        let ps = ns * 1000;
        format!(
            "[[access]]\ninitiator = {from}\ntarget = {to}\nread_latency_ps = {ps}\n\
             write_latency_ps = {ps}\n"
        )
    };
    let cpus = "[cpus]\nonline = \"0-3\"\n".to_owned();
    let nodes = [(0, "0-1"), (1, "2-3"), (2, "")].map(node).concat();
    cpus + &nodes + &LATENCIES.map(access).concat()
}

const LATENCIES: [(u32, u32, u32); 6] =
    [(0, 0, 80), (0, 1, 140), (0, 2, 300), (1, 0, 140), (1, 1, 80), (1, 2, 200)];

#[test]
fn latencies_of_the_firmware_are_charged_of_a_node_without_cpus_too() {
    let lab = Lab::open();
    let file = lab.path("machine.toml");
    fs::write(&file, machine_with_latencies()).expect("written");
    let arguments = ["--topology", file.to_str().expect("UTF-8"), "--emulate-latency", "hmat"];
    let Some(answer) = lab.guest(&arguments, LATENCY) else { return };
    let medians = answer.medians("matrix");
    assert_eq!(medians.len(), LATENCIES.len(), "{medians:?}");
    for (from, to, ns) in LATENCIES {
        let what = format!("node {from} to node {to}");
        assert_near(medians[&(2 * from, to)], f64::from(ns), 0.02, &what);
    }
}

#[test]
fn where_every_access_costs_the_same_no_distance_shows() {
    let lab = Lab::open();
    let arguments = ["--emulate", "512M,512M", "--cpus", "2", "--emulate-latency", "flat:120"];
    let Some(answer) = lab.guest(&arguments, LATENCY) else { return };
    let medians = answer.medians("matrix");
    assert_eq!(medians.len(), 4, "{medians:?}");
    for (cell, median) in medians {
        assert_near(median, 120.0, 0.01, &format!("{cell:?}"));
    }
}

/// Two groups of four nodes: 10, 16 within a group, 32 between them.
#[test]
fn eight_nodes_cost_what_their_distances_say() {
    if std::env::var_os("NUMALAB_LONG").is_none() {
        return;
    }
    let distance = |from: u32, to: u32| match from == to {
        true => 10,
        false if from / 4 == to / 4 => 16,
        false => 32,
    };
    let row = |from| (0..8).map(|to| distance(from, to).to_string()).collect::<Vec<_>>().join(",");
    let rows = (0..8).map(row).collect::<Vec<_>>().join(";");
    let lab = Lab::open();
    let arguments = ["--emulate", "8", "--cpus", "8", "--memory", "2G", "--distances", &rows];
    let arguments = [&arguments[..], &["--emulate-latency", "90"]].concat();
    let Some(answer) = lab.guest(&arguments, LATENCY) else { return };
    let medians = answer.medians("matrix");
    assert_eq!(medians.len(), 64, "{medians:?}");
    for ((cpu, node), median) in medians {
        let charged = 9.0 * f64::from(distance(cpu, node));
        assert_near(median, charged, 0.02, &format!("cpu {cpu} to node {node}"));
    }
}
