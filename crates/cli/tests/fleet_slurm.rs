//! `numalab fleet` as a real job array.

#[path = "slurm_lab/mod.rs"]
#[expect(dead_code, reason = "the lab has more than one test program needs")]
mod slurm_lab;

mod schemas;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const NUMALAB: &str = env!("CARGO_BIN_EXE_numalab");

fn prints(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Both nodes are this machine: what counts is that each has a task of its own.
#[test]
fn a_job_array_measures_every_host_of_a_partition_and_is_collected_as_it_grows() {
    let Some(lab) = slurm_lab::lab() else { return };
    let place = lab.directory().join("fleet");
    let place = place.to_str().expect("UTF-8");
    let in_lab = |arguments: &[&str]| {
        let mut command = lab.command(NUMALAB);
        command.arg("fleet").args(arguments);
        command
    };
    let measure = ["--", "latency", "--size", "64K,1M", "--cpus", "0", "--budget", "2s"];
    let submitted =
        prints(&mut in_lab(&[&["submit", "--partition", "lab", place][..], &measure].concat()));
    assert!(submitted.contains(": 2 hosts\n"), "{submitted}");
    let begun = Instant::now();
    while !prints(lab.command("squeue").arg("--noheader")).trim().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(120), "the jobs do not end");
        thread::sleep(Duration::from_millis(200));
    }
    for host in ["n1", "n2"] {
        let hosts = Path::new(place).join("hosts").join(host);
        let runs = fs::read_dir(&hosts).unwrap_or_else(|error| panic!("{host}: {error}"));
        assert_eq!(runs.count(), 1, "{host} was measured once");
    }
    let collected = prints(&mut in_lab(&["collect", place]));
    assert!(collected.contains(": 2 runs read, 0 unchanged, 0 unreadable"), "{collected}");
    let again = prints(&mut in_lab(&["collect", place]));
    assert!(again.contains(": 0 runs read, 2 unchanged"), "{again}");
    let report = prints(&mut in_lab(&["report", place, "--format", "json"]));
    let json = schemas::document(&report);
    assert_eq!((&json["schema"], &json["hosts"]), (&"numalab/fleet-2".into(), &2.into()));
    assert_eq!(json["untested"][0]["alike"], 2);
    let page = prints(&mut in_lab(&["report", place]));
    assert!(page.contains("n2") && page.contains("2 hosts of its kind; a test takes 10"), "{page}");
}
