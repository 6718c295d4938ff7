//! How a sentence or a row is to be taken.

use std::fmt;

/// How a sentence or a row is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// A fact.
    Plain,
    /// A change for the better.
    Good,
    /// A change for the worse.
    Bad,
    /// Settled: nothing changes, nothing is odd.
    Fine,
    /// Open, or something to look at.
    Odd,
}

impl fmt::Display for Mood {
    /// A stable word for it.
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
