//! Figures that somebody published, one a side: what follows from them, and what does not.

use numalab_stats::Direction;

/// A table of published figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Which way is better.
    pub direction: Direction,
    /// The rows.
    pub rows: Vec<PublishedRow>,
}

/// A row of published figures.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRow {
    /// What was measured.
    pub what: String,
    /// The baseline's figure.
    pub baseline: f64,
    /// The candidate's figure.
    pub candidate: f64,
    /// The gain in percent as it was published, and its decimals.
    pub gain: Option<(f64, usize)>,
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
        let rows: Result<Vec<PublishedRow>, PublishedError> = lines
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(line, text)| row(line, text))
            .collect();
        match rows? {
            rows if rows.is_empty() => Err(PublishedError::Empty),
            rows => Ok(Self { direction, rows }),
        }
    }

    /// By how much the candidate is better, in percent.
    #[must_use]
    pub fn gain(&self, row: &PublishedRow) -> f64 {
        let ratio = match self.direction {
            Direction::LowerIsBetter => row.baseline / row.candidate,
            Direction::HigherIsBetter => row.candidate / row.baseline,
        };
        100.0 * (ratio - 1.0)
    }

    /// Whether the gain, rounded as the published one is, is the published one.
    #[must_use]
    pub fn follows(&self, row: &PublishedRow) -> bool {
        row.gain.is_none_or(|(stated, decimals)| {
            let rounded = |value: f64| format!("{:.decimals$}", value + 0.0);
            rounded(self.gain(row)) == rounded(stated)
        })
    }
}

fn row(line: usize, text: &str) -> Result<PublishedRow, PublishedError> {
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
    Ok(PublishedRow {
        what: what.to_owned(),
        baseline: positive(baseline)?,
        candidate: positive(candidate)?,
        gain,
    })
}
