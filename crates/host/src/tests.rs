//! What tests of several modules need: a process of their own.

use std::env;
use std::process::Command;
use std::time::Duration;

use crate::command::run_command;
use crate::signals::Interrupt;

/// Set in a process that a test has for itself.
const OWN: &str = "NUMALAB_OWN_PROCESS";

/// Whether this test, by its path in this crate, has a process of its own, as what it looks at is a
/// matter of the whole process; else it is run in one, and succeeds there within the limit.
pub(crate) fn in_own_process(test: &str, limit: Duration) -> bool {
    if env::var_os(OWN).is_some() {
        return true;
    }
    if !own_binary_starts() {
        eprintln!("NOT RUN: this binary cannot start itself (qemu-user without binfmt_misc)");
        return false;
    }
    let mut own = Command::new(env::current_exe().unwrap());
    own.args(["--exact", test, "--nocapture"]).env(OWN, "1");
    let ran = run_command(own, limit, &Interrupt::never()).unwrap();
    assert!(ran.status.success(), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("1 passed"), "no test of this name: {}", ran.stdout);
    eprint!("{}", ran.stderr);
    false
}

fn own_binary_starts() -> bool {
    let list = Command::new(env::current_exe().unwrap()).arg("--list").output();
    list.is_ok_and(|output| output.status.success())
}
