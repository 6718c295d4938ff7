//! The pages behind a buffer.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest base page of any kernel, in bytes: 64 KiB on arm64 and POWER.
const LARGEST_BASE_BYTES: u64 = 64 << 10;
/// The smallest base page of any kernel, in bytes.
const LEAST_BYTES: u64 = 4 << 10;
/// The units of sizes, largest first.
const UNITS: [(char, u32); 3] = [('g', 30), ('m', 20), ('k', 10)];

/// The pages that back a buffer.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(with = "String")]
#[serde(try_from = "String", into = "String")]
pub enum Pages {
    /// Pages of this size in bytes: the kernel's base pages with transparent huge pages off, or
    /// those of the reserved pool of that size.
    Sized(u64),
    /// Transparent huge pages.
    Transparent,
}

impl Pages {
    /// The base pages of most kernels, 4 KiB.
    pub const BASE_4K: Self = Self::Sized(4 << 10);
    /// Huge pages of 2 MiB.
    pub const HUGE_2M: Self = Self::Sized(2 << 20);
    /// Huge pages of 1 GiB.
    pub const HUGE_1G: Self = Self::Sized(1 << 30);

    /// Returns the choice's name on the command line: `4k`, `thp`, `512m`.
    pub fn name(self) -> String {
        let Self::Sized(bytes) = self else { return "thp".to_owned() };
        let unit = UNITS.into_iter().find(|(_, shift)| bytes >> shift > 0);
        let (letter, shift) = unit.unwrap_or(('k', 10));
        format!("{}{letter}", bytes >> shift)
    }

    /// Returns true if a kernel may have base pages of this size.
    pub const fn is_small(self) -> bool {
        matches!(self, Self::Sized(bytes) if bytes <= LARGEST_BASE_BYTES)
    }
}

/// A text that does not name a choice of pages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a choice of pages: expected thp or a size such as 4k, 64k, 2m or 1g")]
pub struct UnknownPages {
    pub text: String,
}

impl FromStr for Pages {
    type Err = UnknownPages;

    fn from_str(text: &str) -> Result<Self, UnknownPages> {
        let lower = text.to_ascii_lowercase();
        let sized = UNITS.into_iter().find_map(|(letter, shift)| {
            let number: u64 = lower.strip_suffix(letter)?.parse().ok()?;
            number.checked_mul(1 << shift)
        });
        let is_size = |bytes: &u64| bytes.is_power_of_two() && *bytes >= LEAST_BYTES;
        match sized.filter(is_size) {
            Some(bytes) => Ok(Self::Sized(bytes)),
            None if lower == "thp" => Ok(Self::Transparent),
            None => Err(UnknownPages { text: text.to_owned() }),
        }
    }
}

impl TryFrom<String> for Pages {
    type Error = UnknownPages;

    /// Accepts a single spelling, so that documents are comparable.
    fn try_from(text: String) -> Result<Self, UnknownPages> {
        let pages: Self = text.parse()?;
        if pages.name() == text { Ok(pages) } else { Err(UnknownPages { text }) }
    }
}

impl From<Pages> for String {
    fn from(pages: Pages) -> Self {
        pages.name()
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_of_pages_is_read_back_from_its_name() {
        for name in ["4k", "16k", "64k", "thp", "2m", "16m", "32m", "512m", "1g", "16g"] {
            let pages: Pages = name.parse().unwrap();
            assert_eq!(pages.to_string(), name);
            let json = serde_json::to_string(&pages).unwrap();
            assert_eq!(json, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<Pages>(&json).unwrap(), pages);
        }
        assert_eq!("2048K".parse(), Ok(Pages::HUGE_2M));
        for wrong in ["3m", "2k", "0g", "4", "k", "", "99999999999g", "huge"] {
            let error = wrong.parse::<Pages>().unwrap_err().to_string();
            assert_eq!(
                error,
                format!(
                    "`{wrong}` is not a choice of pages: expected thp or a size such as 4k, 64k, \
                     2m or 1g"
                )
            );
        }
    }
}
