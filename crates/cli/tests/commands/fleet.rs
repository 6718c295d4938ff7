//! `numalab fleet` from outside, without SLURM.

use std::fs;
use std::path::Path;

use crate::command::{numalab, prints, run, stderr, stdout};

#[test]
fn a_dry_run_prints_script_and_commands_and_writes_nothing() {
    let directory = tempfile::tempdir().expect("made");
    let place = directory.path().join("fleet");
    let place = place.to_str().expect("UTF-8");
    let command = ["fleet", "submit", place, "--hosts", "a1,a2", "--dry-run"];
    let shown = prints(&command);
    assert!(shown.contains("measure --quick --quiet --output"), "{shown}");
    assert!(shown.contains("sbatch --parsable --hold --array=0-1 "), "{shown}");
    assert!(shown.contains("update JobId=JOB_1 ReqNodeList=a2\nrelease JOB\n"), "{shown}");
    assert!(shown.contains("#SBATCH --time=10\n"), "{shown}");
    let limited = prints(&[&command[..], &["--at-once", "1", "--minutes", "45"]].concat());
    assert!(limited.contains(" --array=0-1%1 "), "{limited}");
    assert!(limited.contains("#SBATCH --time=45\n"), "{limited}");
    assert!(!Path::new(place).exists());
}

#[test]
fn without_slurm_or_its_cluster_submitting_is_exit_3_with_the_remedy() {
    let directory = tempfile::tempdir().expect("made");
    let place = directory.path().join("fleet");
    let place = place.to_str().expect("UTF-8");
    let error_of = |path: &Path| {
        let mut command = numalab(&["fleet", "submit", place, "--partition", "p"]);
        let output = command.env("PATH", path).output().expect("numalab starts");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        said
    };
    let none = directory.path().join("none");
    assert!(error_of(&none).contains("apt-get install slurm-client"), "{}", error_of(&none));
    // Imitates SLURM's client on a machine without a cluster.
    let programs = directory.path().join("programs");
    fs::create_dir(&programs).expect("made");
    let sinfo = "#!/bin/sh\necho 'sinfo: fatal: Could not establish a configuration source' >&2\n\
                 exit 1\n";
    fs::write(programs.join("sinfo"), sinfo).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(programs.join("sinfo"), mode).expect("executable");
    let said = error_of(&programs);
    assert!(said.contains("finds no SLURM cluster") && said.contains("SLURM_CONF"), "{said}");
    assert!(!Path::new(place).exists());
}

#[test]
fn missing_files_are_exit_2_with_the_expected_form() {
    let directory = tempfile::tempdir().expect("made");
    let place = directory.path().to_str().expect("UTF-8");
    for (arguments, words) in [
        (["collect", place], "expected HOST/RUN/run.json"),
        (["report", place], "nothing collected"),
    ] {
        let output = run(&[&["fleet"], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/fleet/hosts");

#[test]
fn a_fleet_of_which_no_run_can_be_read_is_bad_input() {
    let directory = tempfile::tempdir().expect("made");
    let run_of = directory.path().join("hosts/n01/run");
    fs::create_dir_all(&run_of).expect("made");
    fs::write(run_of.join("run.json"), "{}").expect("written");
    let output = run(&["fleet", "collect", directory.path().to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("n01/run: ") && said.contains("none of its 1 runs"), "{said}");
}

#[test]
fn a_store_of_an_earlier_version_is_refused_and_its_runs_are_collected_again() {
    let directory = tempfile::tempdir().expect("made");
    let place = directory.path().to_str().expect("UTF-8");
    std::os::unix::fs::symlink(HOSTS, directory.path().join("hosts")).expect("linked");
    let earlier = directory.path().join("fleet.sqlite");
    fs::write(&earlier, "SQLite format 3\0").expect("written");
    let output = run(&["fleet", "report", place]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("fleet.sqlite: a fleet store of an earlier version"), "{said}");
    assert!(said.contains("numalab fleet collect DIR"), "{said}");
    let shown = prints(&["fleet", "collect", place, "--dry-run"]);
    assert!(shown.contains("fleet.jsonl: 12 runs to read, 0 unchanged"), "{shown}");
    let output = run(&["fleet", "collect", place]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("fleet.sqlite: a store of an earlier version"), "{output:?}");
    assert!(stdout(&output).contains("fleet.jsonl: 12 runs read"), "{output:?}");
    assert!(earlier.exists());
    let output = run(&["fleet", "collect", place]);
    assert_eq!(stderr(&output), "");
    assert!(prints(&["fleet", "report", place]).contains("n07"));
}
