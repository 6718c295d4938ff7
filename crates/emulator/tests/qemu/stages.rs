//! Stages of the model, as programs in QEMU see them.

use crate::lab::{ICOUNT, NODE0, Program, qemus};
use crate::parallel;

const MACHINE: &str = "memory=512M.512M,latency=100.200/200.100,start=marker,mode=virtual";

#[test]
fn a_line_moves_between_cpus_at_the_latency_between_them() {
    const ROUNDS: u64 = 2000;
    let program = Program::assemble("handover.s", &[("CPUS", 2), ("ROUNDS", ROUNDS)]);
    for qemu in qemus() {
        for stages in ["owners", "core+owners", "core+owners+tlb"] {
            let plugin = format!("cpus=0.1,{MACHINE},caches=1:32K:8:64:cpu:1,stages={stages}");
            let run = program.run(&qemu, 2, &plugin, &ICOUNT);
            let ns = run.said[0] / (2 * ROUNDS);
            assert!((190..230).contains(&ns), "{} {stages}: {ns} ns", qemu.version);
            let again = program.run(&qemu, 2, &plugin, &ICOUNT);
            assert_eq!((&run.report, &run.said), (&again.report, &again.said));
        }
    }
}

#[test]
fn non_temporal_stores_write_each_line_to_memory_once() {
    let program = Program::assemble("past_caches.s", &[("NODE0", NODE0)]);
    let lines = 65_536 / 64;
    for qemu in qemus() {
        let plugin = format!("cpus=0,{MACHINE},caches=1:128K:8:64:cpu:1,stages=core");
        let run = program.run(&qemu, 1, &plugin, &ICOUNT);
        let misses = |phase: u64, of: &str| run.vcpu(phase, 0)["nodes"][0][of].as_u64().unwrap();
        let found = [0, 2, 4]
            .map(|phase| [misses(phase, "store_misses"), misses(phase + 1, "load_misses")]);
        let version = qemu.version;
        // Stores through the caches hit the lines that were read last.
        assert_eq!(found, [[lines, lines], [lines, lines], [0, 0]], "{version}");
        // 16 lines in parallel take 100 ns; a line has 16 words, each read by four instructions.
        let ns = run.said[1] as f64 / lines as f64;
        assert!((6.0..7.0).contains(&ns), "{version}: {ns} ns per line");
    }
}

#[test]
fn streams_that_ask_for_more_than_a_node_has_share_its_peak() {
    let program = parallel::program();
    for qemu in qemus() {
        let plugin = format!(
            "cpus=0.0.1.1,{MACHINE},caches=1:32K:8:64:cpu:1,stages=load+core+owners,\
             node-bandwidth=8000.8000"
        );
        let run = program.run(&qemu, 4, &plugin, &ICOUNT);
        // cpus 0 and 2 read node 0.
        let bytes = parallel::LINES * 64;
        let gb_s = 2.0 * bytes as f64 / run.said[0].max(run.said[2]) as f64;
        assert!((6.0..8.5).contains(&gb_s), "{}: {gb_s} GB/s, {:?}", qemu.version, run.said);
        let again = program.run(&qemu, 4, &plugin, &ICOUNT);
        assert_eq!((&run.report, &run.said), (&again.report, &again.said));
        assert!(run.vcpu(1, 0)["nodes"][0]["queue_ns"].as_u64().unwrap() > 10_000);
    }
}
