//! Every sample in the order in which it was taken.

use numalab_record::study::{Arm, SampleEntry};

use crate::html::markup::{escape, tip};
use crate::html::plot::{Drawing, Frame, Scale, ScaleKind, WIDTH};
use crate::number::figure;
use numalab_analysis::study::{StudySummary, Subject};

const FRAME: Frame = Frame { left: 84.0, right: WIDTH - 12.0, top: 34.0, bottom: 234.0 };
const HEIGHT: f64 = 294.0;
/// Colours of the style sheet.
const COLOURS: usize = 6;

/// A dot a sample, coloured by treatment.
pub(super) fn chart(summary: &StudySummary<'_>, subject: &Subject) -> String {
    let samples: Vec<(&SampleEntry, f64)> = summary
        .document
        .samples()
        .filter(|sample| sample.workload == subject.workload)
        .filter_map(|sample| {
            let mut readings = sample.taken.readings.iter();
            let reading = readings.find(|r| r.quantity.metric == subject.quantity.metric)?;
            Some((sample, reading.value))
        })
        .collect();
    let (low, high) = samples
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), (_, v)| (l.min(*v), h.max(*v)));
    let room = (0.06 * (high - low)).max(0.005 * high.abs());
    let y = Scale::new(ScaleKind::Linear, (low - room, high + room), (FRAME.bottom, FRAME.top));
    let count = samples.len() as f64;
    let x = Scale::new(ScaleKind::Linear, (0.0, count + 1.0), (FRAME.left, FRAME.right));
    let mut drawing = Drawing::new();
    drawing.y_axis(FRAME, &y, &subject.quantity.unit);
    let step = samples.len().div_ceil(8).max(1);
    let ticks: Vec<(f64, String)> = (1..=samples.len())
        .step_by(step)
        .map(|number| (x.at(number as f64), number.to_string()))
        .collect();
    drawing.x_axis(FRAME, &ticks, "samples in the order of the run");
    for (index, (sample, value)) in samples.iter().enumerate() {
        let at = (x.at(index as f64 + 1.0), y.at(*value));
        dot(&mut drawing, summary, subject, (sample, *value), at, index == 0);
    }
    let described = format!(
        "{} samples of {} from {} to {} {}",
        samples.len(),
        subject.title(),
        figure(low),
        figure(high),
        subject.quantity.unit
    );
    drawing.finish(HEIGHT, "Run order", &described) + &legend(summary)
}

fn dot(
    drawing: &mut Drawing,
    summary: &StudySummary<'_>,
    subject: &Subject,
    (sample, value): (&SampleEntry, f64),
    (cx, cy): (f64, f64),
    is_first: bool,
) {
    let run = &summary.document.run;
    let name = run.treatments.get(sample.treatment).map_or("", |t| t.name.as_str());
    let again = if sample.arm == Arm::Again { ", again" } else { "" };
    let block = match sample.block.checked_sub(run.rules.warm_ups) {
        Some(block) => format!("block {}", block + 1),
        None => "warm-up".to_owned(),
    };
    let mut text = format!("{name}{again}\n{} {}, {block}", figure(value), subject.quantity.unit);
    for disturbance in &sample.taken.disturbances {
        text.push_str(&format!("\n{disturbance}"));
    }
    let colour = sample.treatment % COLOURS;
    let class = match sample.taken.disturbances.is_empty() {
        true => format!("f{colour}"),
        false => format!("hollow c{colour}"),
    };
    drawing.raw(&format!(
        "<circle class=\"{class}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3.5\"/>\
         <circle class=\"hit\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"8\" {}/>",
        tip(&text, is_first)
    ));
}

fn legend(summary: &StudySummary<'_>) -> String {
    let treatments = summary.document.run.treatments.iter().enumerate();
    let items: String = treatments
        .map(|(index, treatment)| {
            format!("<span class=\"key k{}\">{}</span>\n", index % COLOURS, escape(&treatment.name))
        })
        .collect();
    format!("<p class=\"legend keys\">{items}</p>\n")
}
