//! `numalab fleet health` on this machine, run by users and by schedulers.

use std::path::Path;
use std::process::{Command, Output};

use crate::classes::{class, measured};
use crate::command::{NUMALAB, stderr, stdout};

use crate::schemas;

fn health(baseline: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(NUMALAB);
    command.args(["fleet", "health", "--budget", "2s", "--baseline"]).arg(baseline).args(options);
    command.output().expect("it starts")
}

fn said(output: &Output) -> String {
    stdout(output) + &stderr(output)
}

/// Exit code and ending for a machine with something worse: other load that disturbs most of a
/// check makes it uncertain, and the machine may be busy throughout.
const WORSE: [(i32, &str, &str); 2] =
    [(4, "", "failing"), (6, " (not certain: other load)", "disturbed")];

/// Returns the outcome of a check that must find something worse.
fn worse(output: &Output) -> (&'static str, &'static str) {
    let code = output.status.code();
    let worse = WORSE.into_iter().find(|worse| code == Some(worse.0));
    let (_, ending, severity) = worse.unwrap_or_else(|| panic!("{code:?}: {}", said(output)));
    (ending, severity)
}

#[test]
fn a_machine_slower_than_its_class_is_failing_with_a_reason_in_one_line() {
    let place = tempfile::tempdir().expect("made");
    let run = measured(place.path());
    // Other load may disturb the run and the checks, so the factors exceed its effect.
    let fast = class(&run, &place.path().join("fast"), 0.01, 1);
    let output = health(&fast, &["-q"]);
    let line = said(&output);
    let begins = line.starts_with("node ") && line.contains(" latency ");
    let ends = format!(" % above the baseline{}\n", worse(&output).0);
    assert!(begins && line.ends_with(&ends), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");

    let output = health(&fast, &["-q", "--format", "json"]);
    let json = schemas::document(&output.stdout);
    assert_eq!(json["severity"], worse(&output).1);
    assert_eq!(json["findings"][0]["symptom"], "slower");

    let slow = class(&run, &place.path().join("slow"), 100.0, 1);
    let output = health(&slow, &["-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(said(&output), "healthy: no figure is worse than in 3 runs\n");
}

#[test]
fn missing_memory_is_failing_whatever_the_figures() {
    let place = tempfile::tempdir().expect("made");
    let large = class(&measured(place.path()), &place.path().join("large"), 5.0, 4);
    let output = health(&large, &["-q"]);
    let line = said(&output);
    assert_eq!(output.status.code(), Some(4), "{line}");
    assert!(line.starts_with("node ") && line.contains("in the baseline, DIMM missing?"), "{line}");
}

#[test]
fn a_baseline_that_cannot_judge_is_refused_with_what_makes_one() {
    let place = tempfile::tempdir().expect("made");
    let run = measured(place.path());
    let output = health(&run, &[]);
    assert_eq!(output.status.code(), Some(2));
    let expected =
        "found 1 run, expected 3 or more, such as those of `numalab measure --quick --repeat 2`";
    assert!(said(&output).contains(expected), "{}", said(&output));
    let class = class(&run, &place.path().join("class"), 1.0, 1);
    let output = health(&class, &["--degraded", "30"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("--degraded 30 --failing 20: expected"), "{}", said(&output));
    let plan = health(&class, &["--dry-run"]);
    assert!(said(&plan).contains("/32M\n1 cell, about"), "{}", said(&plan));
}

/// The contract with NHC: checks are bash functions that call `die` and `log`.
#[test]
fn the_check_for_nhc_fails_with_the_reason_and_passes_otherwise() {
    let place = tempfile::tempdir().expect("made");
    let run = measured(place.path());
    let large = class(&run, &place.path().join("large"), 5.0, 4);
    let slow = class(&run, &place.path().join("slow"), 5.0, 1);
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/nhc/numalab.nhc");
    let nhc = |baseline: &Path| {
        let script = "die() { echo \"died: $2\"; }; log() { echo \"log: $*\"; }; . \"$0\"; \
                      check_numalab_health \"$1\" --budget 2s";
        let mut bash = Command::new("bash");
        bash.args(["-c", script]).arg(&check).arg(baseline).env("NUMALAB", NUMALAB);
        bash.output().expect("bash is there")
    };
    let failing = nhc(&large);
    assert_eq!(failing.status.code(), Some(1), "{}", said(&failing));
    let reason = said(&failing);
    assert!(reason.starts_with("died: check_numalab_health:  node "), "{reason}");
    assert!(reason.contains("DIMM missing?"), "{reason}");
    let healthy = nhc(&slow);
    assert_eq!((healthy.status.code(), &*said(&healthy)), (Some(0), ""));
}

#[test]
fn the_units_for_systemd_are_as_systemd_wants_them() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/systemd");
    let place = tempfile::tempdir().expect("made");
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--man=no"]);
    for name in ["numalab-health.service", "numalab-health.timer"] {
        // The command's path is different here.
        let unit = std::fs::read_to_string(units.join(name)).expect("read");
        let unit = unit.replace("/usr/bin/numalab", NUMALAB);
        let file = place.path().join(name);
        std::fs::write(&file, unit).expect("written");
        command.arg(file);
    }
    let output = command.output().expect("scripts/setup test installs systemd");
    assert_eq!((output.status.code(), &*said(&output)), (Some(0), ""));
}

/// Installs ReFrame from PyPI into a separate environment: half a minute.
#[test]
fn the_check_for_reframe_fails_and_passes_in_reframe() {
    if std::env::var_os("NUMALAB_LONG").is_none_or(|value| value != "1") {
        println!("NOT RUN: ReFrame from PyPI; NUMALAB_LONG=1 runs it");
        return;
    }
    let place = tempfile::tempdir().expect("made");
    let run = measured(place.path());
    let check = Path::new(env!("CARGO_MANIFEST_DIR"));
    let check = check.join("../../integrations/reframe/numalab_health.py");
    let script = format!(
        "set -e; python3 -m venv python; python/bin/pip -q install reframe-hpc==4.10.4 >&2\n\
         export PATH=$PATH:{} HOME=$PWD\n\
         for class in large slow; do\n\
           python/bin/reframe -c {} -S baseline=$PWD/$class --performance-report -r 2>&1 || true\n\
         done",
        Path::new(NUMALAB).parent().expect("a directory").display(),
        check.display(),
    );
    class(&run, &place.path().join("large"), 5.0, 4);
    class(&run, &place.path().join("slow"), 5.0, 1);
    let mut bash = Command::new("bash");
    let output = bash.args(["-c", &script]).current_dir(place.path()).output().expect("bash");
    let said = said(&output);
    let (large, slow) = said.split_once("PERFORMANCE REPORT").expect("two reports");
    assert!(large.contains("\"symptom\": \"memory-missing\""), "{said}");
    assert!(slow.contains("memory-node-0-memory-latency"), "{said}");
}
