//! Schemas of documents, and validation against them.

use std::fs;
use std::path::{Path, PathBuf};

use numalab_record::Kind;
use serde_json::Value;

/// Returns the file of a kind's schema.
pub fn file(kind: Kind) -> PathBuf {
    let name = kind.schema().trim_start_matches("numalab/");
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schemas/{name}.schema.json"))
}

/// Reads a document, and checks it against the schema that it names.
pub fn document(text: &(impl AsRef<[u8]> + ?Sized)) -> Value {
    let document: Value = serde_json::from_slice(text.as_ref()).expect("JSON");
    let schema = document["schema"].as_str().expect("a schema is named");
    let kind = Kind::ALL.into_iter().find(|kind| kind.schema() == schema);
    let kind = kind.unwrap_or_else(|| panic!("no such kind: {schema}"));
    let errors = errors(kind, &document);
    assert!(errors.is_empty(), "{kind}: {errors:#?}");
    document
}

/// Returns the errors in a document of a kind.
pub fn errors(kind: Kind, document: &Value) -> Vec<String> {
    let schema = fs::read_to_string(file(kind)).expect("there");
    let schema = serde_json::from_str(&schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    validator.iter_errors(document).map(|error| error.to_string()).collect()
}
