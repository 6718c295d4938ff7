//! Published figures, one per side, and the gains that follow from them.

use numalab_stats::{Direction, Interval};

/// A table of published figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The direction in which values improve.
    pub direction: Direction,
    /// One entry per row of the table.
    pub rows: Vec<PublishedRow>,
}

/// A row of published figures.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRow {
    /// The thing measured, as published.
    pub what: String,
    /// The baseline's figure.
    pub baseline: f64,
    /// The candidate's figure.
    pub candidate: f64,
    /// Half a unit of the last digit of both figures: the finest place to which either is written,
    /// ignoring trailing zeros of whole numbers.
    pub half_digit: f64,
    /// The published gain in percent, and its number of decimals.
    pub gain: Option<(f64, usize)>,
}

/// An error in a table of published figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishedError {
    /// A line has the wrong number of columns.
    #[error(
        "line {line}: `{text}`: expected `what,baseline,candidate` or \
         `what,baseline,candidate,gain`, the gain in percent"
    )]
    Columns {
        /// Line number from 1.
        line: usize,
        /// The line's text.
        text: String,
    },
    /// A field is not a number.
    #[error("line {line}: `{text}`: expected a number above 0, or a gain such as +7.8")]
    Number {
        /// Line number from 1.
        line: usize,
        /// The field's text.
        text: String,
    },
    /// The table has no rows.
    #[error(
        "no rows: expected lines `what,baseline,candidate` or `what,baseline,candidate,gain`, \
         the gain in percent"
    )]
    Empty,
}

impl Published {
    /// Parses lines of `what,baseline,candidate[,gain]`. A header with these names, empty lines and
    /// lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// [`PublishedError`] with the line.
    pub fn parse(text: &str, direction: Direction) -> Result<Self, PublishedError> {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let rows: Result<Vec<PublishedRow>, PublishedError> = lines
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .skip_while(|(_, line)| is_header(line))
            .map(|(line, text)| row(line, text))
            .collect();
        match rows? {
            rows if rows.is_empty() => Err(PublishedError::Empty),
            rows => Ok(Self { direction, rows }),
        }
    }

    /// Returns the improvement of the candidate in percent.
    #[must_use]
    pub fn gain(&self, row: &PublishedRow) -> f64 {
        self.gain_of(row.baseline, row.candidate)
    }

    /// Returns the range of gains, in percent, over all figures that round to the published ones.
    #[must_use]
    pub fn gain_range(&self, row: &PublishedRow) -> Interval {
        let half = row.half_digit;
        let one = self.gain_of(row.baseline - half, row.candidate + half);
        let other = self.gain_of(row.baseline + half, row.candidate - half);
        Interval { lo: one.min(other), hi: one.max(other) }
    }

    /// Returns `true` if the published gain follows from figures that round to the published ones.
    #[must_use]
    pub fn follows(&self, row: &PublishedRow) -> bool {
        row.gain.is_none_or(|(stated, decimals)| {
            let range = self.gain_range(row);
            let half = 0.5 * 0.1_f64.powf(decimals as f64) * (1.0 + 1e-9);
            stated + half >= range.lo && stated - half <= range.hi
        })
    }

    fn gain_of(&self, baseline: f64, candidate: f64) -> f64 {
        let ratio = match self.direction {
            Direction::LowerIsBetter => baseline / candidate,
            Direction::HigherIsBetter => candidate / baseline,
        };
        100.0 * (ratio - 1.0)
    }
}

/// Returns `true` for a line of column names.
fn is_header(line: &str) -> bool {
    let names: Vec<String> = line.split(',').map(|name| name.trim().to_lowercase()).collect();
    let columns = ["what", "baseline", "candidate", "gain"];
    (3..=columns.len()).contains(&names.len()) && names == columns[..names.len()]
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
        half_digit: 0.5 * place(baseline).min(place(candidate)),
        gain,
    })
}

/// Returns the unit of a number's last significant digit: 0.01 for `4.20`, 100 for `38500`.
fn place(number: &str) -> f64 {
    let (digits, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let power = match digits.split_once('.') {
        Some((_, decimals)) => -(decimals.len() as f64),
        None => (digits.len() - digits.trim_end_matches('0').len()) as f64,
    };
    10_f64.powf(power + exponent.parse().unwrap_or(0.0))
}
