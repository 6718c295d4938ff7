//! The whole document as JSON.

use numalab_record::Document;

/// The document with every raw sample, its environment and placements, indented.
/// Its schema is that of the run.
///
/// # Errors
/// Whatever `serde_json` cannot write; no document of [`numalab_record`] is known
/// to be such.
pub fn json(document: &Document) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(document).map(|text| text + "\n")
}
