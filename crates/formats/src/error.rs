//! Errors from reading a format and from writing a machine.

use numalab_topology::count;

/// Reasons why the input is not in the expected format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A line or a value has a different form.
    #[error("{format}, line {line}: found `{found}`, expected {expected}")]
    Syntax {
        /// Name of the format.
        format: &'static str,
        /// The line number, from 1.
        line: usize,
        /// The text found.
        found: String,
        /// The expected form.
        expected: String,
    },
    /// A required part of the text is missing.
    #[error("{format}: no {what}")]
    Absent {
        /// Name of the format.
        format: &'static str,
        /// The part that is missing from the text.
        what: &'static str,
    },
    /// The text states that there is nothing to read.
    #[error("{format}: the text says `{line}`: it does not describe a machine")]
    Denied {
        /// Name of the format.
        format: &'static str,
        /// The line with that statement.
        line: String,
    },
    /// The text describes fewer items than it announces, because it was truncated.
    #[error(
        "{format}: {what}: {announced} announced, {} described; expected the whole text",
        only(described)
    )]
    Cut {
        /// Name of the format.
        format: &'static str,
        /// The missing items.
        what: &'static str,
        /// The announced items.
        announced: String,
        /// The described items.
        described: String,
    },
    /// All long lines end at the same column, before cpus that no line lists.
    #[error(
        "{format}: no node lists cpus {missing}, which would follow the lines that end at column \
         {column}: they were cut there; expected whole lines, as `numactl -H > FILE` writes them, or \
         `numactl -H --cpu-compress` if these cpus are offline"
    )]
    Narrow {
        /// The format.
        format: &'static str,
        /// The missing cpus.
        missing: String,
        /// The column.
        column: usize,
    },
    /// The lines have the prefixes of several machines.
    #[error(
        "{format}, line {line}: `{found}` after `{first}` at the beginning of a line; expected the \
         output of one machine, as `grep '^{first}' FILE` selects it"
    )]
    Several {
        /// Name of the format.
        format: &'static str,
        /// The prefix of the first machine's lines.
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
    Row {
        /// Name of the format.
        format: &'static str,
        /// The node of the row.
        node: String,
        /// Number of distances in the row.
        distances: usize,
        /// Number of columns.
        columns: usize,
    },
    /// The text has more items than any machine has; it is refused before it costs time and memory.
    #[error("{format}: {found} {what}, expected at most {most}")]
    TooMany {
        /// Name of the format.
        format: &'static str,
        /// The kind of items, in the plural.
        what: &'static str,
        /// Number of items found.
        found: usize,
        /// Maximum number accepted.
        most: usize,
    },
    /// The text is not XML or TOML of this form.
    #[error("{format}: {message}")]
    Markup {
        /// Name of the format.
        format: &'static str,
        /// The parser's message, with the position.
        message: String,
    },
}

fn only(described: &str) -> String {
    if described.is_empty() { "none".to_owned() } else { format!("only {described}") }
}

/// Reasons why a machine cannot be written in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The format cannot express an essential property of this machine.
    #[error("{format} cannot express {what}")]
    Inexpressible {
        /// Name of the format.
        format: &'static str,
        /// The property, with the ids concerned.
        what: String,
    },
    /// The machine lacks a property that the format requires.
    #[error("{format} needs {what}, which is unknown for this machine")]
    Unknown {
        /// Name of the format.
        format: &'static str,
        /// The missing property.
        what: String,
    },
}
