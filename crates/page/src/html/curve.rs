//! Latency by size.

use super::markup::tip;
use super::plot::{Drawing, Frame, Scale, ScaleKind, WIDTH, path};
use crate::model::{CurveLevel, SizeCurve};
use crate::number::{approximate_size, figure, interval_text, size};

const HEIGHT: f64 = 380.0;
/// The maximum number of curves drawn, one per colour; tables show the rest.
const MOST_CURVES: usize = 6;
/// The number of ticks above which every second power of two is left out.
const MOST_TICKS: u32 = 11;

/// Draws the curves, with the plateaus of the first one marked.
pub(super) fn chart(curves: &[SizeCurve]) -> String {
    let shown = &curves[..curves.len().min(MOST_CURVES)];
    let labelled = shown.len() > 1;
    let mut frame = Frame::in_height(HEIGHT);
    if labelled {
        frame.right = WIDTH - 130.0;
    }
    let (x, y) = scales(shown, frame);
    let mut drawing = Drawing::new();
    drawing.y_axis(frame, &y, "ns per load");
    drawing.x_axis(frame, &size_ticks(shown, &x), "buffer size in bytes");
    let levels = shown.first().map_or(&[][..], |curve| &curve.levels);
    for level in levels {
        mark_level(&mut drawing, level, frame, &x, &y);
    }
    for (index, curve) in shown.iter().enumerate().rev() {
        draw(&mut drawing, curve, index, &x, &y);
    }
    for level in levels {
        name_level(&mut drawing, level, &x, &y);
    }
    if labelled {
        name_curves(&mut drawing, shown, frame, &y);
    }
    drawing.finish(HEIGHT, "Latency over buffer size", &description(shown))
}

#[expect(clippy::cast_precision_loss, reason = "places on a drawing")]
fn scales(curves: &[SizeCurve], frame: Frame) -> (Scale, Scale) {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let sizes = (
        least(&mut points().map(|point| point.size_bytes.max(1) as f64)),
        most(&mut points().map(|point| point.size_bytes as f64)),
    );
    let latencies = (
        0.75 * least(&mut points().map(|point| point.figure.value)),
        2.0 * most(&mut points().map(|point| point.figure.value)),
    );
    let kind = ScaleKind::Logarithmic;
    (
        Scale::new(kind, sizes, (frame.left, frame.right)),
        Scale::new(kind, latencies, (frame.bottom, frame.top)),
    )
}

#[expect(clippy::cast_precision_loss, reason = "places on a drawing")]
fn size_ticks(curves: &[SizeCurve], x: &Scale) -> Vec<(f64, String)> {
    let sizes = || curves.iter().flat_map(|c| c.points.iter().map(|p| p.size_bytes.max(1)));
    let first = sizes().min().unwrap_or(1).next_power_of_two().trailing_zeros();
    let last = sizes().max().unwrap_or(1).ilog2();
    let step = (last.saturating_sub(first) / MOST_TICKS + 1).next_power_of_two();
    let exponents = (first..=last).filter(|exponent| exponent % step == 0);
    exponents
        .map(|exponent| 1_u64 << exponent.min(63))
        .map(|bytes| (x.at(bytes as f64), size(bytes)))
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "places on a drawing")]
fn mark_level(drawing: &mut Drawing, level: &CurveLevel, frame: Frame, x: &Scale, y: &Scale) {
    let height = y.at(level.latency_ns);
    let (from, to) = (x.at(level.from_bytes as f64), x.at(level.to_bytes as f64));
    drawing.line("plateau", (from, height), (to, height));
    if let Some(capacity) = level.capacity_bytes {
        let at = x.at(capacity);
        drawing.line("mark", (at, frame.top), (at, frame.bottom));
        let text = approximate_size(capacity);
        drawing.text("tick halo", "middle", (at, frame.top - 6.0), &text);
    }
}

#[expect(clippy::cast_precision_loss, reason = "places on a drawing")]
fn name_level(drawing: &mut Drawing, level: &CurveLevel, x: &Scale, y: &Scale) {
    let (from, to) = (x.at(level.from_bytes as f64), x.at(level.to_bytes as f64));
    let middle = f64::midpoint(from, to);
    let above = y.at(level.latency_ns) - 14.0;
    let text = format!("{} · {} ns", level.name, figure(level.latency_ns));
    // Text near a border is aligned away from the border.
    let (anchor, at) = if from < 90.0 {
        ("start", from - 4.0)
    } else if to > WIDTH - 100.0 {
        ("end", to)
    } else {
        ("middle", middle)
    };
    drawing.text("strong halo", anchor, (at, above), &text);
}

#[expect(clippy::cast_precision_loss, reason = "places on a drawing")]
fn draw(drawing: &mut Drawing, curve: &SizeCurve, index: usize, x: &Scale, y: &Scale) {
    let at = |bytes: u64, ns: f64| (x.at(bytes.max(1) as f64), y.at(ns));
    let upper = curve.points.iter().map(|point| {
        let interval = point.figure.interval;
        at(point.size_bytes, interval.map_or(point.figure.value, |i| i.hi))
    });
    let lower = curve.points.iter().rev().map(|point| {
        let interval = point.figure.interval;
        at(point.size_bytes, interval.map_or(point.figure.value, |i| i.lo))
    });
    let band: Vec<(f64, f64)> = upper.chain(lower).collect();
    drawing.raw(&format!("<path class=\"band f{index}\" d=\"{}Z\"/>", path(&band)));
    let line: Vec<(f64, f64)> =
        curve.points.iter().map(|point| at(point.size_bytes, point.figure.value)).collect();
    drawing.raw(&format!("<path class=\"curve c{index}\" d=\"{}\"/>", path(&line)));
    for (number, (point, (x, y))) in curve.points.iter().zip(line).enumerate() {
        let text = format!(
            "{} ns at {}\n95 % interval {}\n{}\ncell {}",
            figure(point.figure.value),
            size(point.size_bytes),
            interval_text(point.figure.interval),
            curve.name,
            point.cell
        );
        let tip = tip(&text, index == 0 && number == 0);
        drawing.raw(&format!(
            "<circle class=\"f{index}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>\
             <circle class=\"hit\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"11\" {tip}/>"
        ));
    }
}

/// Labels each curve at its end, moving overlapping labels apart.
fn name_curves(drawing: &mut Drawing, curves: &[SizeCurve], frame: Frame, y: &Scale) {
    let mut ends: Vec<(f64, usize)> = curves
        .iter()
        .enumerate()
        .filter_map(|(index, curve)| Some((y.at(curve.points.last()?.figure.value), index)))
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lowest = frame.top;
    for (end, index) in ends {
        let height = end.max(lowest);
        lowest = height + 22.0;
        let class = format!("f{index} strong");
        drawing.text(&class, "start", (frame.right + 8.0, height + 5.0), &curves[index].name);
    }
}

fn description(curves: &[SizeCurve]) -> String {
    let Some(curve) = curves.first() else {
        return String::new();
    };
    let level = |level: &CurveLevel| {
        let end = level
            .capacity_bytes
            .map_or_else(String::new, |capacity| format!(" up to {}", approximate_size(capacity)));
        format!("{} {} ns{end}", level.name, figure(level.latency_ns))
    };
    let levels: Vec<String> = curve.levels.iter().map(level).collect();
    format!("Both axes are logarithmic. {}: {}.", curve.name, levels.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::test_drawing::numbers;
    use super::*;
    use crate::{CurvePoint, Figure};

    fn curve(name: &str, points: &[(u64, f64)]) -> SizeCurve {
        let point = |&(size_bytes, value): &(u64, f64)| CurvePoint {
            size_bytes,
            figure: Figure { value, interval: None },
            cell: "a".to_owned(),
        };
        let points = points.iter().map(point).collect();
        SizeCurve { name: name.to_owned(), points, levels: Vec::new() }
    }

    fn level(from_bytes: u64, to_bytes: u64) -> CurveLevel {
        let name = "L2".to_owned();
        CurveLevel { name, latency_ns: 4.0, from_bytes, to_bytes, capacity_bytes: None }
    }

    #[test]
    fn sizes_are_marked_at_powers_of_two_and_at_fewer_of_them_on_a_long_axis() {
        let marked = |first: u64, last: u64| {
            let curves = [curve("one", &[(first, 1.0), (last, 2.0)])];
            let (x, _) = scales(&curves, Frame::in_height(HEIGHT));
            let names: Vec<String> = size_ticks(&curves, &x).into_iter().map(|of| of.1).collect();
            names.join(" ")
        };
        assert_eq!(marked(3 << 10, 40 << 10), "4K 8K 16K 32K");
        assert_eq!(marked(4 << 10, 512 << 20), "4K 16K 64K 256K 1M 4M 16M 64M 256M");
        assert_eq!(marked(0, 2), "1 2", "an empty buffer is drawn as one byte");
    }

    #[test]
    fn names_of_curves_that_end_at_the_same_latency_are_apart() {
        let ends = [("one", 100.0), ("two", 100.0), ("three", 100.5)];
        let curves = ends.map(|(name, end)| curve(name, &[(4 << 10, 1.0), (1 << 30, end)]));
        let drawn = chart(&curves);
        let mut heights: Vec<f64> = (0..3)
            .flat_map(|at| numbers(&drawn, &format!("<text class=\"f{at} strong\""), "y"))
            .collect();
        heights.sort_by(f64::total_cmp);
        assert_eq!(heights.len(), 3);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= 21.9), "{heights:?}");
        assert!(!chart(&curves[..1]).contains("<text class=\"f0 strong\""), "one needs no name");
    }

    #[test]
    fn more_curves_than_colours_are_left_to_tables() {
        let points = [(4 << 10, 1.0), (1 << 20, 9.0)];
        let curves: Vec<SizeCurve> =
            (0..=MOST_CURVES).map(|at| curve(&format!("node {at}"), &points)).collect();
        let drawn = chart(&curves);
        assert!(drawn.contains("curve c5") && !drawn.contains("curve c6"), "{drawn}");
        assert!(!drawn.contains("node 6"), "{drawn}");
    }

    #[test]
    fn the_name_of_a_level_near_a_border_is_aligned_away_from_it() {
        let anchor = |from: u64, to: u64| {
            let points = [(1 << 10, 1.0), (1 << 30, 100.0)];
            let of = SizeCurve { levels: vec![level(from, to)], ..curve("one", &points) };
            let drawn = chart(&[of]);
            let (before, _) = drawn.split_once("L2 · 4.00 ns").expect("a named level");
            let tag = before.rsplit("<text").next().expect("a text").to_owned();
            ["start", "middle", "end"].into_iter().find(|of| tag.contains(of)).expect("an anchor")
        };
        assert_eq!(anchor(1 << 10, 32 << 10), "start");
        assert_eq!(anchor(256 << 10, 4 << 20), "middle");
        assert_eq!(anchor(64 << 20, 1 << 30), "end");
    }
}
