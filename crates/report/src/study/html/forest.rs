//! Every answer with its interval, one below the other.

use numalab_stats::Verdict;

use crate::html::markup::tip;
use crate::html::plot::{Drawing, Scale, ScaleKind, WIDTH, tick_text};
use crate::study::words;
use crate::terminal::layout::cut;
use numalab_analysis::study::{Effect, Subject};

const ROW: f64 = 84.0;
/// Characters of a name for which a phone has room.
const NAME_WIDTH: usize = 50;
const TOP: f64 = 8.0;
const SIDE: f64 = 14.0;
/// Changes beyond this are drawn at the edge, in percent.
const FARTHEST: f64 = 120.0;

/// Rows of name, interval and verdict around zero percent.
pub(super) fn chart(answers: &[(&Subject, &Effect)]) -> String {
    let reach = answers.iter().map(|(subject, effect)| reach(subject, effect));
    let reach = 1.15 * reach.fold(1.0, f64::max);
    let x = Scale::new(ScaleKind::Linear, (-reach, reach), (SIDE, WIDTH - SIDE));
    let mut drawing = Drawing::new();
    let bottom = TOP + ROW * answers.len() as f64;
    let several = answers.iter().any(|(_, effect)| effect.label != answers[0].1.label);
    for (index, (subject, effect)) in answers.iter().enumerate() {
        let top = TOP + ROW * index as f64;
        row(&mut drawing, (subject, effect), top, &x, (index == 0, several));
    }
    drawing.line("mark", (x.at(0.0), TOP), (x.at(0.0), bottom));
    for tick in x.ticks() {
        drawing.line("grid", (x.at(tick), bottom), (x.at(tick), bottom + 5.0));
        let sign = if tick > 0.0 { "+" } else { "" };
        let text = format!("{sign}{} %", tick_text(tick));
        drawing.text("tick", "middle", (x.at(tick), bottom + 24.0), &text);
    }
    let described: Vec<String> = answers
        .iter()
        .map(|(subject, effect)| {
            let verdict = words::verdict(&effect.found, subject.margin_percent);
            format!("{}: {}, {verdict}", subject.title(), words::change(&effect.found))
        })
        .collect();
    drawing.finish(bottom + 34.0, "Changes with intervals", &described.join("; "))
}

/// How far from zero a row goes, in percent.
fn reach(subject: &Subject, effect: &Effect) -> f64 {
    let interval = effect.found.percent_interval();
    let ends = interval.map_or(0.0, |i| i.lo.abs().max(i.hi.abs()));
    let change = effect.found.percent().unwrap_or(0.0).abs();
    // One change that is far away must not make dots of all others: it ends at the edge.
    ends.max(change).min(FARTHEST).max(subject.margin_percent)
}

fn row(
    drawing: &mut Drawing,
    (subject, effect): (&Subject, &Effect),
    top: f64,
    x: &Scale,
    (is_first, several): (bool, bool),
) {
    let middle = top + 66.0;
    let margin = subject.margin_percent;
    // Symmetric in ratio, as the margin is.
    let (low, high) = (x.at(-100.0 * margin / (100.0 + margin)), x.at(margin));
    drawing.raw(&format!(
        "<rect class=\"margin\" x=\"{low:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"20\"/>",
        middle - 10.0,
        high - low
    ));
    let name = match several {
        true => format!("{}: {}", subject.title(), effect.label),
        false => subject.title(),
    };
    let verdict = words::verdict(&effect.found, margin);
    drawing.text("", "start", (SIDE, top + 20.0), &cut(&name, NAME_WIDTH));
    let class = match effect.found.verdict {
        Verdict::Better => "good",
        Verdict::Worse => "bad",
        Verdict::Equivalent => "even",
        Verdict::Inconclusive { .. } => "open",
    };
    let short = verdict.split(':').next().unwrap_or(&verdict);
    let short = format!("{} {short}", words::change(&effect.found));
    drawing.text(&format!("strong t-{class}"), "start", (SIDE, top + 46.0), &short);
    if let Some(interval) = effect.found.percent_interval() {
        let ends = (x.at(interval.lo), x.at(interval.hi));
        drawing.line(&format!("range r-{class}"), (ends.0, middle), (ends.1, middle));
    }
    if let Some(change) = effect.found.percent() {
        let at = x.at(change);
        drawing.raw(&format!(
            "<circle class=\"d-{class}\" cx=\"{at:.1}\" cy=\"{middle:.1}\" r=\"5\"/>"
        ));
    }
    let text = format!(
        "{}: {}\n{}\n{verdict}",
        subject.title(),
        effect.label,
        words::change_with_interval(&effect.found)
    );
    drawing.raw(&format!(
        "<rect class=\"hit\" x=\"0\" y=\"{top:.1}\" width=\"{WIDTH}\" height=\"{ROW}\" {}/>",
        tip(&text, is_first)
    ));
}
