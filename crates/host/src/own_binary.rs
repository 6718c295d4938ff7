//! Tests that need a process of their own start this binary again.

use std::process::Command;

/// Whether this binary can start itself; loud words where it cannot.
pub(crate) fn starts() -> bool {
    let list = Command::new(std::env::current_exe().unwrap()).arg("--list").output();
    let starts = list.is_ok_and(|output| output.status.success());
    if !starts {
        eprintln!("NOT RUN: this binary cannot start itself (qemu-user without binfmt_misc)");
    }
    starts
}
