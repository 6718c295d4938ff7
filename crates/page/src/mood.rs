//! The mood of a sentence or a row.

use std::fmt;

/// The mood of a sentence or a row, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// A fact.
    Plain,
    /// A change for the better.
    Good,
    /// A change for the worse.
    Bad,
    /// Settled: nothing changed, nothing is unusual.
    Fine,
    /// Undecided, or worth a look.
    Odd,
}

impl fmt::Display for Mood {
    /// Writes a stable word for the mood.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Plain => "plain",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Fine => "fine",
            Self::Odd => "odd",
        })
    }
}
