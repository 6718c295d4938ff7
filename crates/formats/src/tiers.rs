//! Tiers of memory as typed by users: `2G@100ns,8G@300ns,10G/s,cache=64M`.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

use numalab_topology::{EmulatedTier, TierSpec};

use crate::size::{format_bytes, parse_with_unit};

/// The longest latency, in ns: a second.
const MOST_NS: u64 = 1_000_000_000;

/// Reasons why a string does not describe tiers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TierTextError {
    /// A tier has no latency.
    #[error(
        "`{item}` in `{text}`: a tier without a latency, expected SIZE@NS such as {item}@300ns"
    )]
    NoLatency { text: String, item: String },
    /// An item is neither a tier nor a property of one.
    #[error(
        "`{item}` in `{text}`: expected a tier, SIZE@NS, fastest first, optionally followed by its \
         bandwidth limit and its memory-side cache: \
         2G@100ns,8G@300ns,10G/s,cache=64M"
    )]
    Item { text: String, item: String },
}

/// Parses tiers: `SIZE@NS` begins one, `10G/s` is its bandwidth limit (10^10 bytes per second),
/// `cache=64M` a memory-side cache in front of it.
///
/// # Errors
/// [`TierTextError`], quoting the item.
pub fn parse(text: &str) -> Result<TierSpec, TierTextError> {
    let mut tiers: Vec<EmulatedTier> = Vec::new();
    for item in text.split(',').map(str::trim) {
        let malformed = || TierTextError::Item { text: text.to_owned(), item: item.to_owned() };
        if let Some((size, latency)) = item.split_once('@') {
            tiers.push(EmulatedTier {
                memory_bytes: parse_with_unit(size).map_err(|_| malformed())?,
                latency_ps: picoseconds(latency).ok_or_else(malformed)?,
                bandwidth_mb_per_s: None,
                side_cache_bytes: None,
            });
            continue;
        }
        if parse_with_unit(item).is_ok() {
            return Err(TierTextError::NoLatency { text: text.to_owned(), item: item.to_owned() });
        }
        let tier = tiers.last_mut().ok_or_else(malformed)?;
        let place = match item.strip_prefix("cache=") {
            Some(size) => {
                let bytes = parse_with_unit(size).ok().filter(|&bytes| bytes > 0);
                tier.side_cache_bytes.replace(bytes.ok_or_else(malformed)?)
            }
            None => tier.bandwidth_mb_per_s.replace(megabytes(item).ok_or_else(malformed)?),
        };
        if place.is_some() {
            return Err(malformed());
        }
    }
    Ok(TierSpec { tiers })
}

/// Writes tiers in a form that [`parse`] reads back.
pub fn format(spec: &TierSpec) -> String {
    let tier = |tier: &EmulatedTier| {
        let size = format_bytes(tier.memory_bytes);
        let mut text = format!("{size}@{}ns", tier.latency_ps as f64 / 1000.0);
        if let Some(limit) = tier.bandwidth_mb_per_s {
            text += &format!(",{limit}M/s");
        }
        if let Some(bytes) = tier.side_cache_bytes {
            text += &format!(",cache={}", format_bytes(bytes));
        }
        text
    };
    spec.tiers.iter().map(tier).collect::<Vec<_>>().join(",")
}

/// Parses `300ns`, `300` or `82.5ns`, from a nanosecond to a second.
fn picoseconds(text: &str) -> Option<u64> {
    let number = text.strip_suffix("ns").unwrap_or(text);
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(part) || part.len() > 3 {
        return None;
    }
    let ns: u64 = whole.parse().ok()?;
    let ps: u64 = format!("{part:0<3}").parse().ok()?;
    (1..=MOST_NS).contains(&ns).then_some(ns * 1000 + ps)
}

/// Parses `10G/s` or `800M/s`.
fn megabytes(text: &str) -> Option<u64> {
    let rate = text.strip_suffix("/s")?;
    let rate = rate.strip_suffix('B').unwrap_or(rate);
    let (number, factor) = match rate.strip_suffix(['G', 'g']) {
        Some(number) => (number, 1000),
        None => (rate.strip_suffix(['M', 'm'])?, 1),
    };
    let megabytes = number.parse::<u64>().ok()?.checked_mul(factor)?;
    (megabytes > 0).then_some(megabytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_is_a_size_and_a_latency_followed_by_its_properties() {
        let spec = parse("2G@100ns, 8G@300.5ns,10G/s,cache=64M").unwrap();
        let [fast, slow] = spec.tiers[..] else { panic!("{spec:?}") };
        assert_eq!((fast.memory_bytes, fast.latency_ps), (2 << 30, 100_000));
        assert_eq!((fast.bandwidth_mb_per_s, fast.side_cache_bytes), (None, None));
        assert_eq!((slow.memory_bytes, slow.latency_ps), (8 << 30, 300_500));
        assert_eq!(slow.bandwidth_mb_per_s, Some(10_000));
        assert_eq!(slow.side_cache_bytes, Some(64 << 20));
        assert_eq!(format(&spec), "2G@100ns,8G@300.5ns,10000M/s,cache=64M");
        assert_eq!(parse(&format(&spec)), Ok(spec));
    }

    #[test]
    fn a_tier_without_a_latency_is_refused_with_the_form() {
        let error = parse("2G@100ns,8G").unwrap_err().to_string();
        let expected = "`8G` in `2G@100ns,8G`: a tier without a latency, expected SIZE@NS such as \
                        8G@300ns";
        assert_eq!(error, expected);
    }

    #[test]
    fn an_item_that_is_not_a_tier_is_quoted() {
        for text in [
            "",
            "10G/s",
            "2G@",
            "2G@0ns",
            "2G@-1",
            "2G@nan",
            "@100ns",
            "2G@100ns,",
            "2G@100ns,10G/s,5G/s",
            "2G@100ns,0G/s",
            "2G@100ns,10/s",
            "2G@100ns,cache=0",
            "2G@100ns,cache=",
            "2G@100ns,x=1",
            "2@100ns",
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(": expected a tier, SIZE@NS"), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_tier_parser_panic(text in "[0-9a-zGKM@,=/. ]{0,32}") {
            let _ = parse(&text);
        }
    }
}
