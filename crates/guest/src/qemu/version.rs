//! QEMU's version.

use std::fmt;

/// A version of QEMU, ordered by release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub micro: u32,
}

impl Version {
    /// Creates the version with these numbers.
    pub const fn new(major: u32, minor: u32, micro: u32) -> Self {
        Self { major, minor, micro }
    }

    /// Parses the first line of `qemu-system-x86_64 --version`.
    pub fn of_output(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("version ")?;
        // Release candidates have a suffix such as `-rc2`, which is ignored.
        let digits = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        let mut numbers = digits.split('.').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Self::new(next()?, next()?, next().unwrap_or_default()))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.micro)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_from_the_output_of_qemu() {
        let debian = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright";
        assert_eq!(Version::of_output(debian), Some(Version::new(7, 2, 22)));
        let candidate = "QEMU emulator version 10.1.0-rc2";
        assert_eq!(Version::of_output(candidate), Some(Version::new(10, 1, 0)));
        assert_eq!(Version::of_output("bash: not found"), None);
    }

    #[test]
    fn ten_is_later_than_nine() {
        assert!(Version::new(10, 0, 0) > Version::new(9, 2, 4));
    }
}
