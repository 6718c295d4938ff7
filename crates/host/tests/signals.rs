//! Signals, in separate processes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use numalab_host::Interrupt;
use rustix::process::{Pid, Signal, kill_process};

const CHILD: &str = "NUMALAB_SIGNAL_CHILD";

/// The child: installs the handlers and reports its progress until it is stopped.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let interrupt = Interrupt::install().unwrap();
    let mut stderr = std::io::stderr();
    writeln!(stderr, "READY").unwrap();
    while !interrupt.requested() {
        std::thread::sleep(Duration::from_millis(1));
    }
    writeln!(stderr, "SIGNAL {}", interrupt.signal().unwrap()).unwrap();
    loop {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_first_signal_is_noted_and_the_second_ends_the_process_at_once() {
    if !own_binary_runs() {
        eprintln!("NOT RUN: this binary cannot start itself (qemu-user without binfmt_misc)");
        return;
    }
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::XCPU, 24)] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env(CHILD, "1")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut next = || lines.find_map(|line| line.ok().filter(|l| l.len() > 1));
        let pid = Pid::from_child(&child);
        assert_eq!(next().as_deref(), Some("READY"));
        kill_process(pid, signal).unwrap();
        assert_eq!(next(), Some(format!("SIGNAL {number}")));
        assert_eq!(child.try_wait().unwrap(), None);
        kill_process(pid, signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(128 + number));
    }
}

fn own_binary_runs() -> bool {
    let list = Command::new(std::env::current_exe().unwrap()).arg("--list").output();
    list.is_ok_and(|output| output.status.success())
}

#[test]
fn an_interrupt_that_is_never_requested_stays_unset() {
    let interrupt = Interrupt::never();
    assert!(!interrupt.requested());
    assert_eq!(interrupt.signal(), None);
}
