//! The use of memory over time, one line per region.

use super::Style;
use super::layout::cut;
use crate::{MemoryOverTime, Moment, TimeRow};

/// Eighths of a character cell (Unicode block elements).
const UPWARD: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const NAME_WIDTH: usize = 22;
const WIDTH: usize = 54;

/// Draws lines of the same length: all accesses, remote accesses, threads, and each region.
pub(super) fn chart(of: &MemoryOverTime, style: Style) -> String {
    let rate = |moment: &Moment| moment.local + moment.remote + moment.unplaced;
    let values = |value: &dyn Fn(&Moment) -> f64| of.moments.iter().map(value).collect::<Vec<_>>();
    let most = of.moments.iter().map(rate).fold(0.0, f64::max);
    let mut out = line(&format!("{}/s", of.counted), &values(&rate), most, style);
    if of.moments.iter().any(|moment| moment.remote > 0.0) {
        out.push_str(&line("  of these remote", &values(&|moment| moment.remote), most, style));
    }
    let running = values(&|moment| moment.running);
    let threads = running.iter().copied().fold(0.0, f64::max);
    out.push_str(&line("threads running", &running, threads, style));
    if of.has_waits {
        let waiting = values(&|moment| moment.waiting);
        out.push_str(&line("  of these waiting", &waiting, threads, style));
    }
    let cells = |row: &TimeRow| row.cells.iter().map(|(value, _)| *value).collect::<Vec<_>>();
    let most = of.rows.iter().flat_map(cells).fold(0.0, f64::max);
    for row in &of.rows {
        out.push_str(&line(&row.name, &cells(row), most, style));
    }
    out
}

fn line(name: &str, values: &[f64], most: f64, style: Style) -> String {
    let shape: String =
        joined(values).into_iter().map(|value| UPWARD[height(value, most)]).collect();
    let name = cut(name, NAME_WIDTH);
    format!("{name:<NAME_WIDTH$} {}\n", style.mark(shape.trim_end()))
}

/// Reduces the values to the number that fits, each the maximum of its neighbours.
fn joined(values: &[f64]) -> Vec<f64> {
    let width = values.len().min(WIDTH);
    let part = |at: usize| &values[at * values.len() / width..(at + 1) * values.len() / width];
    (0..width).map(|at| part(at).iter().copied().fold(0.0, f64::max)).collect()
}

/// Returns the height of a block in eighths; at least one for any value above 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=8")]
fn height(value: f64, most: f64) -> usize {
    if value <= 0.0 || most <= 0.0 {
        return 0;
    }
    (value / most * 8.0).round().clamp(1.0, 8.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_when_a_region_is_used() {
        let row = |name: &str, values: [f64; 4]| TimeRow {
            name: name.to_owned(),
            cells: values.map(|value| (value, 0.0)).to_vec(),
        };
        let of = MemoryOverTime {
            rows: vec![row("[heap]", [8.0, 8.0, 0.0, 0.01]), row("[stack]", [0.0, 0.0, 4.0, 4.0])],
            ..MemoryOverTime::default()
        };
        let text = chart(&of, Style::Plain);
        let found: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert!(found[2].ends_with("██ ▁") && found[3].ends_with("▄▄"), "{text}");
        assert_eq!(joined(&[1.0; 500]).len(), WIDTH);
    }
}
