//! Time charged for instructions with which a guest only waits.

use crate::lab::{ICOUNT, Program, qemus};

const MACHINE: &str = "cpus=0,memory=512M.512M,latency=100.200/200.100,start=marker";

#[test]
fn waiting_takes_time_in_virtual_time_while_nothing_counts() {
    let program = Program::assemble("wait.s", &[]);
    for qemu in qemus() {
        let run = program.run(&qemu, 1, &format!("{MACHINE},mode=virtual"), &ICOUNT);
        run.json();
        let [pauses, port_reads, nops, counted] = run.said[..] else { panic!("{run:?}") };
        // 1000 µs of waiting, and three instructions per iteration.
        for waited in [pauses, port_reads] {
            assert!(waited.abs_diff(1_003_000) < 100, "{}: {waited}", qemu.version);
        }
        for plain in [nops, counted] {
            assert!(plain.abs_diff(3_000) < 100, "{}: {plain}", qemu.version);
        }
        let host_time = program.run(&qemu, 1, &format!("{MACHINE},mode=count"), &ICOUNT);
        let [pauses, ..] = host_time.said[..] else { panic!("{host_time:?}") };
        assert!(pauses < 100_000, "{}: {pauses}", qemu.version);
    }
}
