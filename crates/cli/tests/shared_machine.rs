//! Measurements and studies while other processes keep every cpu busy: reported once, and no slower
//! than necessary.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Child processes that use a cpu each, and end with this value.
struct Load(Vec<Child>);

impl Load {
    /// Starts one on every cpu of this machine.
    fn on_all_cpus() -> Self {
        let cpus = std::thread::available_parallelism().expect("cpus").get();
        let spin = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
        Self((0..cpus).map(|_| spin()).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let ended = child.kill().and_then(|()| child.wait());
            ended.expect("a child of ours ends");
        }
    }
}

/// Returns standard output and standard error.
fn done(directory: &Path, arguments: &[&str]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
    let output = command.args(arguments).current_dir(directory).stdin(Stdio::null()).output();
    let output = output.expect("numalab starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{arguments:?}: {out}{err}");
    (out, err)
}

/// Returns the number of samples in the journal of the only study.
fn samples(directory: &Path) -> usize {
    let mut entries = fs::read_dir(directory.join("results")).expect("results");
    let run = entries.next().expect("one study").expect("readable").path();
    let journal = fs::read_to_string(run.join("journal.jsonl")).expect("a journal");
    journal.lines().filter(|line| line.contains("\"readings\"")).count()
}

#[test]
fn a_study_under_constant_load_says_so_once_and_repeats_nothing_after_that() {
    let directory = tempfile::tempdir().expect("a directory");
    let load = Load::on_all_cpus();
    let arguments =
        ["compare", "--commands", "sleep 0.05", "sleep 0.06", "--blocks", "7", "--format", "md"];
    let (page, err) = done(directory.path(), &arguments);
    drop(load);
    assert_eq!(err.matches("this machine is shared").count(), 1, "{err}");
    assert_eq!(page.matches("This machine is shared").count(), 1, "{page}");
    // A block of warm-ups and seven that count, with the baseline twice in each; by default a
    // sample is tried up to three times, which may apply only to the first six and the warm-ups.
    let cells = 8 * 3;
    let taken = samples(directory.path());
    assert!((cells..cells + 6 * 2).contains(&taken), "{taken} samples of {cells} cells");
}

#[test]
fn latency_under_constant_load_excludes_waiting_for_the_cpu() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = "latency --size 64K,32M --pages 4k --cpus 0 --nodes 0 --precision 5% --budget 20s \
                     --format csv";
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let medians = || {
        let (rows, err) = done(directory.path(), &arguments);
        let mut lines = rows.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().expect("a header");
        // Text before it has commas.
        let from_end = names.iter().rev().position(|name| *name == "median").expect("a median");
        let value = |row: Vec<&str>| row[row.len() - 1 - from_end].parse::<f64>();
        let medians = lines.map(|row| value(row).expect("a number"));
        (medians.collect::<Vec<f64>>(), err)
    };
    let (quiet, _) = medians();
    let load = Load::on_all_cpus();
    let (busy, _) = medians();
    drop(load);
    assert_eq!(quiet.len(), 2, "{quiet:?}");
    // Half of the time goes to the other process, in slices of milliseconds: windows of wall time
    // that contain them show ten times the latency.
    for (quiet, busy) in quiet.iter().zip(&busy) {
        assert!(*busy < 4.0 * quiet, "{busy} ns under load, {quiet} ns without");
    }
}
