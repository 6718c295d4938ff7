//! Figures that somebody published, one a side: what follows from them, and what does not.

use numalab_stats::Direction;

use crate::number::{figure, percent};
use crate::table::Table;
use crate::terminal::Style;
use crate::terminal::layout::{table, wrap};

/// A table of published figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    direction: Direction,
    rows: Vec<Row>,
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    what: String,
    baseline: f64,
    candidate: f64,
    /// The gain as it was published, and its decimals.
    gain: Option<(f64, usize)>,
}

/// Why a text is no table of published figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishedError {
    /// A line has not the columns.
    #[error("line {line}: `{text}`: expected `what,baseline,candidate` or with `,gain` in percent")]
    Columns {
        /// Line number from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// A field is no number.
    #[error("line {line}: `{text}`: expected a number above 0, or a gain such as +7.8")]
    Number {
        /// Line number from 1.
        line: usize,
        /// The field.
        text: String,
    },
    /// There are no rows.
    #[error("no rows: expected lines `what,baseline,candidate` or with `,gain` in percent")]
    Empty,
}

impl Published {
    /// Reads `what,baseline,candidate[,gain]`, a row a line; empty lines and lines that begin
    /// with `#` are left out.
    ///
    /// # Errors
    /// [`PublishedError`] with the line.
    pub fn parse(text: &str, direction: Direction) -> Result<Self, PublishedError> {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let rows: Result<Vec<Row>, PublishedError> = lines
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(line, text)| row(line, text))
            .collect();
        match rows? {
            rows if rows.is_empty() => Err(PublishedError::Empty),
            rows => Ok(Self { direction, rows }),
        }
    }

    /// The figures with the gains that follow from them.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let mut out = table(&self.table(), style);
        for sentence in self.sentences() {
            out.push_str(&format!("\n{}\n", wrap(&sentence, 0)));
        }
        out
    }

    /// The same as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = crate::markdown::table(&self.table());
        for sentence in self.sentences() {
            out.push_str(&format!("\n{}\n", crate::markdown::escape(&sentence)));
        }
        out
    }

    fn table(&self) -> Table {
        let rows = self.rows.iter().map(|row| {
            let gain = self.gain(row);
            let stated = row.gain.map(|(stated, decimals)| format!("{stated:+.decimals$} %"));
            let follows = match row.gain {
                None => "–".to_owned(),
                Some(_) if self.follows(row) => "yes".to_owned(),
                Some((_, decimals)) => format!("no: {gain:+.decimals$} %"),
            };
            vec![
                row.what.clone(),
                figure(row.baseline),
                figure(row.candidate),
                percent(gain),
                stated.unwrap_or_else(|| "–".to_owned()),
                follows,
            ]
        });
        Table::new("Published figures")
            .words("what")
            .figures("baseline")
            .figures("candidate")
            .figures("gain")
            .figures("published")
            .words("follows")
            .rows(rows)
    }

    fn sentences(&self) -> Vec<String> {
        let wrong: Vec<String> = self
            .rows
            .iter()
            .filter(|row| !self.follows(row))
            .filter_map(|row| {
                let (stated, decimals) = row.gain?;
                let gain = self.gain(row);
                Some(format!("{} ({stated:+.decimals$} %, not {gain:+.decimals$} %)", row.what))
            })
            .collect();
        let mut sentences = Vec::new();
        if !wrong.is_empty() {
            sentences.push(format!(
                "Published gains that do not follow from the published figures: {}.",
                wrong.join(", ")
            ));
        }
        sentences.push(
            "Inconclusive: one figure a side says nothing about how the machine varies, so \
             neither better nor worse nor equivalent can be shown. 6 paired runs are the least."
                .to_owned(),
        );
        sentences
    }

    /// By how much the candidate is better, in percent.
    fn gain(&self, row: &Row) -> f64 {
        let ratio = match self.direction {
            Direction::LowerIsBetter => row.baseline / row.candidate,
            Direction::HigherIsBetter => row.candidate / row.baseline,
        };
        100.0 * (ratio - 1.0)
    }

    /// Whether the gain, rounded as the published one is, is the published one.
    fn follows(&self, row: &Row) -> bool {
        row.gain.is_none_or(|(stated, decimals)| {
            let rounded = |value: f64| format!("{:.decimals$}", value + 0.0);
            rounded(self.gain(row)) == rounded(stated)
        })
    }
}

fn row(line: usize, text: &str) -> Result<Row, PublishedError> {
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let (what, baseline, candidate, gain) = match fields[..] {
        [what, baseline, candidate] => (what, baseline, candidate, None),
        [what, baseline, candidate, gain] => (what, baseline, candidate, Some(gain)),
        _ => return Err(PublishedError::Columns { line, text: text.to_owned() }),
    };
    let wrong = |text: &str| PublishedError::Number { line, text: text.to_owned() };
    let positive = |text: &str| {
        let value: Option<f64> = text.parse().ok();
        value.filter(|value| *value > 0.0 && value.is_finite()).ok_or_else(|| wrong(text))
    };
    let gain = gain
        .map(|text| {
            let number = text.trim_end_matches('%').trim();
            let value = number.parse().ok().filter(|value: &f64| value.is_finite());
            let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            value.map(|value| (value, decimals)).ok_or_else(|| wrong(text))
        })
        .transpose()?;
    Ok(Row {
        what: what.to_owned(),
        baseline: positive(baseline)?,
        candidate: positive(candidate)?,
        gain,
    })
}
