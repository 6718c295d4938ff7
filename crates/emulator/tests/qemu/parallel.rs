//! Several cpus at once.

use numalab_guest::Qemu;

use crate::lab::{ICOUNT, NODE0, NODE1, Program, Run, qemus};

pub const LINES: u64 = 20_000;
const MACHINE: &str = "cpus=0.0.1.1,memory=512M.512M,latency=100.200/200.100,start=marker";
/// Large enough that spinning cpus stay in the cache.
const CACHE: &str = "caches=1:32K:8:64:cpu";

/// Returns a program in which every cpu reads its own lines: two cpus from each node, one of them
/// local to it.
pub fn program() -> Program {
    let apart = 4 * LINES * 64;
    Program::assemble(
        "parallel.s",
        &[
            ("CPUS", 4),
            ("LINES", LINES),
            ("TARGET0", NODE0),
            ("TARGET1", NODE1),
            ("TARGET2", NODE0 + apart),
            ("TARGET3", NODE1 + apart),
        ],
    )
}

fn run(program: &Program, qemu: &Qemu, more: &str) -> Run {
    program.run(qemu, 4, &format!("{MACHINE},{CACHE},{more}"), &ICOUNT)
}

/// Returns a vCPU's loads that missed, on a node.
fn misses(run: &Run, vcpu: usize, node: usize) -> u64 {
    run.vcpu(1, vcpu)["nodes"][node]["load_misses"].as_u64().unwrap()
}

fn near(found: u64, expected: u64, per_mille: u64) -> bool {
    found.abs_diff(expected) * 1000 <= expected * per_mille
}

#[test]
fn each_vcpu_is_charged_for_its_own_accesses_in_its_own_time() {
    let program = program();
    for qemu in qemus() {
        let run_once = || run(&program, &qemu, "mode=virtual");
        let first = run_once();
        // cpus 0 and 3 read local memory, 1 and 2 remote.
        for (vcpu, (target, latency_ns)) in
            [(0, 100), (1, 200), (0, 200), (1, 100)].iter().enumerate()
        {
            let read = misses(&first, vcpu, *target);
            assert!((LINES..LINES + 20).contains(&read), "vCPU {vcpu}: {read}");
            // By the clock of the guest's cpu, although all vCPUs share a thread.
            let took = first.said[vcpu];
            assert!(near(took, LINES * latency_ns, 10), "{}: vCPU {vcpu}: {took}", qemu.version);
        }
        let second = run_once();
        assert_eq!((&first.report, &first.said), (&second.report, &second.said));
    }
}

#[test]
fn cpus_that_read_one_nodes_memory_at_once_get_its_bandwidth() {
    let program = program();
    for qemu in qemus() {
        // Node 0 delivers a line every 160 ns; two cpus request one every 100 and 200 ns.
        let run = run(&program, &qemu, "mode=virtual,node-bandwidth=400.0");
        let (near_cpu, far_cpu) = (run.said[0], run.said[2]);
        let bytes = 2 * LINES * 64;
        let together = bytes * 1000 / near_cpu.max(far_cpu);
        assert!(near(together, 400, 100), "{}: {together} MB/s", qemu.version);
        assert!(near(near_cpu, far_cpu, 100), "equal parts: {near_cpu} and {far_cpu} ns");
        // Node 1 has no limit.
        assert!(near(run.said[3], LINES * 100, 10), "{:?}", run.said);
        let waited = run.vcpu(1, 0)["nodes"][0]["queue_ns"].as_u64().unwrap();
        assert!(near(waited, near_cpu - LINES * 100, 20), "{waited}");
    }
}

#[test]
fn a_link_limits_only_its_users() {
    let program = program();
    for qemu in qemus() {
        // 500 ns per line from node 0's cpus to node 1's memory; no limit elsewhere.
        let run = run(&program, &qemu, "mode=virtual,link-bandwidth=0.128/0.0");
        assert!(near(run.said[1], LINES * 500, 20), "{}: {:?}", qemu.version, run.said);
        assert!(near(run.said[2], LINES * 200, 10), "{:?}", run.said);
    }
}

#[test]
fn a_cache_that_a_group_shares_holds_what_its_other_cpu_read() {
    let apart = 4 * LINES * 64;
    let program = Program::assemble(
        "parallel.s",
        &[
            ("CPUS", 4),
            ("LINES", 2000),
            ("TARGET0", NODE0),
            ("TARGET1", NODE0),
            ("TARGET2", NODE1),
            ("TARGET3", NODE1 + apart),
        ],
    );
    for qemu in qemus() {
        let shared = format!("{MACHINE},caches=1:1M:16:64:group,mode=virtual");
        let run = program.run(&qemu, 4, &shared, &ICOUNT);
        let both = misses(&run, 0, 0) + misses(&run, 1, 0);
        assert!((2000..2020).contains(&both), "{both}");
        let apart = misses(&run, 2, 1) + misses(&run, 3, 1);
        assert!((4000..4020).contains(&apart), "{apart}");
    }
}

#[test]
fn vcpus_on_separate_threads_are_counted_as_well() {
    let program = program();
    for qemu in qemus() {
        let plugin = format!("{MACHINE},{CACHE},mode=count");
        let run = program.run(&qemu, 4, &plugin, &["-accel", "tcg,thread=multi"]);
        for (vcpu, target) in [0, 1, 0, 1].into_iter().enumerate() {
            let read = misses(&run, vcpu, target);
            assert!((LINES..LINES + 20).contains(&read), "{}: vCPU {vcpu}: {read}", qemu.version);
        }
    }
}
