//! The jq lines of docs/metrics.md.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs every documented jq line that reads `file` on this document instead, and returns what each
/// prints.
pub fn documented(file: &str, document: &str) -> Vec<String> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let text = std::fs::read_to_string(place).expect("there");
    let lines = text.lines().filter(|line| line.starts_with("jq "));
    let lines = lines.filter_map(|line| line.strip_suffix(file)?.strip_suffix(' '));
    lines.map(|line| printed(line, document)).collect()
}

fn printed(line: &str, document: &str) -> String {
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", line]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut jq = shell.spawn().expect("sh starts");
    jq.stdin.take().expect("piped").write_all(document.as_bytes()).expect("written");
    let output = jq.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{line}: expected jq, and the fields that it reads");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    // A figure that is not known is null, but not everything.
    let has_figures = text.contains(|letter: char| letter.is_ascii_digit());
    assert!(has_figures && !text.lines().any(|line| line == "null"), "{line}: {text}");
    text
}
