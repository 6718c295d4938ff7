//! Latency by bandwidth.

use numalab_stats::{KNEE_FACTOR, Knee};

use super::markup::tip;
use super::plot::{Drawing, Frame, Scale, ScaleKind, WIDTH, path, tick_text};
use crate::model::LoadPoint;
use crate::number::{figure, interval_text};

const HEIGHT: f64 = 340.0;
const FRAME: Frame = Frame::in_height(HEIGHT);

/// Draws latency by the bandwidth achieved, with the knee marked.
pub(super) fn chart(points: &[LoadPoint], knee: Option<&Knee>) -> String {
    let bandwidths = points.iter().map(|point| point.traffic_gb_per_s);
    let latencies = points.iter().map(|point| point.latency.value);
    let (widest, slowest) = (bandwidths.fold(0.0, f64::max), latencies.fold(0.0, f64::max));
    let kind = ScaleKind::Linear;
    let x = Scale::new(kind, (0.0, widest * 1.08), (FRAME.left, FRAME.right));
    let y = Scale::new(kind, (0.0, slowest * 1.15), (FRAME.bottom, FRAME.top));
    let mut drawing = Drawing::new();
    drawing.y_axis(FRAME, &y, "ns per load");
    let ticks: Vec<(f64, String)> =
        x.ticks().into_iter().map(|tick| (x.at(tick), tick_text(tick))).collect();
    drawing.x_axis(FRAME, &ticks, "traffic of the load workers in GB/s");
    if let Some(knee) = knee {
        mark_knee(&mut drawing, knee, &x, &y);
    }
    let line: Vec<(f64, f64)> = points
        .iter()
        .map(|point| (x.at(point.traffic_gb_per_s), y.at(point.latency.value)))
        .collect();
    drawing.raw(&format!("<path class=\"curve c0\" d=\"{}\"/>", path(&line)));
    let scale = y;
    for (number, (point, (x, y))) in points.iter().zip(line).enumerate() {
        let text = format!(
            "{} ns at {} GB/s, {}\n95 % interval {} ns\ncell {}",
            figure(point.latency.value),
            figure(point.traffic_gb_per_s),
            point.load,
            interval_text(point.latency.interval),
            point.cell
        );
        if let Some(interval) = point.latency.interval {
            drawing.line("whisker", (x, scale.at(interval.lo)), (x, scale.at(interval.hi)));
        }
        drawing.raw(&format!(
            "<circle class=\"f0\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>\
             <circle class=\"hit\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"12\" {}/>",
            tip(&text, number == 0)
        ));
    }
    drawing.finish(HEIGHT, "Latency over bandwidth", &description(points))
}

fn mark_knee(drawing: &mut Drawing, knee: &Knee, x: &Scale, y: &Scale) {
    let (at, level) = (x.at(knee.bandwidth), y.at(knee.idle_ns * KNEE_FACTOR));
    drawing.line("mark", (FRAME.left, level), (FRAME.right, level));
    drawing.line("mark", (at, FRAME.top), (at, FRAME.bottom));
    let text = format!("twice idle ({} ns)", figure(knee.idle_ns * KNEE_FACTOR));
    drawing.text("tick halo", "start", (FRAME.left + 8.0, level - 8.0), &text);
    let knee = format!("knee {} GB/s", figure(knee.bandwidth));
    // To the left of the line if there is no room on the right.
    let (anchor, at) = if at > WIDTH / 2.0 { ("end", at - 8.0) } else { ("start", at + 8.0) };
    drawing.text("strong halo", anchor, (at, FRAME.bottom - 12.0), &knee);
}

fn description(points: &[LoadPoint]) -> String {
    let point = |point: &LoadPoint| {
        format!("{} ns at {} GB/s", figure(point.latency.value), figure(point.traffic_gb_per_s))
    };
    let points: Vec<String> = points.iter().map(point).collect();
    points.join(", ")
}

#[cfg(test)]
mod tests {
    use numalab_stats::Interval;

    use super::super::test_drawing::numbers;
    use super::*;
    use crate::Figure;

    fn points(of: &[(f64, f64)]) -> Vec<LoadPoint> {
        let point = |&(traffic_gb_per_s, value): &(f64, f64)| LoadPoint {
            load: "delay 400".to_owned(),
            traffic_gb_per_s,
            latency: Figure { value, interval: None },
            cell: "a".to_owned(),
        };
        of.iter().map(point).collect()
    }

    #[test]
    fn a_knee_is_named_on_the_side_of_its_line_that_has_room() {
        let points = points(&[(1.0, 100.0), (20.0, 250.0)]);
        let named = |bandwidth: f64| {
            let knee = Knee { bandwidth, latency_ns: 200.0, idle_ns: 100.0 };
            let drawn = chart(&points, Some(&knee));
            let lines = numbers(&drawn, "<line class=\"mark\"", "x1");
            let text = format!("knee {} GB/s", figure(bandwidth));
            let (before, _) = drawn.split_once(&text).expect("a named knee");
            let tag = before.rsplit("<text").next().expect("a text");
            assert!(drawn.contains("twice idle (200 ns)"), "{drawn}");
            (lines[1], tag.contains("text-anchor=\"end\""))
        };
        let ((left, is_left_of_it), (right, is_left_of_that)) = (named(2.0), named(19.0));
        assert!(left < right && !is_left_of_it && is_left_of_that);
    }

    #[test]
    fn only_points_with_an_interval_have_whiskers() {
        let mut points = points(&[(1.0, 100.0), (2.0, 110.0), (3.0, 150.0)]);
        assert!(!chart(&points, None).contains("whisker"));
        points[1].latency.interval = Some(Interval { lo: 105.0, hi: 115.0 });
        let drawn = chart(&points, None);
        let dot = numbers(&drawn, "<circle class=\"f0\"", "cx")[1];
        assert_eq!(numbers(&drawn, "<line class=\"whisker\"", "x1"), [dot]);
        assert!(
            drawn.contains("<desc>100 ns at 1.00 GB/s, 110 ns at 2.00 GB/s, 150 ns at 3.00 GB/s")
        );
    }
}
