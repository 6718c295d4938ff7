//! Readers that close the pipe early: `numalab ... 2>&1 | true`.

use std::io::pipe;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

/// Commands that write to both streams, as short as possible; most of them fail, so that an error
/// message is written too.
const COMMANDS: &[&[&str]] = &[
    &["--help"],
    &["measure", "--dry-run"],
    &["measure", "--cpus", "9999"],
    &["latency", "--size", "4K", "--dry-run"],
    &["topology"],
    &["topology", "--emulate", "2", "--cpus", "2", "--format", "numactl"],
    &["topology", "--source", "arch:/nonexistent"],
    &["machine", "acpi", "show", "/nonexistent"],
    &["explore", "--nodes"],
    &["explore", "--pid", "1"],
    &["knobs", "list"],
    &["knobs", "run", "numa_balancing=7", "--", "true"],
    &["knobs", "run", "nosuch=1", "--", "true"],
    &["study", "probe", "balancing", "--nodes", "8,9"],
    &["bind", "--numa=0", "--", "true"],
    &["bind", "--numa=0", "--", "/nonexistent"],
    &["mark", "--", "/nonexistent"],
    &["scale", "--arch", "/nonexistent", "--sequential", "0", "--dry-run"],
    &["compare", "--commands", "true", "true", "--blocks", "1"],
    &["compare", "/nonexistent", "/nonexistent"],
    &["study", "list"],
    &["study", "run", "--dry-run", "noise"],
    &["study", "run", "noise", "--dry-run"],
    &["study", "run", "nosuch"],
    &["guest", "run", "--emulate", "2", "--cpus", "2", "--dry-run", "--", "true"],
    &["guest", "run", "--emulate", "nosuch", "--", "true"],
    &["guest", "list"],
    &["fleet", "report", "/nonexistent"],
    &["report", "/nonexistent"],
];

/// Returns a stream without a reader.
fn unread() -> Stdio {
    let (reader, writer) = pipe().expect("a pipe can be had");
    drop(reader);
    writer.into()
}

fn run(words: &[&str], out: Stdio, err: Stdio) -> ExitStatus {
    let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
    let directory = tempfile::tempdir().expect("a directory can be made");
    command.args(words).current_dir(&directory).stdin(Stdio::null()).stdout(out).stderr(err);
    command.status().expect("numalab starts")
}

/// Returns true if SIGPIPE ended it, as it ends most tools: `bind` keeps the default action, which
/// the command that it becomes expects.
fn is_pipe(ended: ExitStatus) -> bool {
    const SIGPIPE: i32 = 13;
    ended.signal() == Some(SIGPIPE)
}

#[test]
fn every_command_ends_quietly_when_its_output_is_not_read() {
    /// Rust's exit code after a panic.
    const PANIC: i32 = 101;
    for words in COMMANDS {
        let ends = [
            ("both", run(words, unread(), unread())),
            ("standard error", run(words, Stdio::null(), unread())),
            ("standard output", run(words, unread(), Stdio::null())),
        ];
        for (closed, ended) in ends {
            assert_ne!(ended.code(), Some(PANIC), "{words:?} panicked with {closed} closed");
            assert!(ended.code().is_some() || is_pipe(ended), "{words:?}, {closed}: {ended}");
        }
    }
}

#[test]
fn an_unread_message_does_not_change_the_exit_code() {
    for words in COMMANDS {
        let read = run(words, Stdio::null(), Stdio::null());
        let unread = run(words, unread(), unread());
        assert!(is_pipe(unread) || read.code() == unread.code(), "{words:?}: {unread}");
    }
}
