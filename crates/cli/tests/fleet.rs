//! `numalab fleet` from outside, without SLURM.

use std::path::Path;
use std::process::{Command, Output};

const NUMALAB: &str = env!("CARGO_BIN_EXE_numalab");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn run(command: &mut Command) -> Output {
    command.output().expect("it starts")
}

fn prints(command: &mut Command) -> String {
    let output = run(command);
    assert_eq!(output.status.code(), Some(0), "{command:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn fleet(arguments: &[&str]) -> Command {
    let mut command = Command::new(NUMALAB);
    command.arg("fleet").args(arguments);
    command
}

#[test]
fn a_dry_run_prints_script_and_commands_and_writes_nothing() {
    let directory = tempfile::tempdir().expect("made");
    let place = directory.path().join("fleet");
    let place = place.to_str().expect("UTF-8");
    let shown = prints(&mut fleet(&["submit", place, "--hosts", "a1,a2", "--dry-run"]));
    assert!(shown.contains("measure --quick --quiet --output"), "{shown}");
    assert!(shown.contains("sbatch --parsable --hold --array=0-1 "), "{shown}");
    assert!(shown.contains("update JobId=JOB_1 ReqNodeList=a2\nrelease JOB\n"), "{shown}");
    assert!(!Path::new(place).exists());
}

#[test]
fn without_slurm_or_its_cluster_submitting_is_exit_3_with_what_mends_it() {
    let directory = tempfile::tempdir().expect("made");
    let place = directory.path().join("fleet");
    let place = place.to_str().expect("UTF-8");
    let told = |path: &Path| {
        let mut command = fleet(&["submit", place, "--partition", "p"]);
        let output = command.env("PATH", path).output().expect("numalab starts");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(3), "{said}");
        said
    };
    let none = directory.path().join("none");
    assert!(told(&none).contains("apt-get install slurm-client"), "{}", told(&none));
    // As SLURM's own client says it where no cluster is configured.
    let programs = directory.path().join("programs");
    std::fs::create_dir(&programs).expect("made");
    let sinfo = "#!/bin/sh\necho 'sinfo: fatal: Could not establish a configuration source' >&2\n\
                 exit 1\n";
    std::fs::write(programs.join("sinfo"), sinfo).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(programs.join("sinfo"), mode).expect("executable");
    let said = told(&programs);
    assert!(said.contains("finds no SLURM cluster") && said.contains("SLURM_CONF"), "{said}");
    assert!(!Path::new(place).exists());
}

#[test]
fn what_is_not_there_is_exit_2_and_says_what_was_expected() {
    let directory = tempfile::tempdir().expect("made");
    let place = directory.path().to_str().expect("UTF-8");
    for (arguments, words) in [
        (["collect", place], "expected HOST/RUN/run.json"),
        (["report", place], "nothing collected"),
    ] {
        let output = run(&mut fleet(&arguments));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
}
