//! Errors in a description of a workload, and in its output.

use crate::finished::Ending;

/// The largest part of an output that a message quotes, in characters.
const QUOTED: usize = 80;

/// Reasons why no value can be read from an output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    #[error("`{command}`: {ending}: {last_words}")]
    Failed { command: String, ending: Ending, last_words: String },
    #[error("no {what} in the output: expected {expected}, found {found:?}")]
    Missing { what: String, expected: &'static str, found: String },
    #[error("{count} values of {what} in the output, expected one")]
    Several { what: String, count: usize },
    /// There is another text in the place of a number.
    #[error("{what} is {text:?}, expected a finite number")]
    NoNumber { what: String, text: String },
    #[error(
        "{what} is {word:?}, expected a number without separators (LC_ALL=C), or a pattern that goes on \
         with what follows the number"
    )]
    PartOfNumber {
        what: String,
        /// The number with everything up to the next space.
        word: String,
    },
    /// The number is the end of a longer one, such as one with groups of digits.
    #[error(
        "{what} is the end of {word:?}, expected a number without separators, or a pattern that \
         begins before it"
    )]
    EndOfNumber { what: String, word: String },
    #[error("{what} is in `{unit}`, expected `{expected}`")]
    OtherUnit { what: String, unit: String, expected: String },
    #[error("no metric {wanted:?} in the output, which has {available}")]
    NoMetric { wanted: String, available: String },
    /// The tool reports that it cannot do this here.
    #[error("not possible on this machine: {reason}")]
    NotApplicable { reason: String },
    #[error("the output is not JSON: {reason}")]
    NoJson { reason: String },
}

impl OutputError {
    pub(crate) fn failed(command: &[String], ending: Ending, last_words: &str) -> Self {
        let line = command.join(" ");
        let mut command: String = line.lines().next().unwrap_or("").chars().take(QUOTED).collect();
        if command.len() < line.len() {
            command.push_str(" ...");
        }
        Self::Failed { command, ending, last_words: last_words.to_owned() }
    }

    pub(crate) fn missing(what: impl Into<String>, expected: &'static str, output: &str) -> Self {
        let found = output.trim().chars().take(QUOTED).collect();
        Self::Missing { what: what.into(), expected, found }
    }
}

/// Reasons why a description of a workload is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The description has neither or both of `tool` and `command`.
    #[error("workload {name:?}: expected either `tool` or `command`, found {found}")]
    ToolOrCommand { name: String, found: &'static str },
    #[error("workload {name:?}: no tool {tool:?}, expected one of {known}")]
    NoTool { name: String, tool: String, known: String },
    #[error(
        "workload {name:?}: a command needs at least one [[workload.metric]] with \
         `pattern`, `regex`, `json` or `exit-time`"
    )]
    NoMetric { name: String },
    #[error("workload {name:?}: metric {metric:?} is given twice")]
    MetricTwice { name: String, metric: String },
    #[error("workload {name:?}: its output has no metric {metric:?}")]
    NoSuchMetric { name: String, metric: String },
    #[error(
        "workload {name:?}, metric {metric:?}: expected one of `pattern`, `regex`, `json` and \
         `exit-time`"
    )]
    Source { name: String, metric: String },
    /// A key is only valid for the other kind of workload.
    #[error("workload {name:?}: `{key}` is only valid with `{with}`")]
    Misplaced { name: String, key: &'static str, with: &'static str },
    #[error("workload {name:?}, metric {metric:?}: {error}")]
    Pattern { name: String, metric: String, error: PatternError },
    /// A regular expression is invalid.
    #[error("workload {name:?}, metric {metric:?}: {error}")]
    Expression { name: String, metric: String, error: ExpressionError },
    #[error(
        "workload {name:?}, metric {metric:?}: {pointer:?} is not a JSON pointer, \
         expected one such as /results/0/rate"
    )]
    Pointer { name: String, metric: String, pointer: String },
    #[error("workload {name:?}: timeout-s is 0, expected seconds")]
    NoTime { name: String },
}

/// Reasons why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error(
        "pattern {pattern:?} has {count} places for a number, expected one, \
         such as 'Time: {{seconds}} s'"
    )]
    Places { pattern: String, count: usize },
    /// The minutes of a time such as `0m1.5s` are text, so that longer runs do not match.
    #[error(
        "pattern {pattern:?} leaves out runs with other minutes: expected a place for the whole time, \
         such as 'real {{s}}'"
    )]
    Minutes { pattern: String },
    #[error("pattern {pattern:?} has no text besides the number")]
    NoText { pattern: String },
}

/// Reasons why a regular expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    #[error("regular expression {expression:?}: {reason}")]
    Malformed { expression: String, reason: String },
    #[error(
        "regular expression {expression:?} has {count} groups in parentheses, expected one, such \
         as 'time: ([0-9.]+) s'; (?:...) groups without a number"
    )]
    Groups { expression: String, count: usize },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_a_script_is_quoted() {
        let script = format!("read line\n{}", "echo word\n".repeat(50));
        let command = ["sh", "-c", &script].map(ToOwned::to_owned);
        let error = OutputError::failed(&command, Ending::Exited(1), "no such file");
        assert_eq!(error.to_string(), "`sh -c read line ...`: exit code 1: no such file");
        let short = OutputError::failed(&["false".to_owned()], Ending::Exited(1), "").to_string();
        assert!(short.starts_with("`false`: "), "{short}");
    }
}
