//! What tests of several modules need: some start this binary again, for a process of their own.

use std::process::Command;

/// Whether this binary can start itself; loud words where it cannot.
pub(crate) fn own_binary_starts() -> bool {
    let list = Command::new(std::env::current_exe().unwrap()).arg("--list").output();
    let starts = list.is_ok_and(|output| output.status.success());
    if !starts {
        eprintln!("NOT RUN: this binary cannot start itself (qemu-user without binfmt_misc)");
    }
    starts
}
