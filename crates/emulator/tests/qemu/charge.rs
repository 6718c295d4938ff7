//! The counts and charges of one cpu.

use std::sync::atomic::AtomicU64;

use numalab_marks::pmu::{PMU_BYTES, Pmu, PmuMode};
use serde_json::Value;

use crate::lab::{ICOUNT, NODE0, NODE1, Program, Run, qemus};

const MACHINE: &str = "cpus=0,memory=512M.512M,latency=100.200/200.100,start=marker";
/// 32 KiB of 8 ways, as most processors have for L1.
const CACHE: &str = "caches=1:32K:8:64:cpu";

pub fn program() -> Program {
    Program::assemble("memory.s", &[("NODE0", NODE0), ("NODE1", NODE1)])
}

/// Returns a node's figures of vCPU 0 in a phase.
fn node(run: &Run, phase: u64, node: usize) -> [u64; 5] {
    let entry: &Value = &run.vcpu(phase, 0)["nodes"][node];
    ["loads", "stores", "load_misses", "store_misses", "cost_ns"]
        .map(|field| entry[field].as_u64().unwrap())
}

#[test]
fn counts_accesses_by_phase_node_and_kind_and_devices_separately() {
    let program = program();
    for qemu in qemus() {
        let run = program.run(&qemu, 1, &format!("{MACHINE},mode=count"), &[]);
        assert_eq!(node(&run, 0, 0), [10_000, 1, 10_000, 1, 1_000_100], "{}", qemu.version);
        assert_eq!(node(&run, 0, 1), [0; 5]);
        assert_eq!(node(&run, 1, 1), [10_000, 1, 10_000, 1, 2_000_200]);
        assert_eq!(node(&run, 1, 0), [0; 5]);
        assert_eq!(node(&run, 2, 1), [0, 5_000, 0, 5_000, 1_000_000]);
        let device = run.vcpu(5, 0);
        assert_eq!((&device["io"], &device["local_share"]), (&10.into(), &Value::Null));
        assert_eq!(run.vcpu(0, 0)["local_share"], 1.0);
        assert_eq!(run.vcpu(1, 0)["local_share"], 0.0);
        assert_eq!(run.json()["qemu"]["version"], qemu.version.to_string());
        assert_eq!(run.json()["markers"]["begins"], 1);
        assert_eq!(run.json()["markers"]["phases"], 6);
    }
}

#[test]
fn virtual_time_charges_each_access_its_latency_and_two_runs_are_the_same() {
    let program = program();
    for qemu in qemus() {
        let plugin = format!("{MACHINE},{CACHE},mode=virtual");
        let without_cache = format!("{MACHINE},mode=virtual");
        let run = program.run(&qemu, 1, &without_cache, &ICOUNT);
        // By the guest's own clock: 10,000 loads, each at the latency of its distance.
        let [local, remote] = run.said[..] else { panic!("{run:?}") };
        assert!(local.abs_diff(1_000_000) < 200, "{}: {local}", qemu.version);
        assert!(remote.abs_diff(2_000_000) < 400, "{}: {remote}", qemu.version);
        let again = program.run(&qemu, 1, &without_cache, &ICOUNT);
        assert_eq!((&run.report, &run.said), (&again.report, &again.said));
        // The same on every version of QEMU.
        let phases = serde_json::to_string_pretty(&run.json()["phases"]).unwrap();
        insta::assert_snapshot!("virtual_time", phases);
        let cached = program.run(&qemu, 1, &plugin, &ICOUNT);
        let phases = serde_json::to_string_pretty(&cached.json()["phases"]).unwrap();
        insta::assert_snapshot!("virtual_time_with_a_cache", phases);
    }
}

#[test]
fn only_misses_reach_memory() {
    let program = program();
    for qemu in qemus() {
        let run = program.run(&qemu, 1, &format!("{MACHINE},{CACHE},mode=count"), &[]);
        // A pointer to itself, in a line that was stored to before.
        assert_eq!(node(&run, 0, 0), [10_000, 1, 0, 1, 100]);
        // 16 KiB fit, and one line was there already; 64 KiB in order evict themselves, except the
        // first 16 lines.
        assert_eq!(node(&run, 3, 0), [512, 0, 255, 0, 25_500]);
        assert_eq!(node(&run, 4, 0)[2], 2 * 1024 - 256);
    }
}

#[test]
fn without_a_begin_marker_before_it_nothing_counts() {
    let program = program();
    for qemu in qemus() {
        let run = program.run(&qemu, 1, MACHINE, &[]);
        let report = run.json();
        let phases = report["phases"].as_array().unwrap();
        let loads = |entry: &Value| entry["vcpus"][0]["nodes"][0]["loads"].as_u64().unwrap();
        // The program's loads before the first and after the last marker, and all of the
        // firmware's, are left out.
        assert_eq!(phases.iter().map(loads).sum::<u64>(), 10_000 + 512 + 2048);
        let run = program.run(&qemu, 1, &MACHINE.replace("start=marker", "start=on"), &[]);
        assert!(run.vcpu(0, 0)["nodes"][0]["loads"].as_u64().unwrap() > 20_000, "the firmware");
    }
}

#[test]
fn the_virtual_pmu_agrees_with_the_report() {
    let program = program();
    for qemu in qemus() {
        let file = program.file("pmu");
        std::fs::write(&file, vec![0; 4096 + PMU_BYTES]).unwrap();
        let plugin = format!("{MACHINE},mode=virtual,pmu={}@4096", file.display());
        let run = program.run(&qemu, 1, &plugin, &ICOUNT);
        let bytes = std::fs::read(&file).unwrap();
        let words = bytes[4096..].chunks_exact(8);
        let words = words.map(|word| AtomicU64::new(u64::from_ne_bytes(word.try_into().unwrap())));
        let words: Vec<AtomicU64> = words.collect();
        let pmu = Pmu::over(&words).unwrap();
        assert_eq!((pmu.vcpus(), pmu.mode(), pmu.is_on()), (1, Some(PmuMode::Virtual), false));
        let counts = pmu.counts(0).unwrap();
        let phases = 0..6;
        let sum = |node_at: usize, field: usize| {
            phases.clone().map(|phase| node(&run, phase, node_at)[field]).sum::<u64>()
        };
        assert_eq!(counts.loads, [sum(0, 0), sum(1, 0)]);
        assert_eq!(counts.stores, [sum(0, 1), sum(1, 1)]);
        assert_eq!(counts.misses[..2], [sum(0, 2) + sum(0, 3), sum(1, 2) + sum(1, 3)]);
        assert_eq!(counts.cost_ns, sum(0, 4) + sum(1, 4));
        assert_eq!((counts.node, counts.phase), (0, 5));
    }
}

#[test]
fn a_sample_represents_all_accesses() {
    let program = program();
    for qemu in qemus() {
        let run = program.run(&qemu, 1, &format!("{MACHINE},sample=10"), &[]);
        assert_eq!(run.json()["sample"], 10);
        let loads = node(&run, 0, 0)[0];
        // Three standard deviations of a thousand samples.
        assert!(loads.abs_diff(10_000) < 950, "{loads}");
        assert_eq!(loads % 10, 0);
    }
}

#[test]
fn sleeping_takes_at_least_the_charged_time() {
    let program = program();
    for qemu in qemus() {
        let machine = "cpus=0,memory=512M.512M,latency=10000.20000/20000.10000,start=marker";
        let begun = std::time::Instant::now();
        let run = program.run(&qemu, 1, &format!("{machine},mode=sleep"), &[]);
        let charged = (0..6).map(|phase| run.vcpu(phase, 0)["cost_ns"].as_u64().unwrap());
        let charged: u64 = charged.sum();
        assert!(charged > 400_000_000);
        // Up to a millisecond may be outstanding.
        assert!(begun.elapsed().as_nanos() >= u128::from(charged - 1_000_000));
    }
}

#[test]
fn where_misses_overlap_a_chase_is_serial_and_a_walk_is_not() {
    let program = program();
    for qemu in qemus() {
        let plugin = format!("{MACHINE},mode=virtual,stages=core");
        let run = program.run(&qemu, 1, &plugin, &ICOUNT);
        let [local, remote] = run.said[..] else { panic!("{run:?}") };
        // 10,000 loads of 100 and of 200 ns; at most 2 % hit a line that was stored just before,
        // and are served by the store buffer.
        let takes = |all: u64| (all - all / 50)..(all + 500);
        assert!(takes(1_000_000).contains(&local), "{}: {local}", qemu.version);
        assert!(takes(2_000_000).contains(&remote), "{}: {remote}", qemu.version);
        // 2,048 lines, 16 at a time, of 100 ns each.
        let walk = run.vcpu(4, 0)["time_ns"].as_u64().unwrap();
        assert!(walk.abs_diff(12_800) < 600, "{}: {walk}", qemu.version);
        let again = program.run(&qemu, 1, &plugin, &ICOUNT);
        assert_eq!((&run.report, &run.said), (&again.report, &again.said), "{}", qemu.version);
    }
}
