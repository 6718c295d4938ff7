//! XML within other text, as it is copied from a terminal or a mail.

use numalab_topology::Findings;

use super::FORMAT;
use crate::error::ReadError;
use crate::pasted;

/// Texts with which the XML begins.
const MARKS: [&str; 3] = ["<?xml", "<!DOCTYPE topology", "<topology"];
const END: &str = "</topology>";

/// Returns the XML in a text, which may be quoted and have other text around it, such as prompts.
pub(super) fn xml_of(text: &str, findings: &mut Findings) -> Result<String, ReadError> {
    let mut lines = pasted::lines(text, findings);
    let begin = |line: &str| MARKS.iter().filter_map(|mark| line.find(mark)).min();
    let found = lines.iter().enumerate().find_map(|(at, (_, line))| Some((at, begin(line)?)));
    let is_markup = |(_, line): &(usize, String)| line.trim_start().starts_with('<');
    let other_markup = || Some((lines.iter().position(is_markup)?, 0));
    let Some((first, place)) = found.or_else(other_markup) else {
        let what = "XML in the text, as `lstopo --of xml FILE` writes it";
        return Err(ReadError::Absent { format: FORMAT, what });
    };
    lines[first].1.drain(..place);
    let mut others = lines[..first].to_vec();
    let mut xml = String::with_capacity(text.len());
    let mut has_ended = false;
    for (number, line) in lines.into_iter().skip(first) {
        // A second topology is an error in the XML; other text after the first is not part of it.
        if has_ended && begin(&line).is_none() {
            others.push((number, line));
            continue;
        }
        let end = line.find(END).map(|end| end + END.len());
        has_ended |= end.is_some();
        xml += &line[..end.unwrap_or(line.len())];
        xml.push('\n');
    }
    pasted::note_ignored(&others, findings);
    Ok(xml)
}
