//! The choice of pages behind a buffer.

use core::fmt;
use std::str::FromStr;

use crate::root::Root;
use crate::system_page::{base_page_bytes, transparent_huge_page_bytes};

/// The pages that shall back a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pages {
    /// The processor's base pages (4 KiB on x86-64; 4, 16 or 64 KiB on aarch64),
    /// transparent huge pages off.
    Base,
    /// Transparent huge pages.
    Transparent,
    /// Huge pages of 2 MiB from the reserved pool.
    Huge2M,
    /// Huge pages of 1 GiB from the reserved pool.
    Huge1G,
}

/// A text that names no choice of pages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: expected 4k, thp, 2m or 1g")]
pub struct UnknownPages {
    /// The text.
    pub text: String,
}

impl Pages {
    /// Every choice.
    pub const ALL: [Self; 4] = [Self::Base, Self::Transparent, Self::Huge2M, Self::Huge1G];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Base => "4k",
            Self::Transparent => "thp",
            Self::Huge2M => "2m",
            Self::Huge1G => "1g",
        }
    }

    /// The size of such a page on this machine in bytes. Without transparent huge pages
    /// that of `Transparent` is 2 MiB.
    #[must_use]
    pub fn page_bytes(self) -> u64 {
        match self {
            Self::Base => base_page_bytes(),
            Self::Transparent => transparent_huge_page_bytes(&Root::live()).unwrap_or(2 << 20),
            Self::Huge2M => 2 << 20,
            Self::Huge1G => 1 << 30,
        }
    }

    /// Whether the pages come from a reserved pool.
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        matches!(self, Self::Huge2M | Self::Huge1G)
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Pages {
    type Err = UnknownPages;

    fn from_str(text: &str) -> Result<Self, UnknownPages> {
        let named = |pages: &Self| pages.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(named).ok_or_else(|| UnknownPages { text: text.to_owned() })
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
        assert_eq!(error.to_string(), "`8k`: expected 4k, thp, 2m or 1g");
    }
}
