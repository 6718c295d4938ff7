use thiserror::Error;

/// Reasons why a statistic cannot be computed.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// There are no values.
    #[error("no values: at least one finite number is needed")]
    Empty,
    /// A value is NaN or infinite.
    #[error("value {value} at index {index} is not finite: only finite numbers can be analysed")]
    NotFinite {
        /// Position in the order given, from 0.
        index: usize,
        /// The rejected value.
        value: f64,
    },
    /// A value that must be above zero, because its logarithm is taken, is not.
    #[error("value {value} at index {index} is not above zero, so it has no logarithm")]
    NotPositive {
        /// Position in the order given, from 0.
        index: usize,
        /// The rejected value.
        value: f64,
    },
    /// Two paired samples have different lengths.
    #[error("{left} and {right} values cannot be paired: one value of each per block is needed")]
    LengthsDiffer {
        /// Values in the first sample.
        left: usize,
        /// Values in the second sample.
        right: usize,
    },
    /// There are too few values to reach the requested confidence.
    #[error(
        "{got} values cannot give an interval at {:.4} % confidence: about {needed} are needed",
        100.0 * confidence
    )]
    NotAttainable {
        /// Number of values given.
        got: usize,
        /// Number of values needed; an estimate if the values are autocorrelated.
        needed: usize,
        /// The requested confidence, in (0, 1).
        confidence: f64,
    },
    /// A ratio has no bounded interval, because its denominator is not clearly separated from zero.
    #[error("the mean {mean} of the denominator is not clearly separated from zero (g = {g} >= 1)")]
    Unbounded {
        /// Mean of the denominator.
        mean: f64,
        /// Fieller's g: squared relative half width of that mean.
        g: f64,
    },
    /// A parameter is outside its range.
    #[error("{what} is {value}: expected {expected}")]
    OutOfRange {
        /// Name of the parameter.
        what: &'static str,
        /// The value given.
        value: f64,
        /// The expected range, in words.
        expected: &'static str,
    },
}
