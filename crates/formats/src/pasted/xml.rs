//! XML within other text, as it is copied from a terminal or a mail.

use numalab_topology::Findings;
use roxmltree::{Document, Node as Element, ParsingOptions};

use super::{lines, note_ignored};
use crate::error::ReadError;

/// A limit above the number of elements of any machine, which bounds the cost of reading any input.
const MAX_ELEMENTS: u32 = 2_000_000;

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
    /// True if it may begin with a document type.
    pub allow_dtd: bool,
}

/// Parses XML that [`xml_of`] returned.
pub(crate) fn parse<'t>(text: &'t str, of: &Xml) -> Result<Document<'t>, ReadError> {
    let (allow_dtd, nodes_limit) = (of.allow_dtd, MAX_ELEMENTS);
    let options = ParsingOptions { allow_dtd, nodes_limit, ..ParsingOptions::default() };
    Document::parse_with_options(text, options)
        .map_err(|error| ReadError::Markup { format: of.format, message: error.to_string() })
}

/// Returns the line of an element, for messages.
pub(crate) fn line_of(element: Element<'_, '_>) -> usize {
    let position = element.document().text_pos_at(element.range().start);
    usize::try_from(position.row).unwrap_or(usize::MAX)
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
