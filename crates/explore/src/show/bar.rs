//! Bars of block characters.

/// Eighths of a character cell (Unicode block elements).
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// A bar of `width` cells, filled by `share` of 0 to 1; any share above 0 shows.
pub(super) fn bar(share: f64, width: usize) -> String {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=8 * width, a few hundred"
    )]
    let filled = {
        let most = (width * 8) as f64;
        let filled = (share * most).clamp(0.0, most);
        if share > 0.0 { (filled.round() as usize).max(1) } else { 0 }
    };
    let mut bar = "█".repeat(filled / 8);
    if !filled.is_multiple_of(8) {
        bar.push(EIGHTHS[filled % 8 - 1]);
    }
    format!("{bar:·<width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_its_width_and_shows_the_smallest_share() {
        assert_eq!(
            [bar(0.0, 4), bar(0.001, 4), bar(0.5, 4), bar(7.0, 4)],
            ["····", "▏···", "██··", "████"]
        );
    }
}
