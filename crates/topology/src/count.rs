//! Counts with their nouns.

use alloc::format;
use alloc::string::String;

/// Formats a count with its noun: `1 node`, `3 nodes`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_the_only_singular() {
        let counts = [0, 1, 2].map(|number| count(number, "L3 group"));
        assert_eq!(counts, ["0 L3 groups", "1 L3 group", "2 L3 groups"]);
    }
}
