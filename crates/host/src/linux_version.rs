//! Linux versions, which decide the features to expect of a kernel.

/// Parses `(6, 12)` from the release `6.12.95+deb12-cloud-amd64`; `None` for a string that does not
/// begin so.
pub fn linux_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_numbers_of_a_release_are_the_version() {
        for release in ["6.12.95+deb12-cloud-amd64", "6.12-rc1", "6.12"] {
            assert_eq!(linux_version(release), Some((6, 12)), "{release}");
        }
        for other in ["", "6", "next-20261123", "v6.12"] {
            assert_eq!(linux_version(other), None, "{other}");
        }
    }
}
