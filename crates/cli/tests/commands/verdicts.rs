//! Compares two commits, as the continuous integration of other projects does.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::command::{NUMALAB, stderr, stdout};

fn integrations() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations")
}

fn sh(place: &Path, script: &str) -> Output {
    let mut bash = Command::new("bash");
    bash.args(["-ec", script]).current_dir(place).env("NUMALAB", NUMALAB);
    bash.env("COMPARE", integrations().join("ci/compare-commits")).output().expect("bash")
}

fn said(output: &Output) -> String {
    stdout(output) + &stderr(output)
}

/// Creates commits `good` and `slow`; in the latter the program reports twice the time.
fn repository(place: &Path) {
    let output = sh(
        place,
        "git init -q; git config user.name n; git config user.email n@localhost
         commit() { git add -A; git commit -qm \"$1\"; git tag \"$1\"; }
         echo 'echo \"took $((100 + RANDOM % 3)) s\"' > program; commit good
         echo 'echo \"took $((200 + RANDOM % 3)) s\"' > program; commit slow",
    );
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_slower_commit_fails_with_a_verdict_to_comment_and_an_equal_one_passes() {
    let place = tempfile::tempdir().expect("made");
    repository(place.path());
    let compare = |base: &str, head: &str| {
        let script = format!(
            "\"$COMPARE\" {base} {head} 'cp program built' 'bash ./built' --blocks 8 --seed 1 \
             --metric 'took {{s}} s'"
        );
        sh(place.path(), &script)
    };
    let output = compare("good", "slow");
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    let verdict = fs::read_to_string(place.path().join("verdict.md")).expect("a verdict");
    let first = verdict.lines().next().unwrap_or_default();
    assert!(first.starts_with("**") && first.ends_with(": slower**"), "{verdict}");
    assert!(verdict.contains("| ") && verdict.contains("worse"), "{verdict}");
    let output = compare("good", "good");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let left = sh(place.path(), "git worktree list | wc -l");
    assert_eq!(said(&left).trim(), "1", "its checkouts are gone");
}

/// Runs the action's steps like GitHub, except the comment, which needs GitHub.
#[test]
fn the_steps_of_the_github_action_give_the_exit_code_and_a_summary() {
    let place = tempfile::tempdir().expect("made");
    repository(place.path());
    let action = fs::read_to_string(integrations().join("github/action.yml")).expect("there");
    let step = action.split("run: |\n").nth(1).expect("a step");
    let step = step.lines().take_while(|line| line.starts_with("        "));
    let step: String = step.map(|line| format!("{}\n", line.trim())).collect();
    let step = step.replace("${{ inputs.options }}", "--blocks 8 --seed 1 --metric 'took {s} s'");
    assert!(!step.contains("${{"), "{step}");
    let script = format!(
        "export GITHUB_ACTION_PATH={}/github GITHUB_OUTPUT=output GITHUB_STEP_SUMMARY=summary\n\
         export BASE=good HEAD=slow BUILD='cp program built' RUN='bash ./built'\n{step}",
        integrations().display()
    );
    let output = sh(place.path(), &script);
    assert!(output.status.success(), "{}", said(&output));
    let read = |name| fs::read_to_string(place.path().join(name)).expect("written");
    assert_eq!(read("output"), "code=4\n");
    assert!(read("summary").contains(": slower**"), "{}", read("summary"));
}
