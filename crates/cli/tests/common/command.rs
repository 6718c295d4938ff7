//! Starts the command as most tests do: without input, until its end.

use std::path::Path;
use std::process::{Command, Output, Stdio};

pub const NUMALAB: &str = env!("CARGO_BIN_EXE_numalab");

pub fn numalab(words: &[&str]) -> Command {
    let mut command = Command::new(NUMALAB);
    command.args(words).stdin(Stdio::null());
    command
}

/// Returns the command with results below a directory.
pub fn numalab_in(directory: &Path, words: &[&str]) -> Command {
    let mut command = numalab(words);
    command.current_dir(directory);
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

/// Runs a command that must end with this code; returns its output and its messages.
pub fn ends(command: &mut Command, code: i32) -> (String, String) {
    let output = command.output().expect("it starts");
    let (out, err) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(code), "{command:?}: {out}{err}");
    (out, err)
}

/// Returns the output of a command that must succeed.
pub fn prints(words: &[&str]) -> String {
    ends(&mut numalab(words), 0).0
}

pub fn prints_in(directory: &Path, words: &[&str]) -> String {
    ends(&mut numalab_in(directory, words), 0).0
}

/// Runs a command that must fail with this code and each of these in its message.
pub fn refuses(words: &[&str], code: i32, messages: &[&str]) {
    refused(&mut numalab(words), code, messages);
}

pub fn refused(command: &mut Command, code: i32, messages: &[&str]) {
    let (out, said) = ends(command, code);
    assert!(out.is_empty(), "{command:?} printed {out}");
    for message in messages {
        assert!(said.contains(message), "{command:?}: no `{message}` in: {said}");
    }
}
