//! Machine files: captured from this machine and from results, read back, compared.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::command::{prints, run, stderr, stdout};

/// A run of this machine with part of a machine file's figures, and the file captured from it.
struct Captured {
    place: tempfile::TempDir,
    result: PathBuf,
    file: PathBuf,
}

/// Measured once for all tests; figures are valid even on a disturbed machine.
static CAPTURED: LazyLock<Captured> = LazyLock::new(|| {
    let place = tempfile::tempdir().expect("a directory");
    let results = place.path().join("results");
    let file = place.path().join("mine.toml");
    let (directory, to) = (path(&results), path(&file));
    let words = ["machine", "capture", "--budget", "12s", "-q", "--results", directory, "-o", to];
    assert_eq!(prints(&words), "", "the file has it all");
    let mut kept = std::fs::read_dir(&results).expect("results");
    let result = kept.next().expect("a run").expect("readable").path();
    Captured { place, result, file }
});

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn the_file_of_this_machine_reads_back_with_the_same_figures() {
    let Captured { result, file, .. } = &*CAPTURED;
    let kept = std::fs::read_to_string(file).expect("there");
    assert!(kept.starts_with("# ") && kept.contains("read_latency_ps"), "{kept}");
    let again = prints(&["machine", "capture", "--from", path(result), "-q"]);
    assert_eq!(again, kept, "a kept run gives the same file");
    let compared = prints(&[
        "compare",
        path(file),
        path(result),
        "--margin",
        "0.1",
        "--fail-if",
        "worse",
        "--format",
        "csv",
    ]);
    let latencies: Vec<&str> =
        compared.lines().filter(|line| line.starts_with("load latency")).collect();
    assert!(
        !latencies.is_empty() && latencies.iter().all(|line| line.ends_with(",0")),
        "{compared}"
    );
}

#[test]
fn one_result_that_is_slower_than_its_machine_file_is_undecided_by_exit_7() {
    let Captured { place, result, file } = &*CAPTURED;
    let kept = std::fs::read_to_string(file).expect("there");
    let faster = kept.replace("read_latency_ps = ", "read_latency_ps = 1 #");
    let other = place.path().join("faster.toml");
    std::fs::write(&other, faster).expect("written");
    let arguments = ["compare", path(&other), path(result), "--fail-if", "worse"];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(stderr(&output).contains("one run does not show how much runs vary"));
    assert!(stdout(&output).contains("load latency from node"), "{}", stdout(&output));
}

#[test]
fn two_machine_files_are_compared_figure_by_figure() {
    let Captured { file, .. } = &*CAPTURED;
    let same = prints(&["compare", path(file), path(file), "--format", "csv"]);
    assert!(same.contains("load latency from node"), "{same}");
    // On a busy machine a capture may not find the end of a cache; then its size is not from the
    // run.
    let is_same = |line: &str| line.ends_with(",0") || line.ends_with(",,");
    assert!(same.lines().skip(1).all(is_same), "{same}");
    let others = prints(&["compare", "x460", "graviton3", "--format", "csv"]);
    let latency = "load latency from node 0 to node 0,ns,108,98,";
    assert!(others.contains(latency), "{others}");
    // x460 has no hit latencies.
    for [one, other] in [["x460", "x460-fitted"], ["x460-fitted", "x460"]] {
        let sizes = prints(&["compare", one, other, "--format", "csv"]);
        for line in
            ["size of L1,KiB,16,16,0", "size of L2,KiB,1024,1024,0", "size of L3,KiB,8192,8192,0"]
        {
            assert!(sizes.contains(line), "{one} {other}: {sizes}");
        }
    }
}

#[test]
fn hwloc_and_firmware_tables_get_the_captured_figures() {
    let Captured { place, file, .. } = &*CAPTURED;
    let xml = prints(&["topology", "--topology", path(file), "--format", "hwloc-xml"]);
    let described = place.path().join("mine.xml");
    std::fs::write(&described, xml).expect("written");
    let mut lstopo = Command::new("lstopo-no-graphics");
    let shown = lstopo
        .env("HWLOC_HIDE_ERRORS", "2")
        .args(["--memattrs", "--input", path(&described)])
        .output()
        .expect("lstopo-no-graphics, of Debian's hwloc-nox or hwloc");
    let shown = stdout(&shown);
    let kept = std::fs::read_to_string(file).expect("there");
    let ps = kept.lines().find_map(|line| line.strip_prefix("read_latency_ps = "));
    let ns = ps.expect("a latency").parse::<f64>().expect("a number") / 1000.0;
    let latency = format!(" = {}", ns.round());
    assert!(shown.contains("ReadLatency") && shown.contains(&latency), "{latency}: {shown}");
    let tables = place.path().join("tables");
    prints(&["machine", "acpi", "build", "--topology", path(file), "-o", path(&tables)]);
    let source = format!("acpi:{}", path(&tables));
    let read = prints(&["topology", "--source", &source, "--format", "toml"]);
    assert!(read.contains("read_latency_ps = "), "HMAT has the latency: {read}");
}

#[test]
fn load_is_taken_from_curves_of_mess() {
    let Captured { place, result, .. } = &*CAPTURED;
    let curves = place.path().join("memory_curves.csv");
    let csv = "read_pct_rounded,pause,bandwidth_smooth,latency_smooth\n\
               100,900,1.5,91.5\n100,0,40.25,240\n50,900,1.5,95\n50,0,30,300\n";
    std::fs::write(&curves, csv).expect("written");
    let take = ["machine", "capture", "-q", "--from", path(result), "--mess"];
    let file = prints(&[&take[..], &[path(&curves)]].concat());
    assert!(file.contains("[40250.0, 240.0]") && file.contains("writes_percent = 50.0"), "{file}");
    let older = place.path().join("curves");
    std::fs::create_dir_all(&older).expect("made");
    std::fs::write(older.join("bwlat_75.txt"), "30000 210\n900 90.5\n").expect("written");
    let file = prints(&[&take[..], &[path(&older)]].concat());
    assert!(file.contains("writes_percent = 25.0"), "{file}");
    let nothing = run(&[&take[..], &[path(result)]].concat());
    assert_eq!(nothing.status.code(), Some(2));
    assert!(stderr(&nothing).contains("expected memory_curves.csv or files bwlat_PERCENT"));
}

#[test]
fn a_quick_capture_measures_less_than_half_and_loads_memory_by_loads_and_by_stores() {
    let cells = |words: &[&str]| -> Vec<String> {
        let all = [&["machine", "capture", "--dry-run", "-q"], words].concat();
        prints(&all).lines().filter(|line| line.contains('/')).map(str::to_owned).collect()
    };
    let [whole, quick] = [cells(&[]), cells(&["--quick"])];
    assert!(2 * quick.len() < whole.len(), "{quick:#?}");
    let is_load = |cell: &&String| cell.starts_with("loaded/");
    let loads: Vec<_> = quick.iter().filter(is_load).collect();
    let kernels = ["loaded/read/", "loaded/write-nt/"];
    assert!(loads.iter().all(|cell| kernels.iter().any(|of| cell.starts_with(of))), "{loads:#?}");
    let words = ["machine", "capture", "--quick", "--from", "results"];
    assert_eq!(run(&words).status.code(), Some(2));
}

#[test]
fn capturing_to_a_directory_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let output = run(&["machine", "capture", "-q", "-o", path(place.path())]);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("it is a directory: expected the file to write"), "{message}");
    assert!(message.contains("--results DIR"), "{message}");
}
