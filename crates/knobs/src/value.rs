//! Compares strings as values of a setting.

/// Returns the value in a file's text: the word in brackets of `always [madvise] never`, else the
/// trimmed text.
pub(super) fn current(text: &str) -> &str {
    let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    let bracketed = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    bracketed.unwrap_or(text)
}

/// Returns the words that a file offers, such as `always [madvise] never`; none for a plain file.
pub(super) fn choices(text: &str) -> Vec<String> {
    if !text.contains('[') {
        return Vec::new();
    }
    text.split_whitespace().map(|word| word.trim_matches(['[', ']']).to_owned()).collect()
}

/// Reports whether two values are the same to the kernel: `1` and `Y`, `0x3` and `3`, `0,1` and
/// `0-1`, whitespace of any kind and length.
pub(super) fn same(a: &str, b: &str) -> bool {
    let (a, b) = (current(a), current(b));
    if a.split_whitespace().eq(b.split_whitespace()) {
        return true;
    }
    match (truth(a), truth(b)) {
        (Some(a), Some(b)) => return a == b,
        _ if truth(a).is_some() != truth(b).is_some() => return false,
        _ => {}
    }
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        return a == b;
    }
    let set = |text: &str| text.parse::<numalab_topology::CpuSet>().ok();
    matches!((set(a), set(b)), (Some(a), Some(b)) if a == b)
}

/// Parses a word like the kernel's `kstrtobool`; a number other than 0 and 1 is not a truth value.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "y" | "Y" | "on" | "true" => Some(true),
        "0" | "n" | "N" | "off" | "false" => Some(false),
        _ => None,
    }
}

/// Reports whether a value is one whole number.
pub(super) fn is_number(text: &str) -> bool {
    number(text).is_some()
}

pub(super) fn number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_chosen_word_is_the_value() {
        assert_eq!(current("always [madvise] never\n"), "madvise");
        assert_eq!(current(" 60\n"), "60");
        assert_eq!(current("[broken\n"), "[broken");
        assert_eq!(choices("always [madvise] never"), ["always", "madvise", "never"]);
        assert!(choices("60").is_empty());
    }

    #[test]
    fn values_that_the_kernel_prints_differently_are_the_same() {
        let same_pairs = [
            ("1", "Y"),
            ("true", "1"),
            ("0", "false"),
            ("0x10", "16"),
            ("0,1,2", "0-2"),
            ("4096\t87380\t6291456", "4096 87380 6291456"),
            ("madvise", "always [madvise] never"),
            ("007", "7"),
        ];
        for (a, b) in same_pairs {
            assert!(same(a, b) && same(b, a), "{a} {b}");
        }
        for (a, b) in [("1", "2"), ("0", "1"), ("never", "madvise"), ("1024", "900"), ("on", "2")] {
            assert!(!same(a, b) && !same(b, a), "{a} {b}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_the_same_as_itself(text in "\\PC{0,30}") {
            prop_assert!(same(&text, &text));
        }

        #[test]
        fn two_numbers_are_the_same_only_if_equal(a in 2i64.., b in 2i64..) {
            prop_assert_eq!(same(&a.to_string(), &b.to_string()), a == b);
        }
    }
}
