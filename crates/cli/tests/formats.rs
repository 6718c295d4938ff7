//! Every command that prints a result, in every format.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

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
        "json" => serde_json::from_str::<serde_json::Value>(text)
            .is_ok_and(|json| json["schema"].as_str().is_some_and(|s| s.starts_with("numalab"))),
        "csv" => {
            let mut lines = text.lines();
            lines.next().is_some_and(|header| header.contains(',') && !header.contains('|'))
        }
        "md" => text.starts_with("# ") && text.contains("\n## "),
        "html" => text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"),
        _ => text.lines().all(|line| line.chars().count() <= 80),
    }
}

#[test]
fn every_result_is_printed_in_every_format() {
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
        &["latency", "--size", "64K", "--budget", "1s"],
        &["report", one],
        &["report", "study-one"],
        &["study", "report", "study-one"],
        &["compare", one, two],
        &["compare", "study-one", "study-two"],
        &["compare", "a", "b"],
        &["compare", "--table", "table"],
        &["fleet", "report", "fleet"],
    ];
    let scaling: &[&str] = &["report", "sequential_domains0_1ranks_1-1MB.csv"];
    for command in commands.into_iter().chain([scaling]) {
        for format in FORMATS {
            let text = numalab(place, &[command, &["--format", format]].concat());
            assert!(is(format, &text), "{command:?} --format {format}: {text}");
        }
    }
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
