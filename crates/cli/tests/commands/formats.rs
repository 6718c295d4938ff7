//! Every command that prints a result, in every format.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::schemas;

const FORMATS: [&str; 5] = ["text", "json", "csv", "md", "html"];

fn numalab(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_numalab"))
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .expect("numalab starts");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {err}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Takes a measuring run and a study of one block, each in a directory of this name.
fn measure(place: &Path, name: &str) {
    let run = ["latency", "--size", "64K", "--budget", "1s", "--quiet", "-o", "new"];
    let study = ["compare", "--commands", "true", "true", "--blocks", "1", "--quiet", "-o", "new"];
    for (arguments, to) in
        [(&run[..], format!("fleet/hosts/{name}/run")), (&study, format!("study-{name}"))]
    {
        numalab(place, arguments);
        let made = fs::read_dir(place.join("new")).expect("a directory").next();
        let to = place.join(to);
        fs::create_dir_all(to.parent().expect("it has one")).expect("made");
        fs::rename(made.expect("a result").expect("readable").path(), to).expect("moved");
    }
}

/// Whether a text is of the format that was asked for.
fn is(format: &str, text: &str) -> bool {
    match format {
        "json" => {
            schemas::document(text);
            true
        }
        "csv" => {
            let mut lines = text.lines();
            lines.next().is_some_and(|header| header.contains(',') && !header.contains('|'))
        }
        "md" => text.starts_with("# "),
        "html" => text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"),
        _ => text.lines().all(|line| line.chars().count() <= 80),
    }
}

/// Prints the result of a command in every format, and checks that each is of its kind.
fn every_format(place: &Path, command: &[&str]) {
    for format in FORMATS {
        let text = numalab(place, &[command, &["--format", format]].concat());
        let is_copied = format == "text" && TO_COPY.iter().any(|start| command.starts_with(start));
        assert!(is_copied || is(format, &text), "{command:?} --format {format}: {text}");
    }
}

/// Commands whose text has lines that are copied as they are, however long.
const TO_COPY: [&[&str]; 4] = [
    &["explore", "--pid"],
    &["machine", "acpi", "show"],
    &["study", "show"],
    &["latency", "--ranks"],
];

#[test]
fn every_kept_result_is_printed_in_every_format() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    for name in ["one", "two"] {
        measure(place, name);
    }
    for (name, text) in [("a", "1\n2\n3\n"), ("b", "2 3 4\n"), ("table", "x,1,2,+100%\n")] {
        fs::write(place.join(name), text).expect("written");
    }
    fs::write(place.join("sequential_domains0_1ranks_1-1MB.csv"), "size (MB),0\n1,11.53\n")
        .expect("written");
    numalab(place, &["fleet", "collect", "fleet", "--quiet"]);
    let (one, two) = ("fleet/hosts/one/run", "fleet/hosts/two/run");
    let commands: [&[&str]; 9] = [
        &["report", one],
        &["report", "study-one"],
        &["report", "sequential_domains0_1ranks_1-1MB.csv"],
        &["study", "report", "study-one"],
        &["compare", one, two],
        &["compare", "study-one", "study-two"],
        &["compare", "a", "b"],
        &["compare", "--table", "table"],
        &["fleet", "report", "fleet"],
    ];
    commands.into_iter().for_each(|command| every_format(place, command));
}

#[test]
fn every_measuring_command_prints_every_format() {
    let place = tempfile::tempdir().expect("a directory");
    let short = ["--budget", "1s", "--quiet"];
    let commands: [&[&str]; 5] = [
        &["latency", "--size", "64K"],
        &["bandwidth", "--kernel", "read"],
        &["loaded"],
        &["c2c"],
        &["measure", "--quick", "-o", "results"],
    ];
    for command in commands {
        every_format(place.path(), &[command, &short].concat());
    }
    let ranks = ["latency", "--ranks", "1", "--size", "64K", "--iterations", "100"];
    every_format(place.path(), &ranks);
    let commands =
        ["compare", "--commands", "true", "true", "--blocks", "1", "--quiet", "-o", "new"];
    every_format(place.path(), &commands);
}

#[test]
fn every_question_to_a_system_is_answered_in_every_format() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    numalab(place, &["machine", "acpi", "build", "--emulate", "2", "--cpus", "4", "-o", "tables"]);
    let heap = "(XEN) NODE0 start->0 size->99 free->1\n(XEN) Domain 1 (total: 8):\n    Node 0: 8\n";
    fs::write(place.join("console.log"), heap).expect("written");
    let own = std::process::id().to_string();
    let commands: [&[&str]; 12] = [
        &["topology"],
        &["topology", "--emulate", "4", "--cpus", "8"],
        &["machine", "acpi", "show", "tables/SRAT.bin", "tables/SLIT.bin"],
        &["machine", "acpi", "check", "tables/SRAT.bin", "tables/SLIT.bin"],
        &["explore", "--interval", "1ms"],
        &["explore", "--pid", &own],
        &["explore", "--guests"],
        &["explore", "--heap", "console.log"],
        &["knobs", "list"],
        &["study", "probe", "balancing", "--size", "1M", "--time", "50ms"],
        &["study", "list"],
        &["study", "settings"],
    ];
    commands.into_iter().for_each(|command| every_format(place, command));
}

/// What has no figures has no CSV, and says which formats there are.
#[test]
fn a_format_without_a_meaning_is_refused_with_those_that_have_one() {
    let place = tempfile::tempdir().expect("a directory");
    for command in [&["study", "show", "noise"][..], &["study", "plan", "noise"]] {
        for format in FORMATS.into_iter().filter(|format| *format != "csv") {
            let text = numalab(place.path(), &[command, &["--format", format]].concat());
            let is_copied = format == "text" && command.contains(&"show");
            assert!(is_copied || is(format, &text), "{command:?} --format {format}: {text}");
        }
        let output = Command::new(env!("CARGO_BIN_EXE_numalab"))
            .args(command)
            .args(["--format", "csv"])
            .output()
            .expect("numalab starts");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains("expected text, json, md or html"), "{err}");
    }
    let nodes = ["explore", "--nodes", "--format", "callgrind"];
    let output = Command::new(env!("CARGO_BIN_EXE_numalab")).args(nodes).output();
    let output = output.expect("numalab starts");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && err.contains("not a program's memory"), "{err}");
}

#[test]
fn two_studies_compared_have_each_caption_once_in_markdown() {
    let place = tempfile::tempdir().expect("a directory");
    for name in ["one", "two"] {
        measure(place.path(), name);
    }
    let text = numalab(place.path(), &["compare", "study-one", "study-two", "--format", "md"]);
    let captions = text.lines().filter(|line| !line.is_empty() && !line.starts_with('|'));
    for caption in captions {
        assert_eq!(text.lines().filter(|line| *line == caption).count(), 1, "{caption}: {text}");
    }
}
