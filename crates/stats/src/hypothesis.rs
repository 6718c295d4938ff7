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

/// How a p-value was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// From the exact null distribution, ties included.
    Exact,
    /// From the normal approximation, with corrections for ties and continuity.
    Normal,
    /// From random draws of the null distribution.
    MonteCarlo {
        /// How many were drawn.
        draws: usize,
    },
}

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// The statistic; each test says which.
    pub statistic: f64,
    /// The chance, without any difference, of a statistic at least as extreme.
    pub p: f64,
    /// How p was found.
    pub method: Method,
}

impl Alternative {
    /// The p-value from the chances of a statistic at most and at least as large as this one;
    /// two-sided it is twice the smaller, as scipy and R have it.
    pub(crate) fn p(self, at_most: f64, at_least: f64) -> f64 {
        let p = match self {
            Self::TwoSided => 2.0 * at_most.min(at_least),
            Self::Less => at_most,
            Self::Greater => at_least,
        };
        p.min(1.0)
    }
}
