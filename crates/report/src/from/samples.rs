//! Two samples compared.

use numalab_analysis::samples::SampleComparison;
use numalab_record::Kind;
use numalab_stats::{Direction, Ground, Trend, Verdict};

use crate::documents::{ComparedSamples, document};
use crate::label;
use crate::number::{figure, percent, trimmed};
use crate::page::{Lead, Page, Panel, Part};
use crate::report::Report;
use crate::rows::{Holds, Rows, optional};
use crate::table::Table;

impl Report for SampleComparison {
    fn page(&self) -> Page {
        let part = |title: &str, table| Part::of(title, vec![Panel::table(table)]);
        let effects = part("Effects", effects(self)).map(|part| part.noted(sentences(self)));
        Page {
            brand: "numalab compare".to_owned(),
            title: "Two samples".to_owned(),
            meta: self.names.join(" · "),
            lead: vec![headline(self)],
            parts: [part("Values", values(self)), effects].into_iter().flatten().collect(),
            ..Page::default()
        }
    }

    /// The answer, with every value.
    fn json(&self) -> serde_json::Result<String> {
        document(Kind::SampleComparison, &ComparedSamples::of(self))
    }

    /// The verdict with the figures it rests on, in one row.
    fn rows(&self) -> Option<Rows> {
        let interval = self.found.percent_interval();
        let [baseline, candidate] = self.names.clone();
        let row = vec![
            baseline,
            candidate,
            self.unit.clone(),
            self.baseline.median().to_string(),
            self.candidate.median().to_string(),
            self.baseline.len().to_string(),
            self.candidate.len().to_string(),
            optional(self.found.percent()),
            optional(interval.map(|interval| interval.lo)),
            optional(interval.map(|interval| interval.hi)),
            label::verdict_word(self.found.verdict).to_owned(),
        ];
        let rows = Rows::new("compared samples")
            .labels(["baseline", "candidate"])
            .with(Holds::Unit, ["unit"])
            .values("", ["baseline_median", "candidate_median"])
            .values("values", ["baseline_values", "candidate_values"])
            .values("%", ["change_percent", "lo_percent", "hi_percent"])
            .texts(["verdict"]);
        Some(rows.rows([row]))
    }
}

fn headline(of: &SampleComparison) -> Lead {
    let change = of.found.percent().map_or_else(|| "–".to_owned(), percent);
    let margin = trimmed(of.margin.as_percent());
    let (name, sentence) = match of.found.verdict {
        Verdict::Better => ("Better".to_owned(), change),
        Verdict::Worse => ("Worse".to_owned(), change),
        Verdict::Equivalent => (format!("Equivalent within {margin} %"), change),
        Verdict::Inconclusive { further_blocks } => {
            let needed = match (of.found.ground, further_blocks) {
                (Ground::TooFew { needed }, _) => {
                    format!("{needed} values on each side are the least")
                }
                (Ground::Drifts, _) => "not decided because the numbers drift".to_owned(),
                (_, Some(further)) => format!("about {further} more values on each side"),
                (_, None) => "no number of values would do".to_owned(),
            };
            ("Inconclusive".to_owned(), format!("{change}; {needed}"))
        }
    };
    Lead::new(name, sentence, label::mood(of.found.verdict))
}

fn values(of: &SampleComparison) -> Table {
    let sides = [(&of.names[0], &of.baseline), (&of.names[1], &of.candidate)];
    let rows = sides.map(|(name, sample)| {
        vec![
            name.clone(),
            sample.len().to_string(),
            precise(sample.median()),
            precise(sample.mean()),
            precise(sample.min()),
            precise(sample.max()),
        ]
    });
    let with_unit = |name: &str| match of.unit.is_empty() {
        true => name.to_owned(),
        false => format!("{name} ({})", of.unit),
    };
    Table::new("Each sample by itself")
        .words("sample")
        .figures("values")
        .figures(with_unit("median"))
        .figures("mean")
        .figures("least")
        .figures("most")
        .rows(rows)
}

fn effects(of: &SampleComparison) -> Table {
    let range = |interval: Option<numalab_stats::Interval>| match interval {
        Some(i) => format!("{} to {}", percent(i.lo).trim_end_matches(" %"), percent(i.hi)),
        None => "–".to_owned(),
    };
    let gain = of.gain_of_means();
    let rows = [
        vec![
            "Hodges-Lehmann effect, in logarithms".to_owned(),
            of.found.percent().map_or_else(|| "–".to_owned(), percent),
            range(of.found.percent_interval()),
        ],
        vec![
            match of.direction {
                Direction::LowerIsBetter => "gain of means, baseline / candidate".to_owned(),
                Direction::HigherIsBetter => "gain of means, candidate / baseline".to_owned(),
            },
            gain.map_or_else(|| "–".to_owned(), |gain| percent(gain.value)),
            range(gain.map(|gain| gain.interval)),
        ],
    ];
    Table::new("The candidate compared with the baseline")
        .words("effect")
        .figures("percent")
        .figures("95 % interval")
        .rows(rows)
}

fn sentences(of: &SampleComparison) -> Vec<String> {
    let mut sentences = order_sentences(of);
    sentences.extend([
        format!(
            "Rank-sum test of a difference: p = {}; of equivalence within {} %: p = {}.",
            figure(of.found.difference.p),
            trimmed(of.margin.as_percent()),
            figure(of.found.equivalence.p())
        ),
        "The samples are not paired: this holds only if nothing else changed between them, \
         and on a machine that drifts it does. `numalab compare --commands` takes both in \
         turns."
            .to_owned(),
    ]);
    sentences
}

/// What the order of the values says, and what was made of it.
fn order_sentences(of: &SampleComparison) -> Vec<String> {
    let shown = of.names.iter().zip(&of.order.trends).filter(|(_, trend)| trend.is_shown());
    let mut sentences: Vec<String> = shown.map(|(name, trend)| drift(name, trend)).collect();
    if !sentences.is_empty() {
        sentences.push(
            "Two samples taken one after the other while the machine drifts differ by the drift \
             alone. If the values were sorted, give them in the order they were measured in."
                .to_owned(),
        );
    }
    if of.order.autocorrelation > 0.0 {
        sentences.push(format!(
            "Values resemble the ones before them (lag-1 correlation {:.2}): the {} are worth about \
             {:.0} independent ones, which the verdict, its tests and the interval of the \
             Hodges-Lehmann effect allow for; the interval of the gain of means does not.",
            of.order.autocorrelation,
            of.baseline.len() + of.candidate.len(),
            of.order.effective_size.max(1.0),
        ));
    }
    sentences
}

/// `a.txt drifts: its values rise, ...`.
fn drift(name: &str, trend: &Trend) -> String {
    let way = if trend.correlation > 0.0 { "rise" } else { "fall" };
    let size = trend.percent.map_or_else(String::new, |change| {
        let side = if change > 0.0 { "above" } else { "below" };
        let change = figure(change.abs());
        format!("; the median of the last third lies {change} % {side} that of the first")
    });
    format!("{name} drifts: its values {way} in the order taken (p = {}{size}).", figure(trend.p))
}

/// A value with the digits that such files have.
fn precise(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 1e6 || (magnitude > 0.0 && magnitude < 1e-3) {
        return figure(value);
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
