//! Formatting of figures, sizes and times for readers.

use numalab_stats::Interval;

/// Formats a figure with about three significant digits: `0.981`, `86.6`, `173`.
pub fn figure(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() {
        "–".to_owned()
    } else if magnitude >= 1e7 || (magnitude > 0.0 && magnitude < 1e-3) {
        format!("{value:.2e}")
    } else if magnitude >= 99.95 {
        format!("{value:.0}")
    } else if magnitude >= 9.995 {
        format!("{value:.1}")
    } else if magnitude >= 0.9995 || magnitude == 0.0 {
        format!("{value:.2}")
    } else if magnitude >= 0.09995 {
        format!("{value:.3}")
    } else if magnitude >= 0.009_995 {
        format!("{value:.4}")
    } else {
        format!("{value:.5}")
    }
}

/// Formats `97.9 – 98.6`, with enough digits to distinguish the bounds, or a dash without an
/// interval.
pub fn interval_text(interval: Option<Interval>) -> String {
    let Some(Interval { lo, hi }) = interval else {
        return "–".to_owned();
    };
    let decimals = (0..4).find(|&decimals| (hi - lo) * 10_f64.powi(decimals) >= 1.0);
    match decimals.map(|decimals| decimals.unsigned_abs() as usize) {
        Some(decimals) if decimals > 0 && hi.abs() < 1e5 => {
            format!("{lo:.decimals$} – {hi:.decimals$}")
        }
        _ => format!("{} – {}", figure(lo), figure(hi)),
    }
}

/// Formats a ratio: `1.62x`.
pub fn ratio(value: f64) -> String {
    format!("{}x", figure(value))
}

/// Formats a share of a whole in percent: `3.1 %`; only an exact zero is `0 %`.
pub fn share(part: usize, whole: usize) -> String {
    if part == 0 || whole == 0 {
        return "0 %".to_owned();
    }
    let percent = ratio_of(part, whole) * 100.0;
    if percent < 0.1 { "under 0.1 %".to_owned() } else { format!("{percent:.1} %") }
}

/// Formats a share from 0 to 1 in percent: `96 %`, `0.3 %`; only an exact one is `100 %`.
pub fn share_words(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p <= 0.0 => "0 %".to_owned(),
        p if p < 0.1 => "under 0.1 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %"),
        p if p > 99.5 && p < 100.0 => "over 99 %".to_owned(),
        p => format!("{p:.0} %"),
    }
}

/// Returns `part / whole`, or 0 if `whole` is 0.
#[expect(clippy::cast_precision_loss, reason = "counts of windows and cells stay far below 2^52")]
pub fn ratio_of(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Formats a change in percent with its sign: `+3.1 %`.
pub fn percent(value: f64) -> String {
    if !value.is_finite() {
        "–".to_owned()
    } else if value.abs() < 9.995 {
        format!("{value:+.2} %")
    } else {
        format!("{value:+.1} %")
    }
}

/// Formats a value without trailing zeros: `1`, `0.25`.
pub fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a count with its noun: `1 cell`, `3 cells`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Formats a number of bytes in binary units: `48K`, `1.5M`, `1G`.
pub fn size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with three significant digits")]
    approximate_size(bytes as f64)
}

/// Formats a number of bytes with the unit's name: `48 KiB`, `1.5 GiB`.
pub fn size_words(bytes: u64) -> String {
    let size = size(bytes);
    match size.strip_suffix(|letter: char| letter.is_ascii_alphabetic()) {
        Some(number) => format!("{number} {}iB", &size[number.len()..]),
        None => format!("{size} B"),
    }
}

/// Formats an estimated number of bytes in binary units.
pub fn approximate_size(bytes: f64) -> String {
    const UNITS: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
    if !bytes.is_finite() || bytes < 0.0 {
        return "–".to_owned();
    }
    let mut value = bytes;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() && (value >= 1023.5 || value.fract() != 0.0) {
        value /= 1024.0;
        unit += 1;
    }
    let name = UNITS[unit];
    if (value - value.round()).abs() <= 0.005 * value || value >= 99.95 {
        format!("{value:.0}{name}")
    } else {
        format!("{value:.1}{name}")
    }
}

/// Formats a duration: `850 ms`, `61 s`.
pub fn duration(nanoseconds: u64) -> String {
    match nanoseconds {
        0..1_000_000_000 => format!("{} ms", nanoseconds / 1_000_000),
        1_000_000_000..600_000_000_000 => format!("{} s", nanoseconds / 1_000_000_000),
        _ => format!("{} min", nanoseconds / 60_000_000_000),
    }
}

/// Formats seconds as `40 s`, `12 min` or `3.5 h`.
pub fn seconds_words(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("{seconds:.0} s")
    } else if seconds < 7_200.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3_600.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_about_three_significant_digits() {
        let shown = [0.0, 0.981, 1.239, 86.649, 99.96, 173.2, 1.0e12, f64::NAN].map(figure);
        let expected = ["0.00", "0.981", "1.24", "86.6", "100", "173", "1.00e12", "–"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn sizes_use_binary_units_and_no_false_digits() {
        let shown = [0, 512, 4096, 5793, 49_152, 1 << 20, 3 << 19, 1 << 30, u64::MAX].map(size);
        let expected = ["0", "512", "4K", "5.7K", "48K", "1M", "1.5M", "1G", "16E"];
        assert_eq!(shown, expected);
        let words = [0, 4096, 3 << 29].map(size_words);
        assert_eq!(words, ["0 B", "4 KiB", "1.5 GiB"]);
    }

    #[test]
    fn a_small_share_is_never_shown_as_none() {
        assert_eq!(share(0, 5), "0 %");
        assert_eq!(share(1, 100_000), "under 0.1 %");
        assert_eq!(share(1, 32), "3.1 %");
        let shown = [0.0, 0.0004, 0.031, 0.96, 0.9996, 1.0].map(share_words);
        assert_eq!(shown, ["0 %", "under 0.1 %", "3.1 %", "96 %", "over 99 %", "100 %"]);
    }
}
