//! The lines and words of `numactl --hardware`.

use numalab_topology::{Findings, MAX_ID, NodeId};

use super::FORMAT;
use crate::error::ReadError;
use crate::pasted;

pub(super) const MIB: u64 = 1 << 20;

/// Returns the numbered lines of a text, even if it lost its line breaks.
pub(super) fn lines(text: &str, findings: &mut Findings) -> Vec<(usize, String)> {
    let lines = pasted::lines(text, findings);
    let is_folded =
        |line: &String| line.matches(" cpus:").count() + line.matches(" size:").count() > 1;
    if !lines.iter().any(|(_, line)| is_folded(line)) {
        return lines;
    }
    let message =
        "several lines were joined into one; they are read as numactl prints them".to_owned();
    findings.note("lines-joined", "text".to_owned(), message);
    let unfolded =
        |(number, line): (usize, String)| unfold(&line).into_iter().map(move |line| (number, line));
    lines.into_iter().flat_map(unfolded).collect()
}

/// Breaks a line before each word that begins a line of numactl's.
fn unfold(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let begins = |at: usize| match words[at] {
        "available:" | "node" => true,
        word => is_row(word),
    };
    let mut lines: Vec<String> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        match lines.last_mut().filter(|_| !begins(at)) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push((*word).to_owned()),
        }
    }
    lines
}

pub(super) fn place(line: usize) -> String {
    format!("line {line}")
}

pub(super) fn are_numbers(words: &[&str]) -> bool {
    words.iter().all(|word| word.parse::<u32>().is_ok())
}

/// Returns true if a word can be part of a list of numbers: `12`, `0-7,`, `(8)`.
pub(super) fn is_list(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit() || ",-()".contains(c))
        && word.contains(|c: char| c.is_ascii_digit())
}

pub(super) fn is_row(word: &str) -> bool {
    word.strip_suffix(':').is_some_and(|id| id.parse::<u32>().is_ok())
}

pub(super) fn malformed(line: usize, found: &str, expected: &str) -> ReadError {
    ReadError::syntax(FORMAT, line, found, expected)
}

fn small_number(line: usize, found: &str, word: &str, expected: &str) -> Result<u32, ReadError> {
    let number = word.parse().ok().filter(|&number| number <= MAX_ID);
    number.ok_or_else(|| malformed(line, found, expected))
}

pub(super) fn node_id(line: usize, found: &str, word: &str) -> Result<NodeId, ReadError> {
    small_number(line, found, word, "a node number").map(NodeId)
}

pub(super) fn mebibytes(line: usize, found: &str, word: &str) -> Result<u64, ReadError> {
    let bytes = word.parse::<u64>().ok().and_then(|size| size.checked_mul(MIB));
    bytes.ok_or_else(|| malformed(line, found, "a size in MB"))
}
