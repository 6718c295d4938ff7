//! Short forms of values on the command line: lists joined by dots, matrices by slashes.

use crate::machine::{CacheLevel, MOST_NODES, Scope, Stage};
use alloc::vec::Vec;

/// Parses integers joined by dots.
pub fn numbers(word: &str) -> Option<Vec<usize>> {
    word.split('.').map(|number| number.parse().ok()).collect()
}

/// Parses figures joined by dots, which are therefore integers.
pub fn figures(word: &str) -> Option<Vec<f64>> {
    word.split('.').map(|number| number.parse::<u32>().ok().map(f64::from)).collect()
}

/// Parses rows of figures joined by slashes.
pub fn rows(word: &str) -> Option<Vec<Vec<f64>>> {
    word.split('/').map(figures).collect()
}

/// Parses sizes joined by dots.
pub fn sizes(word: &str) -> Option<Vec<u64>> {
    let sizes: Vec<u64> = word.split('.').map(size).collect::<Option<_>>()?;
    let sum = sizes.iter().try_fold(0_u64, |sum, size| sum.checked_add(*size))?;
    (sum <= 1 << 52).then_some(sizes)
}

/// Parses bytes, with K, M, G or T for powers of 1024.
fn size(word: &str) -> Option<u64> {
    let (digits, shift) = match word.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(digits) => (digits, 10 * (1 + "KMGT".find(word.chars().last()?)?)),
        None => (word, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Parses ranges of start, end and node joined by plus signs.
pub fn ranges(word: &str) -> Option<Vec<(u64, u64, usize)>> {
    let range = |word: &str| {
        let mut parts = word.split('-');
        let mut address = || u64::from_str_radix(parts.next()?, 16).ok();
        let (start, end) = (address()?, address()?);
        let node: usize = parts.next()?.parse().ok().filter(|node| *node < MOST_NODES)?;
        parts.next().is_none().then_some((start, end, node))
    };
    word.split('+').map(range).collect()
}

/// Parses caches `level:size:ways:line:scope`, each with an optional hit latency in ns at its end,
/// joined by plus signs.
pub fn caches(word: &str) -> Option<Vec<CacheLevel>> {
    let cache = |word: &str| {
        let mut parts = word.split(':');
        let level = CacheLevel {
            level: parts.next()?.parse().ok()?,
            size_bytes: size(parts.next()?)?,
            ways: parts.next()?.parse().ok()?,
            line_bytes: parts.next()?.parse().ok()?,
            scope: match parts.next()? {
                "cpu" => Scope::Cpu,
                "group" => Scope::Group,
                _ => return None,
            },
            latency_ns: parts.next().map_or(Some(0.0), |word| word.parse().ok())?,
            life_ns: 0.0,
        };
        parts.next().is_none().then_some(level)
    };
    word.split('+').map(cache).collect()
}

/// Parses names of stages joined by plus signs.
pub fn stages(word: &str) -> Option<Vec<Stage>> {
    word.split('+').map(Stage::named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_powers_of_1024() {
        assert_eq!(sizes("1K.2M.3G.0.7"), Some(vec![1024, 2 << 20, 3 << 30, 0, 7]));
        for wrong in ["", "1.", "1KB", "-1", "9999999T", "4096T.4096T"] {
            assert_eq!(sizes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ranges_are_hexadecimal_and_name_a_node() {
        assert_eq!(ranges("0-a0-1"), Some(vec![(0, 0xa0, 1)]));
        for wrong in ["0-a0", "0-a0-1-2", "0-g-1", "0-a0-16", ""] {
            assert_eq!(ranges(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_cache_may_give_the_cost_of_a_hit() {
        let caches = caches("1:32K:8:64:cpu+3:1M:16:64:group:12").unwrap();
        assert_eq!(caches[1].latency_ns.to_bits(), 12.0_f64.to_bits());
        assert_eq!(caches[0].scope, Scope::Cpu);
        assert_eq!(super::caches("1:32K:8:64:core"), None);
        assert_eq!(super::caches("1:32K:8:64:cpu:1:2"), None);
    }
}
