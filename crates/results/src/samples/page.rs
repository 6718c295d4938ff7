//! Page of two samples compared.

mod sentences;

use numalab_page::number::{count, figure, percent, trimmed};
use numalab_page::rows::{Field, Holds, Rows};
use numalab_page::{Lead, Mood, Page, Panel, Part, Table};
use numalab_record::Kind;
use numalab_stats::{Direction, Extreme, Ground, Interval, Sample, Scale, Verdict};

use super::document::ComparedSamples;
use super::find::STALL;
use crate::document;
use crate::label;
use crate::report::Report;
use crate::samples::SampleComparison;
use crate::shape::{Tail, TwoModes};
use sentences::sentences;

impl Report for SampleComparison {
    fn page(&self) -> Page {
        let part = |title: &str, table| Part::of(title, vec![Panel::table(table)]);
        let effects = part("Effects", effects(self)).map(|part| part.noted(sentences(self)));
        Page {
            brand: "numalab compare".to_owned(),
            title: "Two samples".to_owned(),
            meta: format!("{} · {} is better", self.names.join(" · "), self.direction.name()),
            lead: std::iter::once(headline(self))
                .chain(not_positive(self))
                .chain(modes(self))
                .collect(),
            parts: [part("Values", values(self)), effects, part("Tails", tails(&self.extremes))]
                .into_iter()
                .flatten()
                .collect(),
            ..Page::default()
        }
    }

    /// Returns the answer, with every value.
    fn json(&self) -> serde_json::Result<String> {
        document(Kind::SampleComparison, &ComparedSamples::of(self))
    }

    /// Returns the verdict with its figures, in one row.
    fn rows(&self) -> Option<Rows> {
        let interval = self.found.percent_interval();
        let [baseline, candidate] = self.names.clone();
        let row = vec![
            Field::from(baseline),
            candidate.into(),
            self.unit.clone().into(),
            self.baseline.median().into(),
            self.candidate.median().into(),
            self.baseline.len().into(),
            self.candidate.len().into(),
            self.found.percent().into(),
            interval.map(|interval| interval.lo).into(),
            interval.map(|interval| interval.hi).into(),
            label::verdict_word(self.found.verdict).into(),
            self.tail().as_ref().map(label::tail).into(),
        ];
        Some(columns().rows([row]))
    }
}

pub(crate) fn columns() -> Rows {
    Rows::new("compared samples")
        .labels(["baseline", "candidate"])
        .with(Holds::Unit, ["unit"])
        .values(
            "",
            [
                ("baseline_median", "the median of the baseline"),
                ("candidate_median", "the median of the candidate"),
            ],
        )
        .values(
            "values",
            [
                ("baseline_values", "the number of values of the baseline"),
                ("candidate_values", "the number of values of the candidate"),
            ],
        )
        .values(
            "%",
            [
                ("change_percent", "the change from the baseline to the candidate"),
                ("lo_percent", "the lower end of the change's interval"),
                ("hi_percent", "the upper end of the change's interval"),
            ],
        )
        .texts(["verdict", "tails"])
}

/// The limit of a verdict on two files: each may show a single state of the machine.
const FILES_DIFFER: &str = "; these two files differ, and only alternating runs show whether their \
                            commands do (`numalab compare --commands`)";

fn headline(of: &SampleComparison) -> Lead {
    let change = of.found.percent().map_or_else(|| "–".to_owned(), percent);
    let margin = trimmed(of.margin.as_percent());
    let (name, sentence) = match of.found.verdict {
        Verdict::Better => ("Better".to_owned(), change + FILES_DIFFER),
        Verdict::Worse => ("Worse".to_owned(), change + FILES_DIFFER),
        Verdict::Equivalent => (format!("Equivalent within {margin} %"), change),
        Verdict::Inconclusive { further_blocks } => {
            let needed = match (of.found.ground, further_blocks) {
                (Ground::TooFew { needed } | Ground::TooFewInOrder { needed }, _) => {
                    format!("at least {needed} values on each side are needed")
                }
                (Ground::Drifts, _) => {
                    "undecided because the values rise or fall in the order taken".to_owned()
                }
                (_, Some(further)) => {
                    format!("about {} on each side", count(further, "more value"))
                }
                (_, None) => "more values would not settle it".to_owned(),
            };
            ("Inconclusive".to_owned(), format!("{change}; {needed}"))
        }
    };
    let lead = Lead::new(name, sentence, label::mood(of.found.verdict));
    match of.tail() {
        Some(tail) => with_tail(lead, of, &tail),
        None => with_stalls(lead, of),
    }
}

/// Adds the values far from their median, if they are too few for a percentile to show them.
fn with_stalls(lead: Lead, of: &SampleComparison) -> Lead {
    let stalls = of.stalls();
    let are_unseen = of.extremes.is_empty() || stalls.contains(&0);
    if stalls == [0; 2] || !are_unseen || of.baseline.median().min(of.candidate.median()) <= 0.0 {
        return lead;
    }
    let name = match of.found.verdict {
        Verdict::Equivalent => format!("{} by medians", lead.name),
        _ => lead.name,
    };
    Lead::new(name, lead.sentence + &stalls_words(of), lead.mood)
}

fn stalls_words(of: &SampleComparison) -> String {
    let [baseline, candidate] = of.stalls();
    format!(
        "; {baseline} of {} values and {candidate} of {} are worse than {STALL} times the median, the \
         worst {:.1} times",
        of.baseline.len(),
        of.candidate.len(),
        of.worst()
    )
}

/// Adds the tails to the answer on the medians.
fn with_tail(lead: Lead, of: &SampleComparison, tail: &Tail) -> Lead {
    let name = format!("{} by medians, {}", lead.name, label::tail(tail));
    let mood = if tail.is_worse { label::mood(Verdict::Worse) } else { lead.mood };
    let mut sentence = format!("{}; {}", lead.sentence, label::tail_values(tail, precise));
    if !tail.is_shown {
        sentence += &stalls_words(of);
    }
    Lead::new(name, sentence, mood)
}

/// Returns a sentence on values that cannot be times or rates.
fn not_positive(of: &SampleComparison) -> Option<Lead> {
    let sides = of.names.iter().zip([&of.baseline, &of.candidate]).zip(of.not_positive());
    let sides = sides.filter(|(_, found)| *found > 0);
    let said = |((name, sample), found): ((&String, &Sample), usize)| {
        format!("{found} of {} in {name}", count(sample.len(), "value"))
    };
    let said: Vec<String> = sides.map(said).collect();
    let sentence = format!(
        "{}, far below the others. If these are failed runs, leave them out: they count as the {} here.",
        said.join(", "),
        if of.direction == Direction::LowerIsBetter { "best" } else { "worst" }
    );
    (!said.is_empty()).then(|| Lead::new("Values of zero or less", sentence, Mood::Odd))
}

/// Returns a sentence on the samples with two modes.
fn modes(of: &SampleComparison) -> Option<Lead> {
    let said = |(name, modes): (&String, &Option<TwoModes>)| {
        let modes = modes.as_ref()?;
        Some(format!("{name}: {}.", label::two_modes(modes, &of.unit, precise)))
    };
    let sentences: Vec<String> = of.names.iter().zip(&of.modes).filter_map(said).collect();
    let sentence = format!("{} A median describes neither group.", sentences.join(" "));
    let name = match of.modes.iter().flatten().any(|modes| modes.several) {
        true => "Several modes",
        false => "Two modes",
    };
    (!sentences.is_empty()).then(|| Lead::new(name, sentence, Mood::Odd))
}

/// Tabulates the percentiles of the worse tail.
pub(crate) fn tails(extremes: &[Extreme]) -> Table {
    let cell = |value: f64, interval: Option<Interval>| match interval {
        Some(Interval { lo, hi }) => {
            format!("{} ({} to {})", precise(value), precise(lo), precise(hi))
        }
        None => precise(value),
    };
    let rows = extremes.iter().map(|extreme| {
        let [a, b] = extreme.values;
        let [of_a, of_b] = extreme.intervals;
        let (baseline, candidate) = (cell(a, of_a), cell(b, of_b));
        let name = format!("p{}", trimmed(extreme.percentile));
        vec![name, baseline, candidate, percent(extreme.percent()), figure(extreme.p)]
    });
    Table::new(
        "Percentiles, counted from the better end, with 95 % intervals; p: both sides have equal shares beyond the percentile",
    )
    .words("percentile")
    .figures(["baseline", "candidate", "change", "p"])
    .rows(rows)
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
    Table::new("Each sample separately")
        .words("sample")
        .figures("values")
        .figures(with_unit("median"))
        .figures(["mean", "least", "most"])
        .rows(rows)
}

fn effects(of: &SampleComparison) -> Table {
    let range = |interval: Option<Interval>| match interval {
        Some(i) => format!("{} to {}", percent(i.lo).trim_end_matches(" %"), percent(i.hi)),
        None => "–".to_owned(),
    };
    let gain = of.gain_of_means();
    let rows = [
        vec![
            match of.found.scale {
                Scale::LogRatio => "Hodges-Lehmann effect, in logarithms".to_owned(),
                Scale::Difference => "Hodges-Lehmann effect, a difference".to_owned(),
            },
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
        .figures(["percent", "95 % interval"])
        .rows(rows)
}

/// Formats a value with the digits usual in such files.
fn precise(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 1e6 || (magnitude > 0.0 && magnitude < 1e-3) {
        return figure(value);
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns values near 100, with every `every`-th equal to `far`.
    fn sample(n: usize, every: usize, far: f64) -> Vec<f64> {
        let value = |at: usize| 100.0 + (at * 7919 % 101) as f64 / 100.0;
        (1..=n).map(|at| if at % every == 0 { far } else { value(at) }).collect()
    }

    fn lead(values: [Vec<f64>; 2], direction: Direction) -> (String, String) {
        let names = ["a", "b"].map(str::to_owned);
        let compared =
            SampleComparison::of(names, values, String::new(), direction, 2.0).expect("compared");
        let lead = headline(&compared);
        (lead.name, lead.sentence)
    }

    #[test]
    fn equal_medians_are_not_called_equivalent_where_the_tails_differ() {
        let same = || sample(4000, 5000, 0.0);
        let (name, _) = lead([same(), same()], Direction::LowerIsBetter);
        assert_eq!(name, "Equivalent within 2 %");
        let (name, sentence) = lead([same(), sample(4000, 100, 900.0)], Direction::LowerIsBetter);
        assert_eq!(name, "Equivalent within 2 % by medians, tails worse");
        assert!(sentence.ends_with("; p99.9 101 to 900"), "{sentence}");
        let (name, _) = lead([sample(4000, 100, 900.0), same()], Direction::LowerIsBetter);
        assert_eq!(name, "Equivalent within 2 % by medians, tails better");
        // For rates the low end is the bad one.
        let (name, sentence) = lead([same(), sample(4000, 100, 10.0)], Direction::HigherIsBetter);
        assert_eq!(name, "Equivalent within 2 % by medians, tails worse");
        assert!(sentence.ends_with("; p99.9 100 to 10"), "{sentence}");
        let (name, sentence) = lead([same(), sample(4000, 1001, 900.0)], Direction::LowerIsBetter);
        assert_eq!(name, "Equivalent within 2 % by medians, tails may be worse", "{sentence}");
        let counts = "; 0 of 4000 values and 3 of 4000 are worse than 1.5 times the median, \
                      the worst 9.0 times";
        assert!(sentence.ends_with(counts), "{sentence}");
    }

    #[test]
    fn values_too_few_for_a_percentile_are_counted_and_equivalence_is_of_medians() {
        let same = || sample(30, 100, 0.0);
        let with = |far| sample(30, 15, far);
        let (name, sentence) = lead([same(), with(350.0)], Direction::LowerIsBetter);
        assert_eq!(name, "Equivalent within 2 % by medians");
        let counts = "; 0 of 30 values and 2 of 30 are worse than 1.5 times the median, the worst 3.5 \
                      times";
        assert!(sentence.ends_with(counts), "{sentence}");
        let (name, sentence) = lead([with(20.0), with(20.0)], Direction::LowerIsBetter);
        assert!(!name.contains("medians") && !sentence.contains("times"), "{name}: {sentence}");
    }

    #[test]
    fn values_in_three_groups_are_not_said_to_be_near_two_values() {
        let value = |at: usize| [80.0, 100.0, 120.0][at % 3] + (at * 7919 % 101) as f64 / 50.0;
        let three = || (0..3000).map(value).collect::<Vec<f64>>();
        let names = ["a", "b"].map(str::to_owned);
        let values = [sample(400, 500, 0.0), three()];
        let compared =
            SampleComparison::of(names, values, String::new(), Direction::LowerIsBetter, 2.0);
        let page = compared.expect("compared").page();
        assert_eq!(page.lead[1].name, "Several modes");
        assert!(
            page.lead[1].sentence.starts_with("b: more than two groups: "),
            "{:?}",
            page.lead[1]
        );
    }

    #[test]
    fn two_modes_are_reported_after_the_answer() {
        let mixed: Vec<f64> = sample(400, 500, 0.0)
            .into_iter()
            .enumerate()
            .map(|(at, value)| if at * 37 % 10 < 3 { value + 50.0 } else { value })
            .collect();
        let names = ["a", "b"].map(str::to_owned);
        let values = [sample(400, 500, 0.0), mixed];
        let compared =
            SampleComparison::of(names, values, "ns".to_owned(), Direction::LowerIsBetter, 2.0);
        let page = compared.expect("compared").page();
        assert_eq!(page.lead[1].name, "Two modes");
        assert_eq!(
            page.lead[1].sentence,
            "b: 70 % of the values near 100.485 ns, 30 % near 150.535 ns. A median describes neither \
             group."
        );
    }
}
