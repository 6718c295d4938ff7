//! The order in which memory is visited.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The order in which memory is visited, stored by name in documents.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "String", try_from = "PatternForm")]
pub enum AccessPattern {
    /// Random over the whole buffer.
    Random,
    /// Random within blocks of one large page or 64 small ones, blocks in random order, for TLB
    /// hits.
    PageLocal,
    /// A fixed step in bytes.
    Stride(u64),
    /// Ascending addresses.
    Sequential,
    /// One line in each block of this number of bytes, in random order; with the page size, it
    /// measures the TLB's reach.
    OneLinePer(u64),
    /// Words, eight in each line, in random order: the chain of the benchmark suite
    /// `numa-mem-bench`.
    FisherYates,
}

/// Formats the pattern as on the command line: `random`, `stride:256`.
impl fmt::Display for AccessPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.pad("random"),
            Self::PageLocal => f.pad("page-local"),
            Self::Stride(bytes) => f.pad(&format!("stride:{bytes}")),
            Self::Sequential => f.pad("sequential"),
            Self::OneLinePer(bytes) => f.pad(&format!("one-line-per:{bytes}")),
            Self::FisherYates => f.pad("fisher-yates"),
        }
    }
}

/// A text that is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a pattern: expected random, page-local, sequential, fisher-yates, stride:N \
     with N a multiple of 64 bytes or one-line-per:N with N a power of two, at least 64"
)]
pub struct PatternError(String);

impl FromStr for AccessPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let plain = [Self::Random, Self::PageLocal, Self::Sequential, Self::FisherYates];
        if let Some(pattern) = plain.into_iter().find(|pattern| pattern.to_string() == text) {
            return Ok(pattern);
        }
        let bytes = |name| text.strip_prefix(name)?.parse().ok().filter(|bytes: &u64| *bytes >= 64);
        let stride = bytes("stride:").filter(|bytes| bytes.is_multiple_of(64)).map(Self::Stride);
        let one_line = bytes("one-line-per:").filter(|bytes| bytes.is_power_of_two());
        stride
            .or_else(|| one_line.map(Self::OneLinePer))
            .ok_or_else(|| PatternError(text.to_owned()))
    }
}

impl From<AccessPattern> for String {
    fn from(pattern: AccessPattern) -> Self {
        pattern.to_string()
    }
}

/// A pattern as stored in documents.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum PatternForm {
    Name(String),
    /// The form of numalab 0.1.0.
    Parts {
        order: String,
        bytes: Option<u64>,
    },
}

impl TryFrom<PatternForm> for AccessPattern {
    type Error = PatternError;

    fn try_from(form: PatternForm) -> Result<Self, PatternError> {
        match form {
            PatternForm::Name(name) => name.parse(),
            PatternForm::Parts { order, bytes: Some(bytes) } => format!("{order}:{bytes}").parse(),
            PatternForm::Parts { order, bytes: None } => order.parse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_one_spelling_and_documents_written_before_still_read() {
        for (pattern, name, before) in [
            (AccessPattern::PageLocal, "page-local", r#"{"order":"page-local"}"#),
            (AccessPattern::Stride(256), "stride:256", r#"{"order":"stride","bytes":256}"#),
            (AccessPattern::FisherYates, "fisher-yates", r#""fisher-yates""#),
        ] {
            assert_eq!(serde_json::to_string(&pattern).unwrap(), format!("\"{name}\""));
            assert_eq!(name.parse(), Ok(pattern));
            assert_eq!(serde_json::from_str::<AccessPattern>(before).unwrap(), pattern);
        }
        let error = serde_json::from_str::<AccessPattern>(r#""stride:7""#).unwrap_err();
        assert!(error.to_string().contains("`stride:7` is not a pattern"), "{error}");
    }

    #[test]
    fn a_pattern_is_read_by_the_name_it_is_written_with() {
        for name in ["random", "page-local", "sequential", "one-line-per:4096", "stride:256"] {
            assert_eq!(name.parse::<AccessPattern>().unwrap().to_string(), name);
        }
        for other in ["stride:0", "stride:65", "one-line-per:192", "stride256", "Random"] {
            let error = other.parse::<AccessPattern>().unwrap_err().to_string();
            assert!(error.contains(other) && error.contains("expected random"), "{error}");
        }
    }
}
