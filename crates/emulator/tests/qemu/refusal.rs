//! What the plugin refuses, and what it says.

use crate::lab::{ICOUNT, LEFT, NODE0, NODE1, Program, qemus};

#[test]
fn what_would_give_wrong_figures_is_refused_with_the_reason() {
    let program = Program::assemble("memory.s", &[("NODE0", NODE0), ("NODE1", NODE1)]);
    let cases: [(&str, &[&str], &str); 6] = [
        (
            "cpus=0.0,memory=512M.512M,latency=100.200/200.100",
            &[],
            "self-test `vcpus` failed: the machine has 2 vCPUs, QEMU 1",
        ),
        (
            "cpus=0,memory=512M.512M,latency=100.200/200.100,mode=virtual",
            &[],
            "mode=virtual needs QEMU's option `-icount shift=0,sleep=off`",
        ),
        (
            "cpus=0,ranges=100000000-140000000-0,latency=100",
            &[],
            "self-test `physical ranges` failed: 0 of the first 4096 accesses to memory",
        ),
        ("cpus=0,memory=1G,latency=100,colour=red", &[], "argument `colour=red` is not known"),
        ("cpus=0,memory=1G,latency=100,pmu=/nowhere/pmu@0", &[], "pmu=/nowhere/pmu: No such file"),
        ("cpus=0,memory=512M.512M,latency=100.200/200.100,mode=virtual", &ICOUNT, ""),
    ];
    for qemu in qemus() {
        for (plugin, options, reason) in cases {
            let run = program.run(&qemu, 1, plugin, options);
            if reason.is_empty() {
                assert_eq!(run.status, Some(LEFT), "{plugin}: {}", run.errors);
            } else {
                assert_eq!(run.status, Some(1), "{plugin}: {}", run.errors);
                let line = format!("numalab-emulator: {reason}");
                assert!(run.errors.contains(&line), "{plugin}: {}", run.errors);
            }
        }
    }
}
