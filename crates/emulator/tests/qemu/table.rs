//! Makes the README's table of QEMU versions from runs.

use numalab_guest::Qemu;

use crate::lab::{ICOUNT, LEFT, Run, qemus};
use crate::{charge, parallel};

const ONE: &str = "cpus=0,memory=512M.512M,latency=100.200/200.100,start=marker";
const FOUR: &str = "cpus=0.0.1.1,memory=512M.512M,latency=100.200/200.100,start=marker";

/// Returns a version's row, as measured.
fn row(qemu: &Qemu) -> String {
    let (one, four) = (charge::program(), parallel::program());
    let yes = |proven: bool| if proven { "yes" } else { "no" };
    let counted = one.run(qemu, 1, &format!("{ONE},mode=count"), &[]);
    let threads = ["-accel", "tcg,thread=multi"];
    let slept = four.run(qemu, 4, &format!("{FOUR},mode=sleep"), &threads);
    let charged = one.run(qemu, 1, &format!("{ONE},mode=virtual"), &ICOUNT);
    let turns = four.run(qemu, 4, &format!("{FOUR},mode=virtual"), &ICOUNT);
    let virtual_one = charged.said.first().is_some_and(|&ns| ns.abs_diff(1_000_000) < 1000);
    let parallel_ns = turns.said.get(3).copied().unwrap_or(0);
    let virtual_four = parallel_ns.abs_diff(parallel::LINES * 100) < 20_000;
    let has_slept =
        slept.status == Some(LEFT) && slept.vcpu(1, 3)["cost_ns"].as_u64() > Some(2_000_000);
    if !has_slept {
        eprintln!("asleep: {slept:?}");
    }
    let interface = counted.json()["qemu"]["api"].clone();
    format!(
        "| {}.{} | {interface} | {} | {} | {} | {} |",
        qemu.version.major,
        qemu.version.minor,
        yes(loads(&counted, 1) == 10_000),
        yes(has_slept),
        yes(virtual_one),
        yes(virtual_four),
    )
}

fn loads(run: &Run, phase: u64) -> u64 {
    run.vcpu(phase, 0)["nodes"][1]["loads"].as_u64().unwrap_or(0)
}

#[test]
fn the_table_of_versions_agrees_with_runs() {
    let table = include_str!("../../README.md");
    for qemu in qemus() {
        let row = row(&qemu);
        assert!(!row.contains("| no |"), "{row}");
        assert!(table.contains(&row), "README.md lacks what was proven just now:\n{row}");
    }
}
