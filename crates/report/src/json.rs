//! A run as JSON: the whole document, and what was found in it.

use numalab_analysis::run::{RunFinding, Summary};
use numalab_record::Document;
use serde::Serialize;

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    document: &'a Document,
    findings: &'a [RunFinding],
}

/// The document with every raw sample, its environment and placements, and the findings
/// of its summary, indented.
///
/// # Errors
/// Whatever `serde_json` cannot write; no document of [`numalab_record`] is known
/// to be such.
pub fn json(document: &Document) -> Result<String, serde_json::Error> {
    let findings = &Summary::of(document).findings;
    serde_json::to_string_pretty(&Shown { document, findings })
}
