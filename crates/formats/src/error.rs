//! Errors from reading a format and from writing a machine.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

use std::fmt::Display;

use numalab_topology::count;

/// Reasons why the input is not in the expected format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A line or a value has a different form.
    #[error("{format}, line {line}: found `{found}`, expected {expected}")]
    Syntax {
        format: &'static str,
        /// The line number, from 1.
        line: usize,
        found: String,
        expected: String,
    },
    /// A required part of the text is missing.
    #[error("{format}: no {what}")]
    Absent { format: &'static str, what: &'static str },
    /// The text states that there is nothing to read.
    #[error("{format}: the text says `{line}`: it does not describe a machine")]
    Denied { format: &'static str, line: String },
    /// The text describes fewer items than it announces, because it was truncated.
    #[error(
        "{format}: {what}: {announced} announced, {} described; expected the whole text",
        only(described)
    )]
    Cut { format: &'static str, what: &'static str, announced: String, described: String },
    /// All long lines end at the same column, before cpus that no line lists.
    #[error(
        "{format}: no node lists cpus {missing}, which would follow the lines that end at column \
         {column}: they were cut there; expected whole lines, as `numactl -H > FILE` writes them, or \
         `numactl -H --cpu-compress` if these cpus are offline"
    )]
    Narrow { format: &'static str, missing: String, column: usize },
    /// The lines have the prefixes of several machines.
    #[error(
        "{format}, line {line}: `{found}` after `{first}` at the beginning of a line; expected the \
         output of one machine, as `grep '^{first}' FILE` selects it"
    )]
    Several {
        format: &'static str,
        first: String,
        /// Number of the second machine's first line, from 1.
        line: usize,
        /// The prefix of the second machine's lines.
        found: String,
    },
    /// A row of the distance table does not fit its columns.
    #[error(
        "{format}: node {node} has {} under {}; expected one for each",
        count(*distances, "distance"),
        count(*columns, "node")
    )]
    Row { format: &'static str, node: String, distances: usize, columns: usize },
    /// The text has more items than any machine has; it is refused before it costs time and memory.
    #[error("{format}: {found} {what}, expected at most {most}")]
    TooMany { format: &'static str, what: &'static str, found: usize, most: usize },
    /// The text is not XML or TOML of this form.
    #[error("{format}: {message}")]
    Markup { format: &'static str, message: String },
}

impl ReadError {
    pub(crate) fn syntax(
        format: &'static str,
        line: usize,
        found: &str,
        expected: impl Into<String>,
    ) -> Self {
        Self::Syntax { format, line, found: found.trim().to_owned(), expected: expected.into() }
    }

    /// Checks that everything that the text announces is described.
    pub(crate) fn unless_whole<T: Display>(
        is_whole: bool,
        format: &'static str,
        what: &'static str,
        (announced, described): (T, T),
    ) -> Result<(), Self> {
        if is_whole {
            return Ok(());
        }
        let (announced, described) = (announced.to_string(), described.to_string());
        Err(Self::Cut { format, what, announced, described })
    }
}

fn only(described: &str) -> String {
    if described.is_empty() { "none".to_owned() } else { format!("only {described}") }
}

/// Reasons why a machine cannot be written in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The format cannot express an essential property of this machine.
    #[error("{format} cannot express {what}")]
    Inexpressible { format: &'static str, what: String },
    /// The machine lacks a property that the format requires.
    #[error("{format} needs {what}, which is unknown for this machine")]
    Unknown { format: &'static str, what: String },
}
