//! Grouped bars.

use super::markup::tip;
use super::plot::{Drawing, Scale, ScaleKind, WIDTH};
use crate::number::{figure, interval_text};
use crate::{Bar, BarGroup};

const ROW: f64 = 34.0;
const TITLE_ROW: f64 = 38.0;
const LEFT: f64 = 180.0;
const RIGHT: f64 = WIDTH - 130.0;

/// Draws all groups on one scale that starts at zero.
pub(super) fn chart(groups: &[BarGroup]) -> String {
    let bars = || groups.iter().flat_map(|group| &group.bars);
    let most = bars().map(|bar| bar.figure.value).fold(0.0, f64::max);
    let scale = Scale::new(ScaleKind::Linear, (0.0, most), (LEFT, RIGHT));
    let mut drawing = Drawing::new();
    let mut top = 0.0;
    let mut is_first = true;
    for group in groups {
        drawing.text("strong", "start", (2.0, top + 24.0), &group.title);
        top += TITLE_ROW;
        for bar in &group.bars {
            draw(&mut drawing, bar, top, &scale, is_first);
            is_first = false;
            top += ROW;
        }
    }
    drawing.line("grid", (LEFT, 34.0), (LEFT, top));
    let bars: Vec<String> = bars()
        .map(|bar| format!("{} {} {}", bar.label, figure(bar.figure.value), bar.unit))
        .collect();
    drawing.finish(top + 6.0, "Bandwidth by kernel", &bars.join(", "))
}

fn draw(drawing: &mut Drawing, bar: &Bar, top: f64, scale: &Scale, is_first: bool) {
    let value = bar.figure.value;
    let end = scale.at(value);
    let middle = top + ROW / 2.0;
    drawing.text("", "end", (LEFT - 10.0, middle + 5.0), &bar.label);
    drawing.raw(&format!(
        "<rect class=\"f0\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\"/>",
        top + 5.0,
        (end - LEFT).max(1.0),
        ROW - 10.0
    ));
    let mut beyond = end;
    if let Some(interval) = bar.figure.interval {
        let (lo, hi) = (scale.at(interval.lo), scale.at(interval.hi));
        drawing.line("whisker", (lo, middle), (hi, middle));
        beyond = beyond.max(hi);
    }
    let text = format!("{} {}", figure(value), bar.unit);
    drawing.text("strong", "start", (beyond + 6.0, middle + 5.0), &text);
    let tip_text = format!(
        "{}: {text}\n95 % interval {}\ncell {}",
        bar.label,
        interval_text(bar.figure.interval),
        bar.cell
    );
    drawing.raw(&format!(
        "<rect class=\"hit\" x=\"0\" y=\"{top:.1}\" width=\"{WIDTH}\" height=\"{ROW}\" {}/>",
        tip(&tip_text, is_first)
    ));
}

#[cfg(test)]
mod tests {
    use numalab_stats::Interval;

    use super::super::test_drawing::numbers;
    use super::*;
    use crate::Figure;

    fn group(title: &str, values: &[f64]) -> BarGroup {
        let bar = |value: &f64| Bar {
            label: format!("bar of {value}"),
            figure: Figure { value: *value, interval: None },
            unit: "GB/s".to_owned(),
            cell: "a".to_owned(),
        };
        BarGroup { title: title.to_owned(), bars: values.iter().map(bar).collect() }
    }

    #[test]
    fn bars_of_all_groups_have_one_scale_from_zero() {
        let drawn = chart(&[group("one", &[10.0, 5.0]), group("two", &[2.5, 0.0])]);
        let widths = numbers(&drawn, "<rect class=\"f0\"", "width");
        let whole = RIGHT - LEFT;
        assert_eq!(widths, [whole, whole / 2.0, whole / 4.0, 1.0]);
        let tops = numbers(&drawn, "<rect class=\"f0\"", "y");
        assert_eq!(tops[1] - tops[0], ROW);
        assert_eq!(tops[2] - tops[1], ROW + TITLE_ROW, "a title is between two groups");
    }

    #[test]
    fn a_figure_is_beyond_its_bar_and_its_interval() {
        let mut wide = group("one", &[10.0, 5.0]);
        let end = |group: &BarGroup| {
            *numbers(&chart(std::slice::from_ref(group)), "<text class=\"strong\"", "x")
                .last()
                .unwrap()
        };
        let without = end(&wide);
        wide.bars[1].figure.interval = Some(Interval { lo: 4.0, hi: 7.5 });
        assert_eq!(end(&wide) - without, (RIGHT - LEFT) / 4.0);
        assert!(chart(&[wide]).contains("95 % interval 4.00 – 7.50"));
    }
}
