//! Lines of CSV.

/// Fields of a line of CSV, quoted where they must be (RFC 4180), with a line feed.
#[must_use]
pub fn csv_line(fields: &[String]) -> String {
    let fields: Vec<String> = fields.iter().map(|field| quote(field)).collect();
    fields.join(",") + "\n"
}

/// A field quoted where RFC 4180 wants it. A field that a spreadsheet would take
/// for a formula is begun with an apostrophe.
pub(crate) fn quote(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}
