//! Baselines of machines that are faster, slower or larger than this one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Measures one latency below `place`, in under a second.
pub fn measured(place: &Path) -> PathBuf {
    let results = place.join("measured");
    let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
    command.args(["latency", "-q", "--size", "32M", "--pages", "4k", "--per", "node"]);
    command.args(["--cpus", "0", "--budget", "1s", "-o"]).arg(&results);
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut runs = fs::read_dir(&results).expect("results").map(|run| run.expect("read").path());
    runs.next().expect("a run")
}

/// Makes three copies of `run`, with values and memory multiplied by factors: a class that includes
/// this machine only if both factors are 1.
pub fn class(run: &Path, place: &Path, value_factor: f64, memory_factor: u64) -> PathBuf {
    for number in 1..=3 {
        let copy = place.join(number.to_string());
        fs::create_dir_all(&copy).expect("made");
        for file in fs::read_dir(run).expect("a run") {
            let file = file.expect("read").path();
            let mut text = fs::read_to_string(&file).expect("text");
            let name = file.file_name().and_then(|name| name.to_str()).expect("UTF-8");
            match name {
                "samples.csv" => text = scaled(&text, value_factor),
                "run.json" => text = another(&text, number, memory_factor),
                _ => {}
            }
            fs::write(copy.join(name), text).expect("written");
        }
    }
    place.to_owned()
}

fn scaled(samples: &str, factor: f64) -> String {
    let header: Vec<&str> = samples.lines().next().expect("a header").split(',').collect();
    let at = header.iter().position(|name| *name == "value").expect("values");
    let line = |line: &str| {
        let mut fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        if let Ok(value) = fields[at].parse::<f64>() {
            fields[at] = (value * factor).to_string();
        }
        fields.join(",") + "\n"
    };
    samples.lines().map(line).collect()
}

/// Returns the head of another run, begun `number` hours later, with memory multiplied by `factor`.
fn another(run: &str, number: u64, factor: u64) -> String {
    let mut run: serde_json::Value = serde_json::from_str(run).expect("JSON");
    let began = run["started_unix_ms"].as_u64().expect("a time");
    run["started_unix_ms"] = (began + number * 3_600_000).into();
    for node in run["machine"]["nodes"].as_array_mut().expect("nodes") {
        let bytes = node["memory_bytes"].as_u64().expect("bytes");
        node["memory_bytes"] = (bytes * factor).into();
    }
    run.to_string()
}
