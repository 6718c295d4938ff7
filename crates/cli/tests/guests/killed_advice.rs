//! `numalab advise` under kill -9: no process outlives it, and its advice is complete or absent.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::killed::{is_left, kill_within, kills, names_in};
use crate::programs::lab::{Lab, lab};
use crate::schemas;

/// Time from the start to the end of one that is not killed.
const TAKES: Duration = Duration::from_millis(2500);

fn advise(lab: &Lab, place: &tempfile::TempDir) -> Child {
    let mut run = Command::new(env!("CARGO_BIN_EXE_numalab"));
    run.args(["advise", "--emulate", "2", "--cpus", "4", "--emulate-cache", "8K,32K"]);
    run.args(["--emulate-stages", "core,owners", "--try", "1", "--blocks", "6"]);
    run.args(["--format", "json", "-q", "-o", "advice.json", "--"]);
    run.args([&lab.program("answers"), "one-node", "1"]).current_dir(place.path());
    run.env("NUMALAB_EMULATOR", &lab.plugin).env("TMPDIR", place.path().join("temporary"));
    run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    run.spawn().expect("it starts")
}

#[test]
fn advice_that_is_killed_again_and_again_leaves_nothing_behind() {
    let Some(lab) = lab() else { return };
    let place = tempfile::tempdir().expect("a directory");
    let (advice, temporary) = (place.path().join("advice.json"), place.path().join("temporary"));
    fs::create_dir(&temporary).expect("made");
    let mut killed = 0;
    for count in 0.. {
        let status = kill_within(advise(lab, &place), count, TAKES);
        assert!(status.code().is_none_or(|code| code == 0), "kill {killed}: {status}");
        killed += u64::from(status.code().is_none());
        is_left(place.path());
        if let Ok(text) = fs::read(&advice) {
            schemas::document(&text);
            fs::remove_file(&advice).expect("removed");
        }
        if killed >= kills(5) {
            break;
        }
    }
    let output = advise(lab, &place).wait_with_output().expect("it ended");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document = schemas::document(&fs::read(&advice).expect("advice"));
    assert!(document["options"][0]["measured"].is_object(), "{document:#}");
    for (directory, expected) in [(&*temporary, 0), (place.path(), 2)] {
        let names = names_in(directory);
        assert_eq!(names.len(), expected, "{names:?}");
    }
}
