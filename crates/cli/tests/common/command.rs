//! The command as it is started by most tests: without input, to its end.

use std::process::{Command, Output, Stdio};

pub fn numalab(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
    command.args(words).stdin(Stdio::null());
    command
}

pub fn run(words: &[&str]) -> Output {
    numalab(words).output().expect("numalab starts")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What is printed by a command that must succeed.
pub fn prints(words: &[&str]) -> String {
    let output = run(words);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
    stdout(&output)
}
