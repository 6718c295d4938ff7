//! Units that programs choose by the size of the figure: `us` or `ms`, `MB/s` or `GB/s`.

/// The quantity that a unit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuantityKind {
    Time,
    Bytes,
    Bits,
    BytesPerSecond,
    BitsPerSecond,
}

/// A unit of which there are larger and smaller ones.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    kind: QuantityKind,
    /// The unit's size in the smallest unit of its kind.
    size: f64,
}

/// Returns `value` of one unit in another. If either is not known, the value stays.
///
/// # Errors
/// The unit with another meaning, such as `ms` where `MB/s` is expected.
pub(crate) fn converted<'a>(value: f64, from: &'a str, to: &str) -> Result<f64, &'a str> {
    match (scale(from), scale(to)) {
        (Some(from), Some(to)) if from.kind == to.kind => Ok(value * from.size / to.size),
        (Some(_), Some(_)) => Err(from),
        _ => Ok(value),
    }
}

/// Returns true if values of one unit can be in another of its kind.
pub(crate) fn are_known(from: &str, to: &str) -> bool {
    scale(from).is_some() && scale(to).is_some()
}

fn scale(unit: &str) -> Option<Scale> {
    let time = |size| Some(Scale { kind: QuantityKind::Time, size });
    match unit {
        "ns" | "nsec" | "nsecs" => return time(1.0),
        "us" | "µs" | "μs" | "usec" | "usecs" => return time(1e3),
        "ms" | "msec" | "msecs" => return time(1e6),
        "s" | "sec" | "secs" | "second" | "seconds" => return time(1e9),
        _ => {}
    }
    let (amount, is_rate) = match ["/s", "/sec"].iter().find_map(|of| unit.strip_suffix(of)) {
        Some(amount) => (amount, true),
        None => (unit, false),
    };
    let is_bits = ["bit", "bits"].iter().find_map(|of| amount.strip_suffix(of));
    let prefix = is_bits.or_else(|| amount.strip_suffix('B'))?;
    let kind = match (is_bits.is_some(), is_rate) {
        (false, false) => QuantityKind::Bytes,
        (false, true) => QuantityKind::BytesPerSecond,
        (true, false) => QuantityKind::Bits,
        (true, true) => QuantityKind::BitsPerSecond,
    };
    let size = if prefix.is_empty() { 1.0 } else { factor(prefix)? };
    Some(Scale { kind, size })
}

/// Returns the factor of a prefix such as `k` or `Mi`.
pub(crate) fn factor(prefix: &str) -> Option<f64> {
    let (base, prefix) = prefix.strip_suffix('i').map_or((1e3_f64, prefix), |of| (1024.0, of));
    let power = match prefix {
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    Some(base.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_in_a_smaller_or_larger_unit_of_its_kind_is_converted() {
        for (value, from, to, expected) in [
            (1600.0, "ns", "us", 1.6),
            (1.5, "us", "usec", 1.5),
            (2.0, "seconds", "ms", 2000.0),
            (1.0, "GB/s", "MB/s", 1000.0),
            (2.0, "MiB/sec", "KiB/s", 2048.0),
            (941.0, "Mbits/sec", "Gbit/s", 0.941),
            (3.0, "B", "B", 3.0),
        ] {
            assert_eq!(converted(value, from, to), Ok(expected), "{value} {from} in {to}");
        }
    }

    #[test]
    fn another_kind_of_unit_is_named_and_an_unknown_one_stays() {
        assert_eq!(converted(5.0, "ms", "MB/s"), Err("ms"));
        assert_eq!(converted(5.0, "MB", "MB/s"), Err("MB"));
        assert_eq!(converted(5.0, "Mbit", "MB"), Err("Mbit"));
        for (from, to) in [("ops", "ms"), ("ms", "x"), ("iB", "B"), ("", "s"), ("EB", "B")] {
            assert_eq!(converted(5.0, from, to), Ok(5.0), "{from} in {to}");
        }
    }
}
