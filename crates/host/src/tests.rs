//! Runs tests in separate processes.

use std::env;
use std::process::Command;
use std::time::Duration;

use crate::command::run_command;
use crate::signals::Interrupt;

/// Set in the environment of a test's separate process.
const OWN: &str = "NUMALAB_OWN_PROCESS";

/// Reports whether this is the separate process of a test that examines state of the whole process.
/// Otherwise runs the test, given by its path in this crate, in such a process, and asserts that it
/// succeeds within the limit.
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
