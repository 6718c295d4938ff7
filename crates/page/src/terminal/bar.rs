//! Bars of block characters.

/// Eighths of a character cell (Unicode block elements).
const RIGHTWARD: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Returns the position of `value` between `low` and `high`, in eighths of `cells` characters, at
/// least one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "clamped to 1..=8 * cells, a few hundred"
)]
pub(super) fn eighths(value: f64, low: f64, high: f64, cells: usize) -> usize {
    let most = (cells * 8) as f64;
    let share = (value - low) / (high - low);
    let share = if share.is_finite() { share } else { 1.0 };
    (share * most).round().clamp(1.0, most) as usize
}

pub(super) fn rightward(eighths: usize) -> String {
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(RIGHTWARD[eighths % 8 - 1]);
    }
    bar
}

/// Returns a bar of `width` characters, filled by `share` from 0 to 1; any share above 0 is
/// visible.
pub fn share_bar(share: f64, width: usize) -> String {
    let bar = if share > 0.0 { rightward(eighths(share, 0.0, 1.0, width)) } else { String::new() };
    format!("{bar:·<width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_its_width_and_shows_the_smallest_share() {
        let bars = [0.0, 0.001, 0.5, 7.0].map(|share| share_bar(share, 4));
        assert_eq!(bars, ["····", "▏···", "██··", "████"]);
    }
}
