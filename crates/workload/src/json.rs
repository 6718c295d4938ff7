//! Numbers in JSON by pointer (RFC 6901).

use serde_json::{Deserializer, Value};

use crate::error::OutputError;
use crate::number;

/// Parses the document in `text`; several consecutive documents give an array.
pub(crate) fn document(text: &str) -> Result<Value, OutputError> {
    let values: Result<Vec<Value>, _> = Deserializer::from_str(text).into_iter().collect();
    let mut values = values.map_err(|error| OutputError::NoJson { reason: error.to_string() })?;
    match values.len() {
        0 => Err(OutputError::NoJson { reason: "it is empty".to_owned() }),
        1 => Ok(values.remove(0)),
        _ => Ok(Value::Array(values)),
    }
}

/// Returns the number at `pointer`; a string that is a number counts as one.
pub(crate) fn value(text: &str, pointer: &str) -> Result<f64, OutputError> {
    let document = document(text)?;
    let found = document.pointer(pointer);
    let found = found.ok_or_else(|| {
        OutputError::missing(format!("value at {pointer}"), "JSON with this value", text)
    })?;
    let number = found.as_f64().filter(|value| value.is_finite());
    match (number, found.as_str()) {
        (Some(value), _) => Ok(value),
        (None, Some(text)) => number::whole(pointer, text),
        (None, None) => Err(OutputError::NoNumber {
            what: pointer.to_owned(),
            text: found.to_string().chars().take(40).collect(),
        }),
    }
}
