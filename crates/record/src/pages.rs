//! The choice of pages behind a buffer.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The pages that back a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Pages {
    /// The processor's base pages (4 KiB on x86-64; 4, 16 or 64 KiB on aarch64), transparent
    /// huge pages off.
    #[serde(rename = "4k")]
    Base,
    /// Transparent huge pages.
    #[serde(rename = "thp")]
    Transparent,
    /// Reserved huge pages of 2 MiB.
    #[serde(rename = "2m")]
    Huge2M,
    /// Reserved huge pages of 1 GiB.
    #[serde(rename = "1g")]
    Huge1G,
}

impl Pages {
    /// Every choice.
    pub const ALL: [Self; 4] = [Self::Base, Self::Transparent, Self::Huge2M, Self::Huge1G];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "4k",
            Self::Transparent => "thp",
            Self::Huge2M => "2m",
            Self::Huge1G => "1g",
        }
    }

    /// Whether the pages come from a reserved pool.
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        matches!(self, Self::Huge2M | Self::Huge1G)
    }
}

/// A text that names no choice of pages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a choice of pages: expected 4k, thp, 2m or 1g")]
pub struct UnknownPages {
    /// The text.
    pub text: String,
}

impl FromStr for Pages {
    type Err = UnknownPages;

    fn from_str(text: &str) -> Result<Self, UnknownPages> {
        let named = |pages: &Self| pages.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(named).ok_or_else(|| UnknownPages { text: text.to_owned() })
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_of_pages_is_read_back_from_its_name() {
        for pages in Pages::ALL {
            assert_eq!(pages.to_string().parse(), Ok(pages));
        }
        let error = "8k".parse::<Pages>().unwrap_err();
        let expected = "`8k` is not a choice of pages: expected 4k, thp, 2m or 1g";
        assert_eq!(error.to_string(), expected);
    }
}
