//! The direction in which numbers improve, as the words next to them say.

use numalab_stats::Direction;

/// Units of time, which are also the denominators of rates.
const TIMES: [&str; 21] = [
    "s", "sec", "secs", "second", "seconds", "ms", "msec", "msecs", "us", "usec", "usecs", "ns",
    "nsec", "min", "minute", "h", "hr", "hour", "hours", "d", "day",
];
/// Abbreviations of something per second, in lower case and without prefix.
const PER_SECOND: [&str; 15] = [
    "iops", "flops", "ips", "lps", "lups", "gups", "teps", "rps", "tps", "qps", "fps", "pps",
    "bps", "hz", "bogomips",
];
/// Prefixes of units, in lower case.
const PREFIXES: [&str; 9] = ["k", "m", "g", "t", "p", "ki", "mi", "gi", "ti"];
/// Other words for what should be high.
const RISING: [&str; 5] = ["bandwidth", "throughput", "thrpt", "score", "speedup"];
/// Other words for what should be low.
const FALLING: [&str; 14] = [
    "time", "latency", "lat", "slat", "clat", "elapsed", "duration", "took", "cycles", "cpi",
    "misses", "faults", "overhead", "resident",
];

/// Returns the direction in which numbers with these words improve: down for times, up for amounts
/// per time; `None` if the words name neither, or both.
pub(crate) fn usual_direction(text: &str) -> Option<Direction> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split(SEPARATORS).collect();
    let is_rate = is_rate(&words);
    let falls = |word: &&str| {
        let amount = word.split('/').next().unwrap_or_default();
        FALLING.contains(&amount) || (!is_rate && TIMES.contains(&amount))
    };
    let rises = is_rate || words.iter().any(|word| RISING.contains(word));
    let falls = words.iter().any(|word| !is_quotient(word) && falls(word));
    match (rises, falls) {
        (true, false) => Some(Direction::HigherIsBetter),
        (false, true) => Some(Direction::LowerIsBetter),
        _ => None,
    }
}

const SEPARATORS: [char; 13] = [' ', '\t', '_', '-', '(', ')', '[', ']', '|', ',', ':', '=', '"'];

/// Checks for words per time: `GB/s`, `ns/day`, `req per second`, `MLUPS`, `Mop/s total`.
fn is_rate(words: &[&str]) -> bool {
    let is_per_time = |pair: &[&str]| pair[0] == "per" && TIMES.contains(&pair[1]);
    words.iter().any(|word| is_quotient(word) || is_abbreviated(word))
        || words.windows(2).any(is_per_time)
}

/// Checks for something per time: `GB/s`, `Mop/s/thread`.
fn is_quotient(word: &str) -> bool {
    word.split('/').skip(1).any(|of| TIMES.contains(&of))
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

    const RATES: [&str; 33] = [
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
        "Memory bandwidth [MBytes/s] |",
        "received [Kbytes/sec]",
        "lps",
        "Mop/s/thread =",
        "System Benchmarks Index Score",
        "MyBench.sum thrpt 5",
    ];
    const TIMES: [&str; 12] = [
        "s",
        "seconds",
        "ms",
        "ns/op",
        "us/step",
        "ns/sample",
        "cycles/op",
        "Total time: [sec]",
        "avg_msec=",
        "Latency average",
        "s per step",
        "Maximum resident set size (kbytes):",
    ];
    const OTHERS: [&str; 15] = [
        "",
        "MiB",
        "ops",
        "x",
        "steps",
        "watts",
        "%",
        "maps",
        "per",
        "Triad:",
        "Total operations:",
        "ALL Reads :",
        "Est. SPECrate2017_fp_base",
        "cache miss rate",
        "latency at 100 MB/s:",
    ];

    #[test]
    fn times_improve_downwards_amounts_per_time_upwards_and_other_words_say_nothing() {
        let direction = |text: &&str| usual_direction(text);
        let is = |expected| move |text: &&str| direction(text) != expected;
        assert_eq!(RATES.into_iter().find(is(Some(Direction::HigherIsBetter))), None);
        assert_eq!(TIMES.into_iter().find(is(Some(Direction::LowerIsBetter))), None);
        assert_eq!(OTHERS.into_iter().find(is(None)), None);
    }
}
