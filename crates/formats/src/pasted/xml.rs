//! XML within other text, as it is copied from a terminal or a mail.

use numalab_topology::Findings;

use super::{lines, note_ignored};
use crate::error::ReadError;

/// The marks of a tool's XML.
pub(crate) struct Xml {
    /// Texts with which it begins.
    pub marks: &'static [&'static str],
    /// The tag with which it ends.
    pub end: &'static str,
    /// Name of the format.
    pub format: &'static str,
    /// The part that a text without it lacks.
    pub what: &'static str,
}

/// Returns the XML in a text, which may be quoted and have other text around it, such as prompts.
pub(crate) fn xml_of(text: &str, of: &Xml, findings: &mut Findings) -> Result<String, ReadError> {
    let mut lines = lines(text, findings);
    let begin = |line: &str| of.marks.iter().filter_map(|mark| line.find(mark)).min();
    let found = lines.iter().enumerate().find_map(|(at, (_, line))| Some((at, begin(line)?)));
    let is_markup = |(_, line): &(usize, String)| line.trim_start().starts_with('<');
    let other_markup = || Some((lines.iter().position(is_markup)?, 0));
    let Some((first, place)) = found.or_else(other_markup) else {
        return Err(ReadError::Absent { format: of.format, what: of.what });
    };
    lines[first].1.drain(..place);
    let mut others = lines[..first].to_vec();
    let mut xml = String::with_capacity(text.len());
    let mut has_ended = false;
    for (number, line) in lines.into_iter().skip(first) {
        // A second document is an error in the XML; other text after the first is not part of it.
        if has_ended && begin(&line).is_none() {
            others.push((number, line));
            continue;
        }
        let end = line.find(of.end).map(|end| end + of.end.len());
        has_ended |= end.is_some();
        xml += &line[..end.unwrap_or(line.len())];
        xml.push('\n');
    }
    note_ignored(&others, findings);
    Ok(xml)
}
