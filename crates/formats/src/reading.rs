//! The results of readers and writers.

use numalab_topology::{Finding, Machine};

/// The result of a reader, with findings about the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading<T = Machine> {
    /// The value that the text describes.
    pub value: T,
    /// Values that were ignored, assumed or inconsistent, in order of appearance.
    pub findings: Vec<Finding>,
}

/// The result of a writer, with the losses of the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<T = String> {
    /// The text or arguments written.
    pub output: T,
    /// Properties of the machine that are missing or changed in the output.
    pub losses: Vec<Finding>,
}
