//! Several curves over one axis.

use super::markup::{escape, tip};
use super::plot::{Drawing, Frame, Scale, ScaleKind, path, tick_text};
use crate::number::figure;
use crate::{Curves, Series};

const HEIGHT: f64 = 340.0;
const FRAME: Frame = Frame::in_height(HEIGHT);
/// The number of colours in the style sheet.
const COLOURS: usize = 6;

/// Draws the curves, with a legend below.
pub(super) fn chart(curves: &Curves, title: &str) -> String {
    let points = || curves.series.iter().flat_map(|series| &series.points);
    let kind = if curves.x_is_logarithmic { ScaleKind::Logarithmic } else { ScaleKind::Linear };
    let least = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let most = points().map(|point| point.0).fold(0.0, f64::max);
    let highest = points().map(|point| point.1).fold(0.0, f64::max);
    let first = if curves.x_is_logarithmic { least } else { least.min(most) };
    let x = Scale::new(kind, (first, most), (FRAME.left + 8.0, FRAME.right - 8.0));
    let y = Scale::new(ScaleKind::Linear, (0.0, highest * 1.1), (FRAME.bottom, FRAME.top));
    let mut drawing = Drawing::new();
    drawing.y_axis(FRAME, &y, &curves.y_name);
    // Counts, such as of ranks or guests, have ticks at whole numbers only.
    let is_whole = |value: f64| (value - value.round()).abs() < 1e-9;
    let all_whole = points().all(|point| is_whole(point.0));
    let ticks = x.ticks().into_iter().filter(|&tick| !all_whole || is_whole(tick));
    let ticks: Vec<(f64, String)> = ticks.map(|tick| (x.at(tick), tick_text(tick))).collect();
    drawing.x_axis(FRAME, &ticks, &curves.x_name);
    for (number, series) in curves.series.iter().enumerate() {
        draw(&mut drawing, number, series, curves, (&x, &y));
    }
    let names: Vec<&str> = curves.series.iter().map(|series| series.name.as_str()).collect();
    drawing.finish(HEIGHT, title, &names.join(", ")) + &legend(&names)
}

fn draw(
    drawing: &mut Drawing,
    number: usize,
    series: &Series,
    of: &Curves,
    (x, y): (&Scale, &Scale),
) {
    let colour = number % COLOURS;
    let line: Vec<(f64, f64)> =
        series.points.iter().map(|&(right, up)| (x.at(right), y.at(up))).collect();
    let dashed =
        if of.series[..number].iter().any(|below| covers(series, below)) { " dashed" } else { "" };
    drawing.raw(&format!("<path class=\"curve c{colour}{dashed}\" d=\"{}\"/>", path(&line)));
    for (at, (&(right, up), (cx, cy))) in series.points.iter().zip(line).enumerate() {
        let text = format!(
            "{}\n{} {}: {} {}",
            series.name,
            tick_text(right),
            of.x_name,
            figure(up),
            of.y_name
        );
        drawing.raw(&format!(
            "<circle class=\"f{colour}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3.5\"/>\
             <circle class=\"hit\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"11\" {}/>",
            tip(&text, number == 0 && at == 0)
        ));
    }
}

/// True if a series would cover a stretch of one below it.
fn covers(above: &Series, below: &Series) -> bool {
    above.points.windows(2).any(|two| below.points.windows(2).any(|under| under == two))
}

fn legend(names: &[&str]) -> String {
    let item = |(number, name): (usize, &&str)| {
        let colour = number % COLOURS;
        format!("<i style=\"background:var(--s{colour})\"></i><span>{}</span>\n", escape(name))
    };
    let items: String = names.iter().enumerate().map(item).collect();
    format!("<div class=\"legend many\">\n{items}</div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_of_whole_numbers_is_marked_at_these_alone() {
        let marks = |right: f64| {
            let series = Series { name: "s".to_owned(), points: vec![(1.0, 5.0), (right, 7.0)] };
            let (x_name, y_name) = ("ranks".to_owned(), "ns".to_owned());
            let curves = Curves { x_name, x_is_logarithmic: false, y_name, series: vec![series] };
            chart(&curves, "title").contains(">1.2</text>")
        };
        assert!(!marks(2.0) && marks(1.9));
    }

    #[test]
    fn a_curve_that_would_hide_another_is_dashed() {
        let series = |name: &str, points: &[(f64, f64)]| Series {
            name: name.to_owned(),
            points: points.to_vec(),
        };
        let curves = Curves {
            x_name: "x".to_owned(),
            x_is_logarithmic: false,
            y_name: "y".to_owned(),
            series: vec![
                series("first", &[(1.0, 50.0), (2.0, 100.0), (3.0, 100.0)]),
                series("crossing", &[(1.0, 100.0), (2.0, 100.0), (3.0, 50.0)]),
                series("joining", &[(1.0, 10.0), (2.0, 100.0), (3.0, 100.0)]),
            ],
        };
        let drawn = chart(&curves, "title");
        for line in ["\"curve c0\"", "\"curve c1\"", "\"curve c2 dashed\""] {
            assert!(drawn.contains(line), "no {line} in {drawn}");
        }
    }
}
