/// The side on which a test looks for a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alternative {
    /// Either side.
    TwoSided,
    /// The differences, or the candidate, tend to be lower.
    Less,
    /// The differences, or the candidate, tend to be higher.
    Greater,
}

/// The method that gave a p-value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The exact null distribution, ties included.
    Exact,
    /// The normal approximation, with corrections for ties and continuity.
    Normal,
    /// Random draws from the null distribution.
    MonteCarlo {
        /// Number of draws.
        draws: usize,
    },
}

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// The statistic; each test documents which.
    pub statistic: f64,
    /// The probability, if there is no difference, of a statistic at least as extreme.
    pub p: f64,
    /// The method that gave `p`.
    pub method: Method,
}

impl Alternative {
    /// Returns the p-value from the probabilities of a statistic at most and at least as large as
    /// this one. A two-sided p-value is twice the smaller of them, as in scipy and R.
    pub(crate) fn p(self, at_most: f64, at_least: f64) -> f64 {
        let p = match self {
            Self::TwoSided => 2.0 * at_most.min(at_least),
            Self::Less => at_most,
            Self::Greater => at_least,
        };
        p.min(1.0)
    }
}
