//! Studies from outside: files as they are written, interruptions, and exit codes.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::command::{NUMALAB, ends, numalab_in, stderr, stdout};
use crate::schemas;

/// A place with a study file in it.
struct Place {
    directory: TempDir,
}

impl Place {
    /// Creates a study of `command`, which a shell runs and which prints `t = <number>`.
    fn with(command: &str, blocks: usize) -> Self {
        let study = format!(
            "name = \"s\"\nquestion = \"Is 12 more than 10?\"\n[rules]\nblocks = {blocks}\n\
             seed = 3\nrepeats = 1\n[[factor]]\nname = \"v\"\nlevels = [10, 12]\n[[workload]]\n\
             name = \"w\"\ncommand = [\"sh\", \"-c\", '''{command}''']\ntimeout-s = 60\n\
             [[workload.metric]]\nname = \"t\"\nunit = \"s\"\nbetter = \"lower\"\n\
             pattern = \"t = {{t}}\"\n"
        );
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("s.toml"), study).expect("written");
        Self { directory }
    }

    fn numalab(&self, arguments: &[&str]) -> Command {
        numalab_in(self.directory.path(), arguments)
    }

    /// Returns the output of a command that must end with `code`.
    fn ends(&self, arguments: &[&str], code: i32) -> (String, String) {
        ends(&mut self.numalab(arguments), code)
    }

    fn started(&self, arguments: &[&str]) -> Child {
        let mut command = self.numalab(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("numalab starts")
    }

    fn results(&self) -> PathBuf {
        let mut entries = fs::read_dir(self.directory.path().join("results")).expect("results");
        entries.next().expect("one run").expect("readable").path()
    }

    fn journal(&self) -> Option<String> {
        let mut entries = fs::read_dir(self.directory.path().join("results")).ok()?;
        let directory = entries.next()?.ok()?.path();
        fs::read_to_string(directory.join("journal.jsonl")).ok()
    }

    /// Waits until the journal has this number of whole lines.
    fn wait_for_lines(&self, lines: usize) {
        let begun = Instant::now();
        while self.journal().map_or(0, |text| text.matches('\n').count()) < lines {
            let journal = || self.journal().unwrap_or_default();
            let late = begun.elapsed() > Duration::from_secs(60);
            assert!(!late, "no {lines} lines in a minute: {}", journal());
            std::thread::sleep(Duration::from_millis(3));
        }
    }
}

fn samples(journal: &str) -> Vec<Value> {
    let lines = journal.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    lines.filter(|entry| entry["entry"] == "sample").collect()
}

/// Fails unless every cell has one undisturbed sample or two attempts.
fn assert_every_cell_once(journal: &str, cells: usize) {
    let mut attempts: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for sample in samples(journal) {
        let cell = format!("{} {} {}", sample["block"], sample["treatment"], sample["arm"]);
        attempts.entry(cell).or_default().push(sample["disturbances"].is_array());
    }
    assert_eq!(attempts.len(), cells, "{attempts:?}");
    for (cell, disturbed) in attempts {
        let all_but_last = &disturbed[..disturbed.len() - 1];
        let fits = disturbed.len() <= 2 && all_but_last.iter().all(|disturbed| *disturbed);
        assert!(fits, "{cell}: {disturbed:?}");
    }
}

/// Creates a directory with a program `probe` that prints this.
pub(crate) fn with_probe(place: &Path, name: &str, mode: u32, printed: &str) -> String {
    let directory = place.join(name);
    let program = directory.join("probe");
    fs::create_dir(&directory).expect("made");
    fs::write(&program, format!("#!/bin/sh\necho {printed}\n")).expect("written");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("executable");
    fs::set_permissions(&directory, Permissions::from_mode(mode)).expect("set");
    directory.to_str().expect("UTF-8").to_owned()
}

#[test]
fn root_runs_no_workload_that_anyone_may_have_put_on_the_path() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT RUN: the path of root, without being root");
        return;
    }
    let place = Place::with("probe {v}", 2);
    let open = with_probe(place.directory.path(), "open", 0o777, "t = 99");
    let good = with_probe(place.directory.path(), "good", 0o755, "t = 10");
    let path = std::env::var("PATH").expect("a path");
    let mut command = place.numalab(&["study", "run", "s.toml", "-q"]);
    ends(command.env("PATH", format!("{open}:{good}:{path}")), 0);
    let journal = place.journal().expect("a journal");
    let tens = samples(&journal).iter().all(|sample| sample["readings"][0]["value"] == 10.0);
    assert!(tens, "{journal}");
}

#[test]
fn a_study_is_run_reported_and_given_more_blocks() {
    let place = Place::with("echo t = {v}", 4);
    let (out, _) = place.ends(&["study", "run", "s.toml"], 0);
    assert!(
        out.contains("Answer: v 10 → 12: worse; w t changes by +20.0 % (medians 10.0 → 12.0 s)."),
        "{out}"
    );
    assert!(out.contains("worse (no variance)") && out.contains("report.html"), "{out}");
    let results = place.results();
    for file in ["study.toml", "run.json", "journal.jsonl", "report.md", "samples.csv"] {
        assert!(results.join(file).exists(), "no {file}");
    }
    let page = fs::read(results.join("report.html")).expect("a page");
    let directory = results.to_str().expect("UTF-8");
    let (shown, _) = place.ends(&["study", "show", directory], 0);
    assert!(shown.contains("question = \"Is 12 more than 10?\""), "{shown}");
    place.ends(&["report", directory], 0);
    assert_eq!(fs::read(results.join("report.html")).expect("a page"), page);
    let (out, _) = place.ends(&["report", directory], 0);
    assert!(out.contains("report.md"), "{out}");
    let (_, err) = place.ends(&["report", directory, "--fail-if", "worse"], 4);
    assert!(err.contains("worse by more than 2 %: w t (v 10 → 12)"), "{err}");
    place.ends(&["study", "resume", directory, "--blocks", "6", "--quiet"], 0);
    assert_every_cell_once(&place.journal().expect("a journal"), 7 * 3);
    let (json, _) = place.ends(&["report", directory, "--format", "json"], 0);
    let json = schemas::document(&json);
    assert_eq!(json["effects"][0]["found"]["verdict"], "worse");
    assert_eq!(json["effects"][0]["blocks"], 6);
}

#[test]
fn two_runs_of_a_study_are_set_side_by_side() {
    let run = |command: &str| {
        let place = Place::with(command, 6);
        let (_, err) = place.ends(&["study", "run", "s.toml"], 0);
        assert!(err.contains("s in 7 blocks, the first block shows how long it takes"), "{err}");
        assert!(err.contains("by the first block, about "), "{err}");
        let results = place.results().to_str().expect("UTF-8").to_owned();
        (place, results)
    };
    let (place, first) = run("echo t = {v}");
    let (_other_place, second) = run("echo t = $(({v} * 2))");
    let (out, _) = place.ends(&["compare", &first, &second], 0);
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let changed = "w t under v=10 +100.0 %, w t under v=12 +100.0 %: not judged, because one session per side";
    assert!(flat(&out).contains(changed), "{out}");
    assert!(out.contains("+20.0 %, worse (no variance)"), "what each found: {out}");
    assert!(out.contains("were not interleaved"), "{out}");
    let (_, err) = place.ends(&["compare", &first, &second, "--fail-if", "worse"], 7);
    assert!(err.contains(": one session per side does not show how much sessions vary"), "{err}");
    let (out, _) = place.ends(&["compare", &first, &second, "--format", "json"], 0);
    let json = schemas::document(&out);
    assert_eq!(
        (&json["judged"], &json["values"][1]["verdict"]),
        (&false.into(), &"not judged".into())
    );
    // A second session on each side shows how sessions differ; here they do not.
    for directory in [&first, &second] {
        place.ends(&["study", "resume", directory, "--blocks", "8", "--quiet"], 0);
    }
    let (out, _) = place.ends(&["compare", &first, &second], 0);
    assert!(out.contains("Worse: w t under v=10 +100.0 %, w t under v=12 +100.0 %."), "{out}");
    let (_, err) = place.ends(&["compare", &first, &second, "--fail-if", "worse"], 4);
    assert!(err.contains("worse than"), "{err}");
    let (out, _) = place.ends(&["compare", &first, &first, "--fail-if", "worse"], 0);
    assert!(out.contains("Nothing is shown to differ by more than 2 %."), "{out}");
    let (out, _) = place.ends(&["compare", &first, &second, "--format", "json"], 0);
    let json = schemas::document(&out);
    assert_eq!(json["values"][1]["verdict"], "worse");
    let empty = place.directory.path().to_str().expect("UTF-8");
    let (_, err) = place.ends(&["compare", &first, empty], 2);
    assert!(err.contains("numalab report"), "{err}");
}

/// Returns a copy of a study's results with these sessions of 150 blocks each, every 50th of which
/// lasts `far` times as long.
fn with_far_blocks(results: &Path, name: &str, sessions: usize, far: f64) -> String {
    let copy = results.with_file_name(name);
    fs::create_dir(&copy).expect("made");
    for file in ["study.toml", "run.json"] {
        fs::copy(results.join(file), copy.join(file)).expect("copied");
    }
    let journal = fs::read_to_string(results.join("journal.jsonl")).expect("a journal");
    let began = journal.lines().next().expect("a session");
    let mut sample = samples(&journal).into_iter().next().expect("a sample");
    sample["attempt"] = 0.into();
    sample.as_object_mut().expect("fields").remove("disturbances");
    let mut lines = Vec::new();
    for block in 0..150 * sessions {
        lines.extend((block % 150 == 0).then(|| began.to_owned()));
        for (treatment, arm, value) in [(0, "main", 10.0), (0, "again", 10.0), (1, "main", 12.0)] {
            let value = if block % 50 == 7 { value * far } else { value };
            sample["block"] = block.into();
            sample["treatment"] = treatment.into();
            sample["arm"] = arm.into();
            sample["readings"][0]["value"] = value.into();
            lines.push(sample.to_string());
        }
    }
    fs::write(copy.join("journal.jsonl"), lines.join("\n") + "\n").expect("written");
    copy.to_str().expect("UTF-8").to_owned()
}

#[test]
fn tails_of_two_runs_of_a_study_decide_the_exit_code_if_asked() {
    let place = Place::with("echo t = {v}", 6);
    place.ends(&["study", "run", "s.toml", "-q"], 0);
    let results = place.results();
    let of = |name: &str, sessions, far| with_far_blocks(&results, name, sessions, far);
    let (near, far) = (of("near", 3, 1.0), of("far", 3, 4.0));
    let (_, err) = place.ends(&["compare", &near, &far, "--fail-if", "tails"], 4);
    assert!(err.contains("tails worse than ") && err.contains("near by more than 2 %"), "{err}");
    let (out, _) = place.ends(&["compare", &near, &far, "--fail-if", "worse"], 0);
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("Tails worse: w t under v=10: p99"), "{out}");
    assert!(flat.contains("No median is shown to differ by more than 2 %."), "{out}");
    place.ends(&["compare", &far, &near, "--fail-if", "tails"], 0);
    let (one, other) = (of("one", 1, 1.0), of("other", 1, 4.0));
    place.ends(&["compare", &one, &other, "--fail-if", "tails"], 7);
}

/// Eight commits of a program; the fourth does not run, and the sixth makes it slower.
#[test]
fn git_bisect_finds_the_commit_that_made_it_worse() {
    let place = Place::with("sh ./{program}.sh", 6);
    let study = place.directory.path().join("s.toml");
    let text = fs::read_to_string(&study).expect("a study");
    let text = text.replace("\"v\"", "\"program\"").replace("[10, 12]", "[\"old\", \"new\"]");
    fs::write(&study, text).expect("written");
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=n", "-c", "user.email=n@n"]).args(arguments);
        command.current_dir(place.directory.path()).stdin(Stdio::null());
        let output = command.output().expect("git starts");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "git {arguments:?}: {text}");
        text
    };
    let write = |name: &str, text: String| {
        fs::write(place.directory.path().join(name), text).expect("written");
    };
    git(&["init", "-q"]);
    write(".gitignore", "results\n".to_owned());
    write("old.sh", "echo t = 10\n".to_owned());
    for commit in 1..=8 {
        let time = if commit < 6 { 10 } else { 13 };
        let end = if commit == 4 { "exit 1\n" } else { "" };
        write("new.sh", format!("# {commit}\n{end}echo t = {time}\n"));
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", &format!("commit {commit}")]);
    }
    git(&["bisect", "start", "HEAD", "HEAD~7"]);
    let program = NUMALAB;
    // The command shown in `numalab study run --help`.
    let script = format!(
        "{program} study run s.toml -q --fail-if worse; r=$?; [ $r = 0 ] || [ $r = 4 ] || exit 125; exit $r"
    );
    let found = git(&["bisect", "run", "sh", "-c", &script]);
    assert!(found.contains("is the first bad commit"), "{found}");
    assert!(found.contains("commit 6"), "{found}");
}

#[test]
fn finished_cells_survive_every_kill_and_no_sample_is_taken_twice() {
    // Far more than six sessions can take, however late each is killed.
    let place = Place::with("sleep 0.01; echo t = $(( {v} + $$ % 3 ))", 24);
    let mut before = String::new();
    let mut lines = 2;
    for session in 0..6 {
        let directory = (session > 0).then(|| place.results());
        let directory = directory.as_ref().and_then(|path| path.to_str());
        let mut running = match directory {
            None => place.started(&["study", "run", "s.toml", "--quiet"]),
            Some(directory) => place.started(&["study", "resume", directory, "--quiet"]),
        };
        place.wait_for_lines(lines);
        running.kill().expect("killed");
        running.wait().expect("it ended");
        let after = place.journal().expect("a journal");
        let whole = after.rfind('\n').map_or("", |end| &after[..=end]).to_owned();
        assert!(whole.starts_with(&before), "a finished sample is lost");
        before = whole;
        lines = before.matches('\n').count() + 7;
    }
    // The file after a power cut: a line without its end.
    let file = place.results().join("journal.jsonl");
    fs::write(&file, format!("{before}{{\"entry\":\"sam")).expect("written");
    let results = place.results();
    let directory = results.to_str().expect("UTF-8");
    place.ends(&["study", "resume", directory, "--quiet"], 0);
    let after = place.journal().expect("a journal");
    assert!(after.starts_with(&before), "a finished sample is lost");
    assert_every_cell_once(&after, 25 * 3);
}

#[test]
fn a_workload_dies_with_numalab_however_it_dies() {
    let place = Place::with("echo $$ > pid; sleep 600; echo t = {v}", 2);
    let mut running = place.started(&["study", "run", "s.toml", "--quiet"]);
    let file = place.directory.path().join("pid");
    let begun = Instant::now();
    let pid = loop {
        let text = fs::read_to_string(&file).unwrap_or_default();
        if text.ends_with('\n') {
            break text.trim().to_owned();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the workload did not start");
        std::thread::sleep(Duration::from_millis(5));
    };
    running.kill().expect("killed");
    running.wait().expect("it ended");
    let stat = PathBuf::from(format!("/proc/{pid}/stat"));
    let is_alive = || fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z "));
    while is_alive() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the workload still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_interrupted_study_names_the_command_that_resumes_it() {
    let place = Place::with("sleep 0.02; echo t = {v}", 20);
    let mut command = place.numalab(&["study", "run", "s.toml"]);
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    place.wait_for_lines(9);
    let sent = Command::new("kill").args(["-INT", &running.id().to_string()]).status();
    assert!(sent.expect("kill starts").success());
    let output = running.wait_with_output().expect("it ends");
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("numalab study resume results/s-"), "{message}");
    let out = stdout(&output);
    assert!(out.contains("it was interrupted"), "{out}");
}

#[test]
fn a_study_resumes_only_in_its_environment_with_its_question_and_alone() {
    let place = Place::with("sleep 0.02; echo t = {v}", 200);
    let mut running = place.started(&["study", "run", "s.toml", "--quiet"]);
    place.wait_for_lines(3);
    let results = place.results();
    let directory = results.to_str().expect("UTF-8");
    let (_, err) = place.ends(&["study", "resume", directory], 1);
    assert!(err.contains("another numalab (process"), "{err}");
    running.kill().expect("killed");
    running.wait().expect("it ended");

    let journal = results.join("journal.jsonl");
    let text = fs::read_to_string(&journal).expect("a journal");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
    let was = format!("\"kernel\":\"{}\"", kernel.trim());
    assert!(text.contains(&was), "{text}");
    fs::write(&journal, text.replacen(&was, "\"kernel\":\"2.6.16\"", 1)).expect("written");
    let (_, err) = place.ends(&["study", "resume", directory], 1);
    assert!(err.contains("kernel was 2.6.16, is ") && err.contains("start a new run"), "{err}");

    let study = results.join("study.toml");
    let question = fs::read_to_string(&study).expect("a study");
    fs::write(&study, question.replace("echo", "echo -n")).expect("written");
    let (_, err) = place.ends(&["study", "resume", directory], 2);
    assert!(err.contains("it has changed since"), "{err}");
}

#[test]
fn a_study_ends_when_it_is_precise_or_its_time_is_spent() {
    let place = Place::with("echo t = {v}", 30);
    let (out, _) = place.ends(&["study", "run", "s.toml", "--precision", "1%"], 0);
    // Six blocks are the fewest with an interval.
    assert!(out.contains("6 of 30 blocks are finished: every interval was narrow"), "{out}");

    let place = Place::with("sleep 0.1; echo t = {v}", 500);
    let (out, _) = place.ends(&["study", "run", "s.toml", "--budget", "2s"], 0);
    assert!(out.contains("blocks are finished: the time limit was reached"), "{out}");
    // Each takes at least a tenth of a second; a busy machine takes fewer.
    let samples = samples(&place.journal().expect("a journal"));
    assert!((1..=60).contains(&samples.len()), "{} samples in 2 s", samples.len());
}

#[test]
fn bad_input_missing_programs_and_failures_have_their_exit_codes() {
    let place = Place::with("echo t = {v}", 2);
    let file = place.directory.path().join("s.toml");
    let good = fs::read_to_string(&file).expect("a study");
    let change = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        fs::write(&file, good.replacen(from, to, 1)).expect("written");
    };
    let refused = |code: i32, words: &[&str]| {
        let (_, err) = place.ends(&["study", "run", "s.toml", "--quiet"], code);
        for word in words {
            assert!(err.contains(word), "no `{word}` in: {err}");
        }
    };
    change("blocks", "block");
    refused(2, &["s.toml", "line 4", "block"]);
    change("\"sh\"", "\"numalab-no-such-program\"");
    refused(3, &["numalab-no-such-program"]);
    assert!(!place.directory.path().join("results").exists(), "nothing is written before");
    change("echo t", "echo x");
    refused(1, &["workload w", "no t", "x = 10"]);
    change("echo t = {v}", "echo no room >&2; exit 7");
    refused(1, &["exit code 7", "no room"]);
    place.ends(&["study", "run", "nothing.toml"], 2);
    place.ends(&["report", "nowhere"], 2);
    let (_, err) = place.ends(&["study", "new", "a/b"], 2);
    assert!(err.contains("a/b"), "{err}");
}

#[test]
fn a_level_may_be_the_program_itself() {
    let place = Place::with("true", 1);
    let file = place.directory.path().join("s.toml");
    let study = fs::read_to_string(&file).expect("a study");
    let study = study.replace("[10, 12]", "[\"echo\", \"printf\"]");
    let study = study.replace("[\"sh\", \"-c\", '''true''']", "[\"{v}\", \"t = 10\"]");
    fs::write(&file, &study).expect("written");
    place.ends(&["study", "run", "s.toml", "--quiet"], 0);
    fs::write(&file, study.replace("printf", "numalab-no-such-program")).expect("written");
    let (_, err) = place.ends(&["study", "run", "s.toml", "--quiet"], 3);
    assert!(err.contains("workload w: `numalab-no-such-program` was not found"), "{err}");
    assert!(err.contains("to be a program that can be started"), "{err}");
}

#[test]
fn a_start_is_written_once_and_runs_unchanged() {
    let place = Place::with("true", 1);
    place.ends(&["study", "new", "mine"], 0);
    let (_, err) = place.ends(&["study", "new", "mine"], 2);
    assert!(err.contains("mine.toml already exists and was not changed"), "{err}");
    let (shown, _) = place.ends(&["study", "show", "mine.toml"], 0);
    assert!(shown.contains("warm-ups = 1") && shown.contains("[backend.host]"), "{shown}");
    let (list, _) = place.ends(&["study", "list"], 0);
    let of_noise = list.lines().find(|line| line.starts_with("noise "));
    assert!(of_noise.is_some_and(|line| line.contains("this machine find")), "{list}");
}

/// An empty file stayed, which the next attempt did not overwrite.
#[test]
fn a_start_that_cannot_be_written_leaves_no_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut limited = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" study new mine";
    ends(limited.current_dir(&directory).args(["-c", script, NUMALAB]), 1);
    assert_eq!(fs::read_dir(&directory).expect("readable").count(), 0);
}

/// Returns the system calls of a command and its children that could write a file or reach another
/// machine, and the programs that it started; `None` without strace. The cache is empty.
fn traced(place: &Place, arguments: &[&str]) -> Option<(String, Vec<String>, Vec<String>)> {
    let trace = place.directory.path().join("trace");
    let output = Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(&trace)
        .args(["-e", "trace=file,network,execve"])
        .arg(NUMALAB)
        .args(arguments)
        .env_remove("NUMALAB_CACHE")
        .env("XDG_CACHE_HOME", place.directory.path().join("cache"))
        .current_dir(place.directory.path())
        .output();
    let Ok(output) = output else {
        let required = std::env::var("NUMALAB_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required, "strace is required and missing: apt-get install strace");
        eprintln!("NOT RUN: no strace here");
        return None;
    };
    let (out, err) = (text_of(&output.stdout), text_of(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {err}");
    let calls = fs::read_to_string(&trace).expect("a trace");
    fs::remove_file(&trace).expect("removed");
    let named = |call: &str| {
        let calls = [
            "mkdir", "rename", "unlink", "link", "truncate", "chmod", "utime", "mknod", "socket(",
            "connect(", "bind(",
        ];
        calls.iter().any(|name| call.starts_with(name))
    };
    let acts = |line: &&str| {
        let opens = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"];
        let call = line.split_whitespace().nth(1).unwrap_or_default();
        // QEMU scans for devices when asked for its version.
        let is_file = !line.contains("\"/dev/");
        named(call) || is_file && opens.iter().any(|flag| line.contains(flag))
    };
    let acted = calls.lines().filter(acts).map(str::to_owned).collect();
    let started = |line: &str| {
        let rest = line.split_once("execve(\"")?.1;
        line.ends_with("= 0").then(|| rest.split('"').next().unwrap_or_default().to_owned())
    };
    Some((out, acted, calls.lines().filter_map(started).collect()))
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_dry_run_writes_and_starts_nothing() {
    let place = Place::with("echo t = {v}", 3);
    let arguments = ["study", "run", "s.toml", "--dry-run"];
    let Some((out, acted, started)) = traced(&place, &arguments) else { return };
    assert!(out.contains("12 samples in 4 blocks"), "{out}");
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("too few blocks") && flat.contains("need at least 6"), "{out}");
    assert!(out.contains("A  v=10") && out.contains("warm-up 1: "), "{out}");
    assert_eq!(acted, Vec::<String>::new(), "{arguments:?}");
    assert_eq!(started.len(), 1, "{arguments:?} starts a program: {started:?}");
    assert!(!place.directory.path().join("results").exists());
}

#[test]
fn plans_of_the_bundled_studies_with_an_empty_cache_fetch_nothing_and_name_the_missing_files() {
    let place = Place::with("true", 1);
    for (study, _) in numalab_study::bundled() {
        let arguments = ["study", "run", study, "--dry-run"];
        let Some((out, acted, started)) = traced(&place, &arguments) else { return };
        assert_eq!(acted, Vec::<String>::new(), "{arguments:?}");
        let others = started.iter().skip(1).filter(|program| !program.contains("qemu-system"));
        assert_eq!(others.count(), 0, "{arguments:?} starts {started:?}");
        // Unless QEMU is installed here, outside the cache.
        if *study == "numa-balancing-guest" && !out.contains("cannot be run now") {
            let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
            let kernel = "To be downloaded first the kernel of this distribution";
            assert!(out.contains(kernel), "{out}");
            assert!(out.contains("not known until fetched"), "{out}");
            assert!(out.contains("Memory for guests: 2G"), "{out}");
        }
    }
    let mut left = fs::read_dir(place.directory.path()).expect("there").flatten();
    assert!(left.all(|entry| entry.file_name() == "s.toml"), "something was written");
}

/// Run times from a published comparison.
const PUBLISHED: [&str; 8] = [
    "perf bench -f simple sched pipe",
    "perf bench -f simple sched messaging -l 10000",
    "perf bench -f simple mem memset -s 4GB -l 5 -f default",
    "perf bench -f simple futex wake -s -t 1024 -w 1",
    "sysbench cpu --time=10 --threads=4 --cpu-max-prime=10000 run",
    "sysbench memory --memory-access-mode=rnd --threads=4 run",
    "sysbench threads --threads=4 run",
    "sysbench mutex --mutex-num=1 --threads=32 run",
];

#[test]
fn the_commands_of_a_study_are_printed_as_run_with_the_settings_of_their_levels() {
    let place = Place::with("true", 1);
    let (plan, _) = place.ends(&["study", "run", "--dry-run", "numa-balancing"], 0);
    let (shown, _) = place.ends(&["study", "show", "numa-balancing"], 0);
    for command in PUBLISHED {
        let line = format!(": {command}\n");
        assert!(plan.contains(&line) && shown.contains(&line), "no {command} in: {plan}{shown}");
    }
    let flat = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("numa-balancing-guest runs the same"), "{plan}");
    let (scaled, _) = place.ends(&["study", "show", "numa-balancing-guest"], 0);
    assert!(
        scaled.contains("#   sched-pipe: perf bench -f simple sched pipe -l 5000\n"),
        "{scaled}"
    );
    fs::write(place.directory.path().join("shown.toml"), scaled).expect("written");
    place.ends(&["study", "show", "shown.toml"], 0);
    let (plan, _) = place.ends(&["study", "run", "--dry-run", "hugepages-host"], 0);
    assert!(plan.contains("  pages=2m: chase-pages = 2m, huge_1g_pages = 0, "), "{plan}");
}

#[test]
fn a_new_study_is_named_by_its_file_and_keeps_one_ending() {
    let place = tempfile::tempdir().expect("a directory");
    let place = Place { directory: place };
    fs::create_dir(place.directory.path().join("sub")).expect("made");
    for (name, file) in
        [("mine.toml", "mine.toml"), ("other", "other.toml"), ("sub/third.toml", "sub/third.toml")]
    {
        let (out, _) = place.ends(&["study", "new", name], 0);
        assert_eq!(out, format!("{file}\n"));
        let text = fs::read_to_string(place.directory.path().join(file)).expect("it is there");
        let stem = file.trim_end_matches(".toml").trim_start_matches("sub/");
        assert!(text.contains(&format!("name = \"{stem}\"")), "{text}");
    }
}

#[test]
fn reports_of_a_study_are_not_replaced_from_a_journal_that_lost_values() {
    let place = Place::with("echo t = {v}", 3);
    place.ends(&["study", "run", "s.toml", "--quiet"], 0);
    let results = place.results();
    let (journal, samples) = (results.join("journal.jsonl"), results.join("samples.csv"));
    let [whole, kept] = [&journal, &samples].map(|path| fs::read_to_string(path).expect("there"));
    let values = kept.lines().count() - 1;
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let directory = results.to_str().expect("a name");
    for left in [0, 1, lines.len() / 2] {
        fs::write(&journal, lines[..left].concat()).expect("written");
        let refused = [&["report", directory][..], &["study", "resume", directory]];
        for arguments in refused {
            let (_, err) = place.ends(arguments, 2);
            let words = format!("of the {values} values in samples.csv: it is damaged");
            assert!(err.contains(&words) && err.contains("journal.jsonl has "), "{err}");
            assert_eq!(fs::read_to_string(&samples).expect("there"), kept, "{arguments:?}");
        }
    }
    fs::remove_file(&journal).expect("removed");
    let (_, err) = place.ends(&["report", directory], 2);
    assert!(err.contains("journal.jsonl"), "{err}");
    fs::write(&journal, whole).expect("written");
    place.ends(&["report", directory], 0);
}
