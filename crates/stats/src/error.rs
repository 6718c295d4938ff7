use thiserror::Error;

/// Why a statistic cannot be given.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// There is no value at all.
    #[error("no values: at least one finite number is needed")]
    Empty,
    /// A value is NaN or infinite.
    #[error("value {value} at index {index} is not finite: only finite numbers can be analysed")]
    NotFinite {
        /// Position in the order given, from 0.
        index: usize,
        /// The value itself.
        value: f64,
    },
    /// A value that must be above zero (it has a logarithm taken) is not.
    #[error("value {value} at index {index} is not above zero, so it has no logarithm")]
    NotPositive {
        /// Position in the order given, from 0.
        index: usize,
        /// The value itself.
        value: f64,
    },
    /// Two samples that are paired have different lengths.
    #[error("{left} and {right} values cannot be paired: one value of each per block is needed")]
    LengthsDiffer {
        /// Values in the first sample.
        left: usize,
        /// Values in the second sample.
        right: usize,
    },
    /// So few values cannot reach the confidence asked for, whatever they are.
    #[error(
        "{got} values cannot give an interval at {:.4} % confidence: about {needed} are needed",
        100.0 * confidence
    )]
    NotAttainable {
        /// Values there are.
        got: usize,
        /// Values needed; an estimate where the values are autocorrelated.
        needed: usize,
        /// The confidence asked for, in (0, 1).
        confidence: f64,
    },
    /// A ratio whose denominator is not clearly apart from zero has no bounded interval.
    #[error("the mean {mean} of the denominator is not clearly apart from zero (g = {g} >= 1)")]
    Unbounded {
        /// Mean of the denominator.
        mean: f64,
        /// Fieller's g: squared relative half width of that mean.
        g: f64,
    },
    /// A parameter is outside its range.
    #[error("{what} is {value}: {expected} is expected")]
    OutOfRange {
        /// Name of the parameter.
        what: &'static str,
        /// The value given.
        value: f64,
        /// The range expected, in words.
        expected: &'static str,
    },
}
