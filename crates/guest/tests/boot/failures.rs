//! Guests that fail in every way, and leave nothing behind.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use numalab_formats::memory_emulator::{MemoryCosts, describe};
use numalab_guest::{EmulatorMode, Guest, GuestError, Limits, MemoryEmulator, Phase, Runtime};
use numalab_guest_agent::Stream;
use numalab_topology::Machine;

use crate::lab::{Lab, PARENT, qemus_of, shell, small};

#[test]
fn a_panic_is_reported_with_the_end_of_the_console() {
    let Some(lab) = Lab::open() else { return };
    let error = lab.failing(small(), "echo c > /proc/sysrq-trigger");
    let GuestError::Panicked { line, console } = &error else {
        panic!("{error}");
    };
    assert!(line.contains("sysrq triggered crash"), "{line}");
    assert!(console.0.iter().any(|line| line.contains("sysrq_handle_crash")), "{error}");
}

/// Makes the lab start `real` by a script that does `instead` for the first `times` starts; the
/// returned file has a line for each start.
fn fail_first(lab: &mut Lab, real: &Path, times: u32, instead: &str) -> PathBuf {
    let directory = lab.directory.path();
    let (count, program) = (directory.join("count"), directory.join("qemu"));
    let _ = fs::remove_file(&count);
    let script = format!(
        "#!/bin/sh\necho x >> {count}\n[ $(wc -l < {count}) -gt {times} ] && exec {real} \"$@\"\n\
         {instead}\n",
        count = count.display(),
        real = real.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    lab.qemu.program = program;
    count
}

fn lines_of(file: &Path) -> usize {
    fs::read_to_string(file).unwrap().lines().count()
}

#[test]
fn a_qemu_that_fails_an_assertion_is_restarted_but_not_for_ever() {
    let Some(mut lab) = Lab::open() else { return };
    let real = lab.qemu.program.clone();
    let fails = "echo \"f: Assertion \\`x' failed.\" >&2; kill -ABRT $$";
    let count = fail_first(&mut lab, &real, 2, fails);
    let ran = lab.run(small(), &shell("echo here")).unwrap();
    assert_eq!((ran.output.as_str(), lines_of(&count)), ("here\n", 3));
    let [first, second] = &ran.outcome.complaints[..] else { panic!("{:?}", ran.outcome) };
    assert!(first.starts_with("restarted: ") && first == second, "{first}");
    assert!(first.contains("Assertion `x' failed"), "{first}");

    let count = fail_first(&mut lab, &real, 9, fails);
    let error = lab.failing(small(), "echo here");
    assert!(error.to_string().contains("Assertion `x' failed"), "{error}");
    assert_eq!(lines_of(&count), 3);
}

#[test]
fn a_command_that_does_not_end_and_a_boot_that_takes_too_long_meet_their_deadlines() {
    let Some(mut lab) = Lab::open() else { return };
    let run = Some(Duration::from_secs(1));
    let limits = Limits { run, ..Limits::default() };
    let error = lab.failing(Guest { limits, ..small() }, "exec sleep 1000");
    assert!(matches!(error, GuestError::Hung { phase: Phase::Run, .. }), "{error}");

    let real = lab.qemu.program.clone();
    let count = fail_first(&mut lab, &real, 0, "");
    let boot = Duration::from_millis(200);
    let limits = Limits { boot, ..Limits::default() };
    let error = lab.failing(Guest { limits, ..small() }, "true");
    let shown = error.to_string();
    assert!(shown.starts_with("the guest did not boot within 200ms"), "{shown}");
    assert_eq!(lines_of(&count), 2, "restarted once");
}

#[test]
fn running_out_of_memory_differs_from_other_ends() {
    let Some(lab) = Lab::open() else { return };
    let error = lab.failing(small(), "tail /dev/zero");
    let GuestError::OutOfMemory { line, .. } = &error else {
        panic!("{error}");
    };
    assert!(line.contains("Killed process") && line.contains("(tail)"), "{line}");
}

#[test]
fn a_killed_qemu_and_a_request_to_stop_end_the_wait() {
    let Some(lab) = Lab::open() else { return };
    let run = lab.directory.path().join("run");
    let killer = || {
        for process in qemus_of(&run) {
            Command::new("kill").args(["-9", &process.to_string()]).status().unwrap();
        }
    };
    let launch = lab.launch(small());
    let mut sink = |_: Stream, _: &[u8]| killer();
    let task = shell("echo up; exec sleep 1000");
    let error = launch.run(&lab.runtime, &task, &mut sink, &|| false).unwrap_err();
    assert!(matches!(error, GuestError::Died { .. }), "{error}");
    lab.nothing_is_left();

    let start = Instant::now();
    let stop = || start.elapsed() > Duration::from_millis(300);
    let error = launch.run(&lab.runtime, &task, &mut sink, &stop).unwrap_err();
    assert!(matches!(error, GuestError::Stopped), "{error}");
    lab.nothing_is_left();
}

#[test]
fn arguments_qemu_refuses_are_quoted() {
    let Some(lab) = Lab::open() else { return };
    let guest = Guest { memory_emulator: Some(without_plugin(&small().machine)), ..small() };
    let error = lab.failing(guest, "true");
    assert!(matches!(error, GuestError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("no-such-plugin.so"), "{error}");
}

fn without_plugin(machine: &Machine) -> MemoryEmulator {
    MemoryEmulator {
        plugin: PathBuf::from("/no-such-plugin.so"),
        mode: EmulatorMode::Count,
        machine: describe(machine, &MemoryCosts::default()).unwrap(),
    }
}

/// Not a test by itself: the process that the next test kills.
#[test]
fn child_that_owns_a_guest() {
    let Some(parent) = std::env::var_os(PARENT).map(PathBuf::from) else {
        return;
    };
    let Some(mut lab) = Lab::open() else { return };
    lab.runtime = Runtime::at(parent.join("run")).unwrap();
    let mut sink = |_: Stream, _: &[u8]| println!("the guest is up");
    let task = shell("echo up; exec sleep 1000");
    let ended = lab.launch(small()).run(&lab.runtime, &task, &mut sink, &|| false);
    panic!("ended: {ended:?}");
}

#[test]
fn only_files_outlive_a_killed_owner_and_the_next_start_removes_them() {
    let Some(lab) = Lab::open() else { return };
    let run = lab.directory.path().join("run");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "failures::child_that_owns_a_guest", "--nocapture"])
        .env(PARENT, lab.directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let up = output.lines().map_while(Result::ok).any(|line| line.contains("the guest is up"));
    assert!(up, "the guest came up");
    let guests = lab.runtime.guests().unwrap();
    assert_eq!(guests.len(), 1, "{guests:?}");
    assert_eq!(guests[0].record.owner, child.id());
    let qemu = guests[0].qemu.unwrap();

    child.kill().unwrap();
    child.wait().unwrap();
    let start = Instant::now();
    while qemus_of(&run).contains(&qemu) {
        assert!(start.elapsed() < Duration::from_secs(120), "QEMU outlives its owner");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(guests[0].directory.exists());
    Runtime::at(&run).unwrap();
    lab.nothing_is_left();
}
