//! JSON from files and pipes.

use serde::de::{DeserializeOwned, Error as _};

/// Reads a value from bytes of JSON.
///
/// `serde_json::from_slice` would be a second reader, for which every type is compiled again.
///
/// # Errors
/// Any error of `serde_json`.
pub fn from_json<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    serde_json::from_str(std::str::from_utf8(json).map_err(serde_json::Error::custom)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_from_bytes_unless_they_are_no_text() {
        assert_eq!(from_json::<Vec<String>>("[\"größe\"]".as_bytes()).unwrap(), ["größe"]);
        assert!(from_json::<String>(b"\"\xff\"").unwrap_err().to_string().contains("utf-8"));
    }
}
