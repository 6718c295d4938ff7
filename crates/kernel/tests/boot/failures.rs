//! Failures are reported with their place.

use crate::qemu::{FAILED, PANICKED, Qemu, REFUSED};

fn one_node(cpus: &str) -> [String; 4] {
    ["-smp", cpus, "-m", "256M"].map(str::to_owned)
}

#[test]
fn an_exception_is_reported_with_its_cpu_and_address() {
    let Some(qemu) = Qemu::open() else { return };
    let boot = qemu.boot(&one_node("3"), "work=fault");
    assert_eq!(boot.status, Some(PANICKED), "{}", boot.text);
    let line = boot.text.lines().find(|line| line.starts_with("PANIC: ")).expect("a panic");
    assert!(line.contains("exception 14 (page fault) on the cpu with APIC id 2 at 0x"), "{line}");
    assert!(line.ends_with("address 0x8"), "{line}");
}

/// The number of running jobs would be lost, and with it the end of the first job's borrows.
#[test]
fn a_job_that_runs_jobs_ends_the_kernel() {
    let Some(qemu) = Qemu::open() else { return };
    let boot = qemu.boot(&one_node("2"), "work=nested");
    assert_eq!(boot.status, Some(PANICKED), "{}", boot.text);
    assert!(boot.text.contains("a job runs jobs"), "{}", boot.text);
}

#[test]
fn a_wrong_word_is_refused_with_the_expected_form() {
    let Some(qemu) = Qemu::open() else { return };
    let boot = qemu.boot(&one_node("1"), "alloc=both");
    assert_eq!(boot.status, Some(REFUSED), "{}", boot.text);
    assert!(boot.text.contains("REFUSED: `alloc=both`: expected numa or blind"), "{}", boot.text);
    let boot = qemu.boot(&one_node("1"), "numa=fake=4G,4G");
    assert_eq!(boot.status, Some(REFUSED), "{}", boot.text);
    assert!(boot.text.contains("REFUSED: the nodes need 8589934592 bytes"), "{}", boot.text);
}

#[test]
fn an_impossible_workload_fails_with_its_reason() {
    let Some(qemu) = Qemu::open() else { return };
    let results = qemu.boot(&one_node("2"), "work=test_numa size=200M runs=1").results(FAILED);
    let (work, message) = results.failure.expect("a failure");
    assert_eq!(work, "test_numa");
    assert!(message.starts_with("2 arenas of 200 MiB do not fit into "), "{message}");
    assert!(message.contains(": expected memory of at least 512 MiB, or size="), "{message}");
    // One node alone does not have enough.
    let words = "work=test_numa size=90M runs=1 numa=fake=4 policy=exact:0 count=1000";
    let (_, message) = qemu.boot(&one_node("2"), words).results(FAILED).failure.expect("a failure");
    assert!(message.contains("no 512 contiguous eligible frames"), "{message}");
    let results = qemu.boot(&one_node("2"), "work=test_numa threads=3").results(FAILED);
    let (_, message) = results.failure.expect("a failure");
    assert_eq!(message, "3 threads on 2 cpus: expected a cpu for each");
}
