//! Units of rates, for which higher is better.

use numalab_stats::Direction;

/// Units of time, which are also the denominators of rates.
const TIMES: [&str; 15] = [
    "s", "sec", "secs", "second", "seconds", "ms", "us", "ns", "min", "minute", "h", "hr", "hour",
    "d", "day",
];
/// Abbreviations of something per second, in lower case and without prefix.
const PER_SECOND: [&str; 14] = [
    "iops", "flops", "ips", "lups", "gups", "teps", "rps", "tps", "qps", "fps", "pps", "bps", "hz",
    "bogomips",
];
/// Prefixes of units, in lower case.
const PREFIXES: [&str; 9] = ["k", "m", "g", "t", "p", "ki", "mi", "gi", "ti"];

/// Returns the direction in which values of this unit improve.
pub(crate) fn usual_direction(unit: &str) -> Direction {
    match is_rate(unit) {
        true => Direction::HigherIsBetter,
        false => Direction::LowerIsBetter,
    }
}

/// Checks for a unit of time: `s`, `ms`, `seconds`.
pub(crate) fn is_time(unit: &str) -> bool {
    TIMES.contains(&unit.to_lowercase().as_str())
}

/// Checks for a unit per time: `GB/s`, `ns/day`, `req per second`, `MLUPS`, `Mop/s total`.
pub(crate) fn is_rate(unit: &str) -> bool {
    let unit = unit.to_lowercase();
    let words: Vec<&str> =
        unit.split([' ', '\t', '_', '-', '(', ')', ',', ':', '=', '"']).collect();
    let is_quotient =
        |word: &&str| word.rsplit_once('/').is_some_and(|(_, of)| TIMES.contains(&of));
    let is_per_time = |pair: &[&str]| pair[0] == "per" && TIMES.contains(&pair[1]);
    words.iter().any(|word| is_quotient(word) || is_abbreviated(word))
        || words.windows(2).any(is_per_time)
}

/// Checks for an abbreviation such as `MBps`. Operations are counted with `ops`, and those per second
/// have a prefix.
fn is_abbreviated(word: &str) -> bool {
    let after = |prefix: &&str| word.strip_prefix(*prefix);
    let mut prefixed = PREFIXES.iter().filter_map(after);
    PER_SECOND.contains(&word) || prefixed.any(|of| of == "ops" || PER_SECOND.contains(&of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_per_time_are_rates_by_their_usual_names_too() {
        let rates = [
            "GB/s",
            "it/s",
            "MB/sec",
            "ns/day",
            "1/s",
            "IOPS",
            "kIOPS",
            "GFLOPS",
            "MLUPS",
            "rps",
            "tps",
            "qps",
            "fps",
            "MBps",
            "MiBps",
            "Mbps",
            "Hz",
            "GHz",
            "req per second",
            "Mop/s total",
            "Mops",
            "GTEPS",
            "triad_MBps",
            "BogoMIPS",
            "Requests/sec:",
            "read: IOPS=",
            "\"iops\" :",
        ];
        assert_eq!(rates.into_iter().find(|unit| !is_rate(unit)), None);
        let others = [
            "",
            "s",
            "seconds",
            "ms",
            "ns/op",
            "us/step",
            "ns/sample",
            "cycles/op",
            "MiB",
            "ops",
            "x",
            "steps",
            "watts",
            "errors",
            "%",
            "maps",
            "s per step",
            "per",
        ];
        assert_eq!(others.into_iter().find(|unit| is_rate(unit)), None);
    }
}
