//! Advice for a program in words.

use numalab_analysis::VerdictWord;
use numalab_analysis::advice::{Advice, AdvisedOption, Candidate, WORTH_SHARE};
use numalab_record::Kind;

use crate::documents::document;
use crate::number::{figure, trimmed};
use crate::page::{Lead, Mood, Page, Panel, Part};
use crate::report::Report;
use crate::rows::Rows;
use crate::table::Table;

impl Report for Advice {
    fn page(&self) -> Page {
        let best = self.best();
        let parts = (!self.options.is_empty()).then(|| options(self));
        Page {
            brand: "numalab advise".to_owned(),
            title: format!("Which placement is right for {}?", self.command.join(" ")),
            meta: format!(
                "{} ms on a machine of {}; {} % of the threads' time waits for memory",
                figure(self.elapsed_ns as f64 / 1e6),
                match self.machine.nodes.len() {
                    1 => "one node".to_owned(),
                    nodes => format!("{nodes} nodes"),
                },
                trimmed(100.0 * self.memory_share)
            ),
            lead: [Some(answer(self, best)), best.and_then(to_use)].into_iter().flatten().collect(),
            parts: parts.into_iter().collect(),
            ..Page::default()
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        document(Kind::Advice, self)
    }

    /// A row for each option.
    fn rows(&self) -> Option<Rows> {
        let row = |option: &AdvisedOption| {
            let (low, high) = option.predicted.interval_percent;
            let figures = [option.predicted.change_percent, low, high].map(|of| of.to_string());
            let measured = option.measured.as_ref();
            let found = measured.map_or(String::new(), |of| of.change_percent.to_string());
            let what = [what(&option.candidate)];
            what.into_iter().chain(figures).chain([found]).collect()
        };
        let columns = Rows::new("advice").labels(["option"]).values(
            "percent",
            ["predicted_percent", "predicted_low", "predicted_high", "measured_percent"],
        );
        Some(columns.rows(self.options.iter().map(row)))
    }
}

fn answer(advice: &Advice, best: Option<&AdvisedOption>) -> Lead {
    let share = format!("{} % of the time waits for memory", trimmed(100.0 * advice.memory_share));
    let tried = advice.options.iter().any(|option| option.measured.is_some());
    let text = match best {
        None if advice.memory_share < WORTH_SHARE => format!("No gain to be had: {share}."),
        None if is_open(advice) => {
            format!("Undecided: {share}; --blocks with a higher number would tell.")
        }
        None if tried => format!("No gain was found: {share}, but what was tried is not faster."),
        None => format!("No gain to be had from placement: {share}."),
        Some(option) => {
            let predicted = (option.predicted.change_percent, "time".to_owned(), "predicted");
            let measured = option.measured.as_ref();
            let found = measured.map(|of| (of.change_percent, judged(advice), "measured"));
            let (change, of, how) = found.unwrap_or(predicted);
            format!("{}: {} % of the {of}, {how}.", what(&option.candidate), signed(change))
        }
    };
    let mood = if best.is_some() { Mood::Good } else { Mood::Fine };
    Lead::new("Advice", text, mood)
}

/// Whether the trials left a gain open.
fn is_open(advice: &Advice) -> bool {
    let measured = advice.options.iter().filter_map(|option| option.measured.as_ref());
    let may_gain =
        |(low, high): (f64, f64)| [low, high].iter().any(|of| advice.as_of_time(*of) < 0.0);
    measured
        .into_iter()
        .any(|of| of.verdict == VerdictWord::Inconclusive && may_gain(of.interval_percent))
}

/// What trials judge by.
fn judged(advice: &Advice) -> String {
    match advice.metric.as_ref().map(|metric| metric.unit.as_str()) {
        None => "time".to_owned(),
        Some("") => "metric".to_owned(),
        Some(unit) => format!("metric ({unit})"),
    }
}

fn verdict(verdict: VerdictWord) -> &'static str {
    match verdict {
        VerdictWord::Better => "better",
        VerdictWord::Worse => "worse",
        VerdictWord::Equivalent => "equivalent",
        VerdictWord::Inconclusive => "inconclusive",
    }
}

/// The one command, or the one change.
fn to_use(option: &AdvisedOption) -> Option<Lead> {
    let text = match (&option.command, &option.candidate) {
        (Some(command), _) => command.clone(),
        (None, Candidate::FirstTouch { line: Some(line), .. }) => {
            format!("Let the threads that use this memory touch it first, instead of {line}.")
        }
        (None, Candidate::SeparateLines { lines }) if !lines.is_empty() => {
            format!("Give what {} stores a cache line (64 bytes) per thread.", lines.join(" and "))
        }
        (None, Candidate::Replicate { line: Some(line), .. }) => {
            format!("Make a copy on each node of what {line} makes.")
        }
        _ => return None,
    };
    Some(Lead::new("Use", text, Mood::Plain))
}

fn options(advice: &Advice) -> Part {
    let caption = match &advice.metric {
        None => {
            "Change of the time, in %: predicted, and measured with its 95 % interval".to_owned()
        }
        Some(metric) => format!(
            "Change in %: of the time, predicted, and of the {}, {}, measured with its 95 % interval",
            judged(advice),
            metric.better
        ),
    };
    let table = Table::new(caption)
        .words("option")
        .figures("predicted")
        .words("interval")
        .figures("measured")
        .words("interval")
        .words("verdict");
    let interval = |(low, high): (f64, f64)| format!("{} to {}", signed(low), signed(high));
    let row = |option: &AdvisedOption| {
        let measured = option.measured.as_ref();
        vec![
            what(&option.candidate),
            signed(option.predicted.change_percent),
            interval(option.predicted.interval_percent),
            measured.map_or_else(String::new, |of| signed(of.change_percent)),
            measured.map_or_else(String::new, |of| interval(of.interval_percent)),
            measured.map_or_else(String::new, |of| verdict(of.verdict).to_owned()),
        ]
    };
    let mut notes = vec![
        "Predicted: counted accesses by the latencies of the machine. Measured: the program run \
         under emulation with the placement, in random blocks with the program as it is."
            .to_owned(),
    ];
    let both = |option: &AdvisedOption| {
        Some(format!("{}, or {}", option.command.as_ref()?, option.without_numalab.as_ref()?))
    };
    notes.extend(advice.options.iter().filter_map(both));
    let panels = vec![Panel::table(table.rows(advice.options.iter().map(row)))];
    Part { title: "Options".to_owned(), notes, panels, ..Part::default() }
}

fn signed(percent: f64) -> String {
    let sign = if percent > 0.0 { "+" } else { "" };
    format!("{sign}{percent:.1}")
}

/// An option in a few words.
fn what(candidate: &Candidate) -> String {
    let at = |line: &Option<String>| {
        line.as_ref().map_or_else(String::new, |line| format!(" ({})", file_and_line(line)))
    };
    match candidate {
        Candidate::Bind { node } => format!("Bind to node {node}"),
        Candidate::Interleave => "Interleave over all nodes".to_owned(),
        Candidate::WeightedInterleave { weights } => {
            let weights: Vec<String> = weights.iter().map(u32::to_string).collect();
            format!("Interleave by bandwidth ({})", weights.join(":"))
        }
        Candidate::Pack => "Pack threads node by node (close)".to_owned(),
        Candidate::HugePages => "Huge pages (THP)".to_owned(),
        Candidate::FirstTouch { line, .. } => format!("First touch by the users{}", at(line)),
        Candidate::Replicate { line, .. } => format!("Copies of read-only data{}", at(line)),
        Candidate::SeparateLines { lines } => {
            let lines: Vec<&str> = lines.iter().map(|line| file_and_line(line)).collect();
            format!("Separate cache lines ({})", lines.join(", "))
        }
    }
}

fn file_and_line(line: &str) -> &str {
    line.rsplit('/').next().unwrap_or(line)
}
