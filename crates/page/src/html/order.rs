//! Every value in the order in which it was taken.

use super::markup::{escape, tip};
use super::plot::{Drawing, Frame, Scale, ScaleKind, WIDTH};
use crate::{Dot, RunOrder};

const FRAME: Frame = Frame { left: 84.0, right: WIDTH - 12.0, top: 34.0, bottom: 234.0 };
const HEIGHT: f64 = 294.0;
/// The number of colours in the style sheet.
const COLOURS: usize = 6;

/// Draws one dot per value, coloured by kind.
pub(super) fn chart(order: &RunOrder) -> String {
    let values = order.dots.iter().map(|dot| dot.value);
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let room = (0.06 * (high - low)).max(0.005 * high.abs());
    let y = Scale::new(ScaleKind::Linear, (low - room, high + room), (FRAME.bottom, FRAME.top));
    let count = order.dots.len();
    let x = Scale::new(ScaleKind::Linear, (0.0, count as f64 + 1.0), (FRAME.left, FRAME.right));
    let mut drawing = Drawing::new();
    drawing.y_axis(FRAME, &y, &order.unit);
    let step = count.div_ceil(8).max(1);
    let ticks: Vec<(f64, String)> =
        (1..=count).step_by(step).map(|number| (x.at(number as f64), number.to_string())).collect();
    drawing.x_axis(FRAME, &ticks, "samples in the order of the run");
    for (index, dot) in order.dots.iter().enumerate() {
        let at = (x.at(index as f64 + 1.0), y.at(dot.value));
        draw(&mut drawing, dot, at, index == 0);
    }
    drawing.finish(HEIGHT, "Run order", &order.described) + &legend(&order.names)
}

fn draw(drawing: &mut Drawing, dot: &Dot, (cx, cy): (f64, f64), is_first: bool) {
    let colour = dot.kind % COLOURS;
    let class = match dot.disturbed {
        false => format!("f{colour}"),
        true => format!("hollow c{colour}"),
    };
    drawing.raw(&format!(
        "<circle class=\"{class}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3.5\"/>\
         <circle class=\"hit\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"8\" {}/>",
        tip(&dot.detail, is_first)
    ));
}

fn legend(names: &[String]) -> String {
    let item = |(index, name): (usize, &String)| {
        format!("<span class=\"key k{}\">{}</span>\n", index % COLOURS, escape(name))
    };
    let items: String = names.iter().enumerate().map(item).collect();
    format!("<p class=\"legend keys\">{items}</p>\n")
}

#[cfg(test)]
mod tests;
