//! XML within other text, as it is copied from a terminal or a mail.

use numalab_topology::Findings;

use super::FORMAT;
use crate::error::ReadError;
use crate::pasted;

/// Returns the XML in a text, which may be quoted and have prompts around it.
pub(super) fn xml_of(text: &str, findings: &mut Findings) -> Result<String, ReadError> {
    let lines: Vec<String> =
        pasted::lines(text, findings).into_iter().map(|(_, line)| line).collect();
    let is_first = |line: &String| {
        let line = line.trim_start();
        ["<?xml", "<!DOCTYPE topology", "<topology"].iter().any(|mark| line.starts_with(mark))
    };
    let is_other = |line: &String| line.trim().is_empty() || pasted::is_prompt(line);
    let first = lines.iter().position(is_first).unwrap_or(0);
    if let Some(said) = lines[..first].iter().find(|line| !is_other(line)) {
        let message = format!("`{}` before the XML is ignored", said.trim());
        findings.note("line-unread", "first line".to_owned(), message);
    }
    let is_whole = |line: &String| line.trim().ends_with("</topology>");
    let mut xml = String::with_capacity(text.len());
    let mut has_ended = false;
    for line in lines.into_iter().skip(first).skip_while(is_other) {
        // A second topology is an error in the XML; a prompt after the first is not part of it.
        if has_ended && is_other(&line) {
            continue;
        }
        has_ended |= is_whole(&line);
        xml += &line;
        xml.push('\n');
    }
    match xml.trim_start().starts_with('<') {
        true => Ok(xml),
        false => {
            let what = "XML in the text, as `lstopo --of xml FILE` writes it";
            Err(ReadError::Absent { format: FORMAT, what })
        }
    }
}
