//! Changes with their intervals, one per row.

use super::markup::tip;
use super::plot::{Drawing, Scale, ScaleKind, WIDTH, tick_text};
use crate::terminal::layout::cut;
use crate::{IntervalRow, Mood};

/// The height of a row with a name of one line.
const ROW: f64 = 84.0;
const LINE: f64 = 26.0;
/// The number of characters of a line that fit on a phone.
const LINE_WIDTH: usize = 50;
const TOP: f64 = 8.0;
const SIDE: f64 = 14.0;
/// The change in percent up to which every row is drawn whole; rows are also drawn up to twice the
/// usual one.
const FARTHEST: f64 = 120.0;

/// Draws rows of name, interval and verdict around zero percent.
pub(super) fn chart(rows: &[IntervalRow]) -> String {
    let reach = 1.15 * reach(rows);
    let x = Scale::new(ScaleKind::Linear, (-reach, reach), (SIDE, WIDTH - SIDE));
    let mut drawing = Drawing::shrinking();
    let mut bottom = TOP;
    for (index, row) in rows.iter().enumerate() {
        bottom += draw(&mut drawing, row, bottom, &x, index == 0);
    }
    for tick in x.ticks() {
        drawing.line("grid", (x.at(tick), bottom), (x.at(tick), bottom + 5.0));
        let sign = if tick > 0.0 { "+" } else { "" };
        let text = format!("{sign}{} %", tick_text(tick));
        drawing.text("tick", "middle", (x.at(tick), bottom + 24.0), &text);
    }
    let described: Vec<String> =
        rows.iter().map(|row| format!("{}: {}", row.name, row.verdict)).collect();
    drawing.finish(bottom + 34.0, "Changes with intervals", &described.join("; "))
}

/// Returns the distance from zero to which rows are drawn, in percent. A single large change must
/// not shrink all others to dots: it is cut off at the edge.
fn reach(rows: &[IntervalRow]) -> f64 {
    let mut reaches: Vec<f64> = rows.iter().map(reach_of).collect();
    reaches.sort_by(f64::total_cmp);
    let usual = reaches.get(reaches.len() / 2).copied().unwrap_or_default();
    let farthest = reaches.last().copied().unwrap_or_default();
    let margin = rows.iter().map(|row| row.margin_percent).fold(1.0, f64::max);
    farthest.min(FARTHEST.max(2.0 * usual)).max(margin)
}

/// Returns the distance of a row's far end from zero, in percent.
fn reach_of(row: &IntervalRow) -> f64 {
    let ends = row.interval.map_or(0.0, |i| i.lo.abs().max(i.hi.abs()));
    ends.max(row.percent.unwrap_or(0.0).abs())
}

/// Splits a name between words into at most two lines that fit; truncates a longer name.
fn lines_of(name: &str) -> Vec<String> {
    let fits = |end: &usize| name[..*end].chars().count() <= LINE_WIDTH;
    let ends = name.match_indices(' ').map(|(at, _)| at);
    match ends.take_while(fits).last() {
        Some(end) if !fits(&name.len()) => {
            vec![name[..end].to_owned(), cut(&name[end + 1..], LINE_WIDTH)]
        }
        _ => vec![cut(name, LINE_WIDTH)],
    }
}

fn draw(drawing: &mut Drawing, row: &IntervalRow, top: f64, x: &Scale, is_first: bool) -> f64 {
    let names = lines_of(&row.name);
    let verdict = top + 20.0 + LINE * names.len() as f64;
    let middle = verdict + 20.0;
    let margin = row.margin_percent;
    // Symmetric as a ratio, like the margin.
    let (low, high) = (x.at(-100.0 * margin / (100.0 + margin)), x.at(margin));
    drawing.raw(&format!(
        "<rect class=\"margin\" x=\"{low:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"20\"/>",
        middle - 10.0,
        high - low
    ));
    let class = row.mood;
    for (line, name) in names.iter().enumerate() {
        drawing.text("", "start", (SIDE, top + 20.0 + LINE * line as f64), name);
    }
    drawing.text(&format!("strong t-{class}"), "start", (SIDE, verdict), &row.verdict);
    if let Some(interval) = row.interval {
        let ends = (x.at(interval.lo), x.at(interval.hi));
        drawing.line(&format!("range r-{class}"), (ends.0, middle), (ends.1, middle));
    }
    let change = row.percent.filter(|change| x.shows(*change));
    if let Some(change) = change {
        let at = x.at(change);
        drawing.raw(&format!(
            "<circle class=\"d-{class}\" cx=\"{at:.1}\" cy=\"{middle:.1}\" r=\"5\"/>"
        ));
    }
    let ends = row.interval.map(|interval| [interval.lo, interval.hi]).into_iter().flatten();
    let beyond: Vec<f64> = ends.chain(row.percent).filter(|value| !x.shows(*value)).collect();
    for toward in [-1.0, 1.0] {
        if let Some(value) = beyond.iter().find(|value| **value * toward > 0.0) {
            arrow(drawing, class, (x.at(*value), middle), toward);
        }
    }
    let height = ROW + LINE * (names.len() - 1) as f64;
    // The line starts below the names, which it must not cross.
    drawing.line("mark", (x.at(0.0), middle - 14.0), (x.at(0.0), top + height));
    drawing.raw(&format!(
        "<rect class=\"hit\" x=\"0\" y=\"{top:.1}\" width=\"{WIDTH}\" height=\"{height}\" {}/>",
        tip(&row.detail, is_first)
    ));
    height
}

/// Draws an arrowhead at the edge: the value is beyond the drawing.
fn arrow(drawing: &mut Drawing, class: Mood, (edge, middle): (f64, f64), toward: f64) {
    let (tip, back) = (edge + 8.0 * toward, edge - 6.0 * toward);
    drawing.raw(&format!(
        "<path class=\"d-{class}\" d=\"M{tip:.1} {middle:.1}L{back:.1} {:.1}L{back:.1} {:.1}Z\"/>",
        middle - 8.0,
        middle + 8.0
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_takes_two_lines_and_keeps_its_words() {
        assert_eq!(lines_of("pages 4k → 2m"), ["pages 4k → 2m"]);
        let long = "sysbench-random throughput: guest 4k → 2m where host is 4k";
        let lines = lines_of(long);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines.join(" "), long);
        let word = "a".repeat(60);
        assert_eq!(lines_of(&word), [format!("{}…", "a".repeat(49))]);
    }
}
