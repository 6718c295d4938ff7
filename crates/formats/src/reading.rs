//! What readers and writers return.

use numalab_topology::{Finding, Machine};

/// What was read, and what was odd about the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading<T = Machine> {
    /// What the text describes.
    pub value: T,
    /// What was ignored, assumed or inconsistent, in order of appearance.
    pub findings: Vec<Finding>,
}

/// What was written, and what the format could not carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<T = String> {
    /// The text or arguments.
    pub output: T,
    /// What of the machine is missing or changed in the output.
    pub losses: Vec<Finding>,
}
