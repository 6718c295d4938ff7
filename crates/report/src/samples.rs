//! Two samples as text, Markdown, HTML and JSON.

use numalab_record::Kind;
use numalab_stats::{Direction, Ground, Sample, Verdict};
use serde_json::{Value, json};

use std::ops::Deref;

use crate::html::markup;
use crate::html::page::page;
use crate::label::verdict_word;
use crate::markdown;
use crate::number::{figure, percent, trimmed};
use crate::table::Table;
use crate::terminal::Style;
use crate::terminal::layout::{table, wrap};
use numalab_analysis::samples::SampleComparison;

/// Two samples compared, as a page shows them.
#[derive(Debug)]
pub struct SamplesPage<'a>(pub &'a SampleComparison);

impl Deref for SamplesPage<'_> {
    type Target = SampleComparison;

    fn deref(&self) -> &SampleComparison {
        self.0
    }
}

impl SamplesPage<'_> {
    /// The answer and what it rests on, as text of at most 80 columns.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let headline = self.headline();
        let headline = match self.found.verdict {
            Verdict::Better => style.good(&headline),
            Verdict::Worse => style.bad(&headline),
            _ => style.heading(&headline),
        };
        let mut out = format!("{headline}\n\n{}", table(&self.values(), style));
        out.push_str(&format!("\n{}", table(&self.effects(), style)));
        for sentence in self.sentences() {
            out.push_str(&format!("\n{}\n", wrap(&sentence, 0)));
        }
        out
    }

    /// The same as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = format!("**{}**\n", markdown::escape(&self.headline()));
        out.push_str(&markdown::table(&self.values()));
        out.push_str(&markdown::table(&self.effects()));
        for sentence in self.sentences() {
            out.push_str(&format!("\n{}\n", markdown::escape(&sentence)));
        }
        out
    }

    /// The same as one self-contained page.
    #[must_use]
    pub fn html(&self) -> String {
        let sentences = self.sentences();
        let sentences: String =
            sentences.iter().map(|text| format!("<p>{}</p>\n", markup::escape(text))).collect();
        let body = format!(
            "<header><p class=\"brand\">numalab compare</p><h1>Two samples</h1></header>\n<main>\n\
             <ol class=\"lead\"><li>{}</li></ol>\n<section><h2>Values</h2>\n{}</section>\n\
             <section><h2>Effects</h2>\n{}{sentences}</section>\n</main>\n",
            markup::escape(&self.headline()),
            markup::table(&self.values()),
            markup::table(&self.effects())
        );
        page("Two samples", &body)
    }

    /// The same as JSON, with every value.
    ///
    /// # Errors
    /// Whatever `serde_json` cannot write.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        let side = |name: &String, sample: &Sample| {
            json!({
                "name": name,
                "values": sample.values(),
                "median": sample.median(),
                "mean": sample.mean(),
            })
        };
        let interval = self.found.percent_interval();
        let gain = self.gain_of_means();
        let value: Value = json!({
            "schema": Kind::SampleComparison,
            "unit": self.unit,
            "baseline": side(&self.names[0], &self.baseline),
            "candidate": side(&self.names[1], &self.candidate),
            "margin_percent": self.margin.as_percent(),
            "verdict": verdict_word(self.found.verdict),
            "change_percent": self.found.percent(),
            "interval_percent": interval.map(|i| [i.lo, i.hi]),
            "rank_sum_p": self.found.difference.p,
            "equivalence_p": self.found.equivalence.p(),
            "gain_of_means_percent": gain.map(|gain| gain.value),
            "gain_of_means_interval_percent": gain.map(|g| [g.interval.lo, g.interval.hi]),
        });
        serde_json::to_string_pretty(&value)
    }

    fn headline(&self) -> String {
        let change = self.found.percent().map_or_else(|| "–".to_owned(), percent);
        let margin = trimmed(self.margin.as_percent());
        match self.found.verdict {
            Verdict::Better => format!("Better: {change}"),
            Verdict::Worse => format!("Worse: {change}"),
            Verdict::Equivalent => format!("Equivalent within {margin} %: {change}"),
            Verdict::Inconclusive { further_blocks } => {
                let needed = match (self.found.ground, further_blocks) {
                    (Ground::TooFew { needed }, _) => {
                        format!("{needed} values on each side are the least")
                    }
                    (_, Some(further)) => format!("about {further} more values on each side"),
                    (_, None) => "no number of values would do".to_owned(),
                };
                format!("Inconclusive: {change}; {needed}")
            }
        }
    }

    fn values(&self) -> Table {
        let sides = [(&self.names[0], &self.baseline), (&self.names[1], &self.candidate)];
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
        let with_unit = |name: &str| match self.unit.is_empty() {
            true => name.to_owned(),
            false => format!("{name} ({})", self.unit),
        };
        Table::new("Values")
            .words("sample")
            .figures("values")
            .figures(with_unit("median"))
            .figures("mean")
            .figures("least")
            .figures("most")
            .rows(rows)
    }

    fn effects(&self) -> Table {
        let range = |interval: Option<numalab_stats::Interval>| match interval {
            Some(i) => format!("{} to {}", percent(i.lo).trim_end_matches(" %"), percent(i.hi)),
            None => "–".to_owned(),
        };
        let gain = self.gain_of_means();
        let rows = [
            vec![
                "Hodges-Lehmann effect, in logarithms".to_owned(),
                self.found.percent().map_or_else(|| "–".to_owned(), percent),
                range(self.found.percent_interval()),
            ],
            vec![
                match self.direction {
                    Direction::LowerIsBetter => "gain of means, baseline / candidate".to_owned(),
                    Direction::HigherIsBetter => "gain of means, candidate / baseline".to_owned(),
                },
                gain.map_or_else(|| "–".to_owned(), |gain| percent(gain.value)),
                range(gain.map(|gain| gain.interval)),
            ],
        ];
        Table::new("Effects").words("effect").figures("percent").figures("95 % interval").rows(rows)
    }

    fn sentences(&self) -> Vec<String> {
        vec![
            format!(
                "Rank-sum test of a difference: p = {}; of equivalence within {} %: p = {}.",
                figure(self.found.difference.p),
                trimmed(self.margin.as_percent()),
                figure(self.found.equivalence.p())
            ),
            "The samples are not paired: this holds only if nothing else changed between them, \
             and on a machine that drifts it does. `numalab compare --commands` takes both in \
             turns."
                .to_owned(),
        ]
    }
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
