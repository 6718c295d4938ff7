//! Curves, each as a line of block characters.

use super::Style;
use super::layout::cut;
use crate::Curves;
use crate::number::figure;

/// Eighths of a character cell (Unicode block elements).
const UPWARD: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const NAME_WIDTH: usize = 30;
const CURVE_WIDTH: usize = 32;

/// Draws a line for each curve: its name, its shape between the minimum and the maximum of all
/// curves, its first and its last value.
pub(super) fn chart(curves: &Curves, style: Style) -> String {
    let values =
        || curves.series.iter().flat_map(|series| series.points.iter().map(|point| point.1));
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let mut out = String::new();
    for series in &curves.series {
        let (Some(first), Some(last)) = (series.points.first(), series.points.last()) else {
            continue;
        };
        let shape: String =
            thinned(&series.points).map(|value| UPWARD[eighth(value, low, high)]).collect();
        let name = cut(&series.name, NAME_WIDTH);
        out.push_str(&format!(
            "{name:<NAME_WIDTH$} {} {} – {}\n",
            style.mark(&format!("{shape:<CURVE_WIDTH$}")),
            figure(first.1),
            figure(last.1)
        ));
    }
    out
}

/// Thins the points to the number that fits, spread evenly.
fn thinned(points: &[(f64, f64)]) -> impl Iterator<Item = f64> + '_ {
    let shown = points.len().min(CURVE_WIDTH);
    (0..shown).map(move |at| points[at * (points.len() - 1) / (shown - 1).max(1)].1)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=7")]
fn eighth(value: f64, low: f64, high: f64) -> usize {
    let share = (value - low) / (high - low);
    let share = if share.is_finite() { share } else { 0.0 };
    (share * 7.0).round().clamp(0.0, 7.0) as usize
}
