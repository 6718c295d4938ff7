//! The change in each block.

use super::markup::tip;
use super::plot::{Drawing, Frame, Scale, ScaleKind, WIDTH};
use crate::BlockChanges;
use crate::number::percent;

const FRAME: Frame = Frame { left: 70.0, right: WIDTH - 12.0, top: 34.0, bottom: 214.0 };
const HEIGHT: f64 = 274.0;

/// Draws a dot per block, the effect as a line, and its interval as a band.
pub(super) fn chart(of: &BlockChanges) -> String {
    let values = &of.changes;
    let (low, high) =
        values.iter().fold((0.0_f64, 0.0_f64), |(low, high), v| (low.min(*v), high.max(*v)));
    let room = 0.1 * (high - low).max(0.5);
    let y = Scale::new(ScaleKind::Linear, (low - room, high + room), (FRAME.bottom, FRAME.top));
    let blocks = values.len() as f64;
    let x = Scale::new(ScaleKind::Linear, (0.4, blocks + 0.6), (FRAME.left, FRAME.right));
    let mut drawing = Drawing::new();
    drawing.y_axis(FRAME, &y, of.unit.as_deref().unwrap_or("change in %"));
    if let Some(interval) = of.interval {
        let (top, bottom) = (y.at(interval.hi), y.at(interval.lo));
        drawing.raw(&format!(
            "<rect class=\"band f0\" x=\"{}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            FRAME.left,
            FRAME.right - FRAME.left,
            (bottom - top).max(1.0)
        ));
    }
    let level = y.at(of.effect);
    drawing.line("curve c0", (FRAME.left, level), (FRAME.right, level));
    drawing.line("mark", (FRAME.left, y.at(0.0)), (FRAME.right, y.at(0.0)));
    let step = values.len().div_ceil(12).max(1);
    let ticks: Vec<(f64, String)> = (1..=values.len())
        .step_by(step)
        .map(|block| (x.at(block as f64), block.to_string()))
        .collect();
    drawing.x_axis(FRAME, &ticks, "block");
    for (index, value) in values.iter().enumerate() {
        let (cx, cy) = (x.at(index as f64 + 1.0), y.at(*value));
        let change = match of.unit {
            None => percent(*value),
            Some(_) => format!("{value:+.4}"),
        };
        let text = format!("block {}: {change}", index + 1);
        drawing.raw(&format!(
            "<circle class=\"f1\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"4\"/>\
             <circle class=\"hit\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"11\" {}/>",
            tip(&text, index == 0)
        ));
    }
    drawing.finish(HEIGHT, "The change in each block", &of.described)
}

#[cfg(test)]
mod tests {
    use numalab_stats::Interval;

    use super::super::test_drawing::numbers;
    use super::*;

    fn changes(count: usize) -> BlockChanges {
        BlockChanges {
            changes: (0..count).map(|at| at as f64 - 1.0).collect(),
            effect: 1.5,
            interval: None,
            unit: None,
            described: String::new(),
        }
    }

    #[test]
    fn no_change_is_always_within_the_drawing() {
        for sign in [1.0, -1.0] {
            let mut of = changes(0);
            of.changes = [5.0, 6.0, 7.0].map(|change| sign * change).to_vec();
            of.effect = sign * 6.0;
            let drawn = chart(&of);
            let (zero, effect) = (
                numbers(&drawn, "<line class=\"mark\"", "y1")[0],
                numbers(&drawn, "<line class=\"curve c0\"", "y1")[0],
            );
            assert!((FRAME.top..FRAME.bottom).contains(&zero), "{zero}");
            assert_eq!(effect < zero, sign > 0.0, "higher is above");
        }
    }

    #[test]
    fn at_most_twelve_blocks_are_numbered() {
        let numbered = |count| {
            let drawn = chart(&changes(count));
            let axis = drawn.matches("text-anchor=\"middle\"").count();
            axis - 1
        };
        assert_eq!([numbered(4), numbered(12), numbered(13), numbered(100)], [4, 12, 7, 12]);
    }

    #[test]
    fn an_interval_is_a_band_and_a_unit_replaces_percent() {
        let mut of = changes(4);
        assert!(!chart(&of).contains("band"));
        of.interval = Some(Interval { lo: 0.5, hi: 2.0 });
        of.unit = Some("ms".to_owned());
        let drawn = chart(&of);
        let level = numbers(&drawn, "<line class=\"curve c0\"", "y1")[0];
        let [top, height] =
            ["y", "height"].map(|name| numbers(&drawn, "<rect class=\"band f0\"", name)[0]);
        assert!((top..top + height).contains(&level), "{top} and {height} around {level}");
        assert!(drawn.contains(">ms</text>") && !drawn.contains("change in %"), "{drawn}");
        assert!(drawn.contains("block 1: -1.0000"), "{drawn}");
    }
}
