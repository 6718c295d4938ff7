//! Metrics that a user defines for a custom command.

use numalab_record::study::Quantity;
use numalab_stats::Direction;

use serde::{Deserialize, Serialize};

use crate::error::SpecError;
use crate::expression::Expression;
use crate::finished::Finished;
use crate::pattern::Pattern;

/// The output stream of a command that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    pub(crate) fn text<'a>(self, finished: &Finished<'a>) -> &'a str {
        match self {
            Self::Stdout => finished.stdout,
            Self::Stderr => finished.stderr,
        }
    }
}

/// The source of a metric's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The last match of a [`Pattern`].
    Pattern(String),
    /// The group of the last match of an [`Expression`].
    Regex(String),
    /// A JSON pointer (RFC 6901) into the output.
    Json(String),
    /// The time from the command's start to its end.
    ExitTime,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnMetric {
    pub quantity: Quantity,
    pub source: Source,
    /// The output stream that is read.
    pub stream: Stream,
}

/// A metric as written by a user in TOML. It has one of `pattern`, `regex`, `json` and `exit-time`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MetricSpec {
    /// Name of the metric within the workload.
    pub name: String,
    /// The unit of its values; always seconds for an exit time.
    #[serde(default)]
    pub unit: String,
    pub better: Direction,
    /// Text with a placeholder for the number: `Rate: {steps} steps/s`. The last match counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// A regular expression with one group, the number: `rate:\s+([0-9.]+)`. The last match counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// A JSON pointer into the output: `/results/0/rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// True for the time from start to end.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub exit_time: bool,
    /// The output stream that is read.
    #[serde(default)]
    pub from: Stream,
}

impl MetricSpec {
    /// Creates the metric of a command's run time.
    pub fn of_time() -> Self {
        Self {
            name: "time".to_owned(),
            unit: String::new(),
            better: Direction::LowerIsBetter,
            exit_time: true,
            pattern: None,
            regex: None,
            json: None,
            from: Stream::Stdout,
        }
    }

    /// Creates a metric of the number that a pattern finds in a command's output.
    pub fn of_pattern(pattern: String, better: Direction) -> Self {
        let pattern = Some(pattern);
        Self { name: "value".to_owned(), better, exit_time: false, pattern, ..Self::of_time() }
    }

    /// Creates a metric of the number that a regular expression finds in a command's output.
    pub fn of_regex(regex: String, better: Direction) -> Self {
        let regex = Some(regex);
        Self { name: "value".to_owned(), better, exit_time: false, regex, ..Self::of_time() }
    }

    /// Validates the metric of the workload `name`.
    pub(crate) fn check(&self, name: &str) -> Result<OwnMetric, SpecError> {
        let (name, metric) = (name.to_owned(), self.name.clone());
        let texts = [&self.pattern, &self.regex, &self.json];
        if texts.into_iter().flatten().count() + usize::from(self.exit_time) != 1 {
            return Err(SpecError::Source { name, metric });
        }
        let (source, unit) = match texts {
            [Some(pattern), ..] => {
                let parsed = Pattern::parse(pattern).map_err(|error| SpecError::Pattern {
                    name,
                    metric,
                    error,
                })?;
                let unit = if self.unit.is_empty() { parsed.label() } else { &self.unit };
                (Source::Pattern(pattern.clone()), unit.to_owned())
            }
            [_, Some(regex), _] => {
                Expression::parse(regex).map_err(|error| SpecError::Expression {
                    name,
                    metric,
                    error,
                })?;
                (Source::Regex(regex.clone()), self.unit.clone())
            }
            [.., Some(pointer)] if pointer.is_empty() || pointer.starts_with('/') => {
                (Source::Json(pointer.clone()), self.unit.clone())
            }
            [.., Some(pointer)] => {
                return Err(SpecError::Pointer { name, metric, pointer: pointer.clone() });
            }
            [None, None, None] => (Source::ExitTime, "s".to_owned()),
        };
        let quantity = Quantity { metric: self.name.clone(), unit, better: self.better };
        Ok(OwnMetric { quantity, source, stream: self.from })
    }
}
