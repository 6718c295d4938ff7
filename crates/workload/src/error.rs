//! What is wrong with a description of a workload, or with its output.

use crate::finished::Ending;

/// The most of an output that a message quotes, in characters.
const QUOTED: usize = 80;

/// Why an output gives no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// The command did not end well.
    #[error("`{command}`: {ending}: {last_words}")]
    Failed {
        /// The beginning of the command line.
        command: String,
        /// How it ended.
        ending: Ending,
        /// The last line that it said.
        last_words: String,
    },
    /// The output does not have what its tool prints.
    #[error("no {what} in the output: expected {expected}, found {found:?}")]
    Missing {
        /// What is missing.
        what: String,
        /// How it would look.
        expected: &'static str,
        /// The beginning of the output.
        found: String,
    },
    /// More than one value where one is expected.
    #[error("{count} values of {what} in the output, expected one")]
    Several {
        /// What it is.
        what: String,
        /// How many there are.
        count: usize,
    },
    /// What stands where a number should be.
    #[error("{what} is {text:?}, expected a finite number")]
    NoNumber {
        /// What it is.
        what: String,
        /// The text in its place.
        text: String,
    },
    /// The output has no such metric.
    #[error("no metric {wanted:?} in the output, which has {available}")]
    NoMetric {
        /// The metric wanted.
        wanted: String,
        /// The names of those that are there.
        available: String,
    },
    /// The tool says that it cannot do this here.
    #[error("not possible on this machine: {reason}")]
    NotApplicable {
        /// The tool's words.
        reason: String,
    },
    /// The output should be JSON.
    #[error("the output is not JSON: {reason}")]
    NoJson {
        /// What is wrong with it.
        reason: String,
    },
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

/// Why a description of a workload makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Neither or both of `tool` and `command`.
    #[error("workload {name:?}: expected either `tool` or `command`, found {found}")]
    ToolOrCommand {
        /// The workload.
        name: String,
        /// What was there.
        found: &'static str,
    },
    /// No such tool.
    #[error("workload {name:?}: no tool {tool:?}, expected one of {known}")]
    NoTool {
        /// The workload.
        name: String,
        /// The tool named.
        tool: String,
        /// Those that there are.
        known: String,
    },
    /// Nothing says what a command measures.
    #[error(
        "workload {name:?}: a command needs at least one [[workload.metric]] with \
         `pattern`, `regex`, `json` or `exit-time`"
    )]
    NoMetric {
        /// The workload.
        name: String,
    },
    /// Two metrics of one name.
    #[error("workload {name:?}: metric {metric:?} is there twice")]
    MetricTwice {
        /// The workload.
        name: String,
        /// The metric.
        metric: String,
    },
    /// A tool never prints such a metric.
    #[error("workload {name:?}: its output has no metric {metric:?}")]
    NoSuchMetric {
        /// The workload.
        name: String,
        /// The metric.
        metric: String,
    },
    /// A metric has no source, or more than one.
    #[error(
        "workload {name:?}, metric {metric:?}: expected one of `pattern`, `regex`, `json` and \
         `exit-time`"
    )]
    Source {
        /// The workload.
        name: String,
        /// The metric.
        metric: String,
    },
    /// A key that only the other kind of workload has.
    #[error("workload {name:?}: `{key}` goes with `{with}` only")]
    Misplaced {
        /// The workload.
        name: String,
        /// The key.
        key: &'static str,
        /// What it goes with.
        with: &'static str,
    },
    /// An unreadable pattern.
    #[error("workload {name:?}, metric {metric:?}: {error}")]
    Pattern {
        /// The workload.
        name: String,
        /// The metric.
        metric: String,
        /// What is wrong.
        error: PatternError,
    },
    /// An unreadable regular expression.
    #[error("workload {name:?}, metric {metric:?}: {error}")]
    Expression {
        /// The workload.
        name: String,
        /// The metric.
        metric: String,
        /// What is wrong.
        error: ExpressionError,
    },
    /// A JSON pointer that does not begin with a slash.
    #[error(
        "workload {name:?}, metric {metric:?}: {pointer:?} is no JSON pointer, \
         expected one such as /results/0/rate"
    )]
    Pointer {
        /// The workload.
        name: String,
        /// The metric.
        metric: String,
        /// What was given.
        pointer: String,
    },
    /// A timeout of nothing.
    #[error("workload {name:?}: timeout-s is 0, expected seconds")]
    NoTime {
        /// The workload.
        name: String,
    },
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There must be exactly one place for the number.
    #[error(
        "pattern {pattern:?} has {count} places for a number, expected one, \
         such as 'Time: {{seconds}} s'"
    )]
    Places {
        /// The pattern.
        pattern: String,
        /// How many it has.
        count: usize,
    },
    /// Nothing but the number would match any output.
    #[error("pattern {pattern:?} has no text beside the number")]
    NoText {
        /// The pattern.
        pattern: String,
    },
}

/// Why a regular expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// It is none.
    #[error("regular expression {expression:?}: {reason}")]
    Malformed {
        /// What was given.
        expression: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There must be exactly one group for the number.
    #[error(
        "regular expression {expression:?} has {count} groups in parentheses, expected one, such \
         as 'time: ([0-9.]+) s'; (?:...) groups without a number"
    )]
    Groups {
        /// What was given.
        expression: String,
        /// How many it has.
        count: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_script_only_its_beginning_is_quoted() {
        let script = format!("read line\n{}", "echo word\n".repeat(50));
        let command = ["sh", "-c", &script].map(ToOwned::to_owned);
        let error = OutputError::failed(&command, Ending::Exited(1), "no such file");
        assert_eq!(error.to_string(), "`sh -c read line ...`: exit code 1: no such file");
        let short = OutputError::failed(&["false".to_owned()], Ending::Exited(1), "").to_string();
        assert!(short.starts_with("`false`: "), "{short}");
    }
}
