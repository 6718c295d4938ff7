//! What is kept of a run.

use std::collections::BTreeMap;

use numalab_analysis::fleet::FigureKey;

/// What is kept of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Digest {
    /// When it began, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// The version of numalab.
    pub version: String,
    /// The command line.
    pub command: String,
    /// Cells that were planned.
    pub planned: usize,
    /// Cells that ended with samples.
    pub ended: usize,
    /// Facts about the system and its topology by name.
    pub facts: BTreeMap<String, String>,
    /// The figures.
    pub figures: Vec<DigestFigure>,
}

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct DigestFigure {
    /// What it is.
    pub key: FigureKey,
    /// The median of its undisturbed samples.
    pub median: f64,
    /// Their scaled median absolute deviation over the median.
    pub spread: f64,
    /// How many they are.
    pub samples: usize,
}
