//! Other machines: eight nodes with the firmware's latencies and bandwidths, one of them without
//! cpus, and the control experiment.

use std::fs;

use serde_json::Value;

use super::lab::{Lab, assert_near, rounds};

const LATENCY: &str = "echo '== matrix'
numalab latency --size 512K --per node --pages 4k --seed 1 --format csv -q";
const BANDWIDTH: &str = "
echo '== readers'
numalab bandwidth --kernel read --size 4M --pages 4k --cpus 0,1 --nodes 7 --seed 1 --format csv -q";

const NODES: u32 = 8;
/// The last node: memory only, like that of a CXL device.
const WITHOUT_CPUS: u32 = NODES - 1;
/// Bandwidth of its link to node 0: more than one reader can use (64 bytes in 300 ns), less than
/// two can.
const FAR_LINK_MB_S: u32 = 300;

/// Returns a latency: 80 ns locally, 130 ns within a group of nodes, 210 ns between the two groups,
/// more for far memory.
fn latency_ns(from: u32, to: u32) -> u32 {
    match to {
        WITHOUT_CPUS => 300,
        _ if from == to => 80,
        _ if from / 4 == to / 4 => 130,
        _ => 210,
    }
}

/// Returns a machine in which node 0 has two cpus, the others one and the last none; HMAT has
/// latencies and bandwidths.
fn machine_with_latencies() -> String {
    let node = |id: u32| {
        let cpus = match id {
            0 => "cpus = \"0-1\"\n".to_owned(),
            WITHOUT_CPUS => String::new(),
            _ => format!("cpus = \"{}\"\n", id + 1),
        };
        format!("[[node]]\nid = {id}\n{cpus}memory = \"192M\"\n")
    };
    let access = |(from, to): (u32, u32)| {
        let ps = latency_ns(from, to) * 1000;
        let mb_s = if (from, to) == (0, WITHOUT_CPUS) { FAR_LINK_MB_S } else { 5_000 };
        format!(
            "[[access]]\ninitiator = {from}\ntarget = {to}\nread_latency_ps = {ps}\n\
             write_latency_ps = {ps}\nread_bandwidth_mb_per_s = {mb_s}\n\
             write_bandwidth_mb_per_s = {mb_s}\n"
        )
    };
    let pairs = (0..WITHOUT_CPUS).flat_map(|from| (0..NODES).map(move |to| (from, to)));
    let cpus = "[cpus]\nonline = \"0-7\"\n".to_owned();
    cpus + &(0..NODES).map(node).collect::<String>() + &pairs.map(access).collect::<String>()
}

#[test]
fn eight_nodes_one_without_cpus_cost_the_latency_and_bandwidth_of_the_firmware() {
    let lab = Lab::open();
    let file = lab.path("machine.toml");
    fs::write(&file, machine_with_latencies()).expect("written");
    let file = file.to_str().expect("UTF-8");
    let hmat =
        ["--emulate-latency", "hmat", "--emulate-bandwidth", "hmat", "--emulate-cache", "4K"];
    let arguments = [&["--topology", file][..], &hmat].concat();
    let script = format!("{LATENCY}{BANDWIDTH}");
    let Some(answer) = lab.guest(&arguments, &script) else { return };
    let medians = answer.medians("matrix");
    assert_eq!(medians.len(), 7 * 8, "{medians:?}");
    for ((cpu, node), median) in medians {
        let from = cpu.saturating_sub(1);
        let charged = f64::from(latency_ns(from, node));
        assert_near(median, charged, 0.02, &format!("node {from} to node {node}"));
    }
    let limit = f64::from(FAR_LINK_MB_S) / 1000.0;
    assert_near(answer.last_median("readers"), limit, 0.10, "two readers through one link");
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

/// Chases from cpu 0 of node 0 and from cpu 3 of node 1, both in node 0's memory.
const NEAR_AND_FAR: &str = "
echo '== near'; numalab mark --phase near -- numactl -C 0 -m 0 CHASE 0 0 1 4k 1 0
echo '== far'; numalab mark --phase far -- numactl -C 3 -m 0 CHASE 3 3 1 4k 1 0";

/// Runs it on four cpus in parallel, with any QEMU; nanoseconds of a load by phase.
fn near_and_far(mode: &str) -> Option<Vec<f64>> {
    let lab = Lab::open();
    let report = lab.path("report.json").to_str().expect("UTF-8").to_owned();
    let machine = ["--emulate", "512M,512M", "--cpus", "4", "--distances", "10,30;30,10"];
    let costs = ["--emulate-latency", "2000", "--emulate-cache", "32K", "--emulate-mode", mode];
    let arguments = [&machine[..], &costs, &["--emulate-report", &report]].concat();
    let answer = lab.guest(&arguments, NEAR_AND_FAR)?;
    let report: Value = serde_json::from_str(&lab.read("report.json")).expect("JSON");
    let phases = report["phases"].as_array().expect("phases");
    for (name, cpu) in [("near", 0), ("far", 3)] {
        let phase = phases.iter().find(|phase| phase["name"] == name).expect(name);
        let loads = phase["vcpus"][cpu]["nodes"][0]["load_misses"].as_u64();
        // One round over the lines of 1 MiB and 51 windows, minus what the cache holds.
        assert!(loads >= Some(110_000), "{mode}, {name}: {loads:?} loads");
    }
    Some(["near", "far"].map(|name| rounds(&answer.part(name))[0].1).to_vec())
}

#[test]
fn cpus_in_parallel_are_counted_apart_and_nothing_is_charged() {
    near_and_far("count");
}

#[test]
fn in_the_hosts_time_no_load_takes_less_than_it_is_charged() {
    let Some(found) = near_and_far("sleep") else { return };
    // The rest is QEMU's own time, and other load on the host.
    assert!(found[0] >= 2000.0 * 0.95 && found[1] >= 6000.0 * 0.95, "{found:?}");
}
