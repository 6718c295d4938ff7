//! Configurations that the plugin refuses, and its messages.

use numalab_guest::Version;

use crate::charge;
use crate::lab::{ICOUNT, LEFT, qemus};

/// Older versions report offsets in QEMU's RAM blocks, whatever the guest's addresses are.
const PHYSICAL: Version = Version::new(8, 2, 0);

#[test]
fn refuses_settings_that_would_give_wrong_figures_with_the_reason() {
    let program = charge::program();
    let right = "cpus=0,memory=512M.512M,latency=100.200/200.100";
    let cases = [
        (
            right.replace("cpus=0", "cpus=0.0"),
            "self-test `vcpus` failed: the machine has 2 vCPUs, QEMU 1",
        ),
        (
            format!("{right},mode=virtual"),
            "mode=virtual needs QEMU's option `-icount shift=0,sleep=off`",
        ),
        (
            "cpus=0,ranges=100000000-140000000-0,latency=100".to_owned(),
            "self-test `physical ranges` failed: 0 of the first 4096 accesses to memory",
        ),
        (format!("{right},colour=red"), "argument `colour=red` is not known"),
        (format!("{right},pmu=/nowhere/pmu@0"), "pmu=/nowhere/pmu: No such file"),
    ];
    for qemu in qemus() {
        for (plugin, reason) in &cases {
            if qemu.version < PHYSICAL && reason.contains("physical ranges") {
                continue;
            }
            let run = program.run(&qemu, 1, plugin, &[]);
            assert_eq!(run.status, Some(1), "{plugin}: {}", run.errors);
            let line = format!("numalab-emulator: {reason}");
            assert!(run.errors.contains(&line), "{plugin}: {}", run.errors);
        }
        let run = program.run(&qemu, 1, &format!("{right},mode=virtual"), &ICOUNT);
        assert_eq!(run.status, Some(LEFT), "{}", run.errors);
    }
}
