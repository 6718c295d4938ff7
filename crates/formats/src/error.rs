//! Why a text could not be read, or a machine not be written.

/// Why a text is not of the expected format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A line, or what it holds, has another form.
    #[error("{format}, line {line}: found `{found}`, expected {expected}")]
    Syntax {
        /// The format.
        format: &'static str,
        /// The line, 1 for the first.
        line: usize,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// Something that every such text has is missing.
    #[error("{format}: there is no {what}")]
    Absent {
        /// The format.
        format: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// The text says that there is nothing to read.
    #[error("{format}: the text says `{said}`: it describes no machine")]
    Denied {
        /// The format.
        format: &'static str,
        /// The line that says so.
        said: String,
    },
    /// The text describes fewer of something than it announces: it was cut.
    #[error(
        "{format}: {what}: {announced} announced, only {described} described; expected the whole text"
    )]
    Cut {
        /// The format.
        format: &'static str,
        /// What is missing.
        what: &'static str,
        /// Those announced.
        announced: String,
        /// Those described.
        described: String,
    },
    /// More of something than any machine has, refused before it takes time and memory.
    #[error("{format}: {found} {what}, expected at most {most}")]
    TooMany {
        /// The format.
        format: &'static str,
        /// What there are too many of.
        what: &'static str,
        /// How many.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// The text is no XML or no TOML of this form at all.
    #[error("{format}: {message}")]
    Markup {
        /// The format.
        format: &'static str,
        /// The parser's message with the position.
        message: String,
    },
}

/// Why a machine cannot be written in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The format has no way to say something essential of this machine.
    #[error("{format} cannot express {what}")]
    Inexpressible {
        /// The format.
        format: &'static str,
        /// What it cannot express, with the ids concerned.
        what: String,
    },
    /// The machine lacks what the format must have.
    #[error("{format} needs {what}, which is not known of this machine")]
    Unknown {
        /// The format.
        format: &'static str,
        /// What is not known.
        what: String,
    },
}
