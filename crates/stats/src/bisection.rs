//! The decisions of a search for the change that made something worse.
//!
//! A bisection asks first whether the last state is worse than the first by more than a margin,
//! and then of one state after the other on which side of the middle between the two it lies.
//! The error rate holds for the whole: half of it is the first question's, and the other half is
//! dealt out to twice as many states as halving needs, since states that cannot be judged cost
//! further ones (Bonferroni's inequality).

use crate::{Confidence, Error, ThresholdTest};

/// The rules of a search among so many states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bisection {
    error: Confidence,
    halvings: usize,
    most_samples: usize,
}

impl Bisection {
    /// A search among `states` that could be the first bad one, which names a wrong one with a
    /// chance of at most `1 - confidence`, and takes at most `most_samples` of each state.
    #[must_use]
    pub fn new(confidence: Confidence, states: usize, most_samples: usize) -> Self {
        let halvings = states.max(2).next_power_of_two().trailing_zeros() as usize;
        Self { error: confidence, halvings, most_samples }
    }

    /// How many states halving needs at most, if each can be judged.
    #[must_use]
    pub fn halvings(&self) -> usize {
        self.halvings
    }

    /// How many states may be judged at all.
    #[must_use]
    pub fn most_judged(&self) -> usize {
        2 * self.halvings
    }

    /// Whether the bad state is worse than the good one by more than a margin: of the log ratios
    /// of their samples, above 0 where worse.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `margin`, a log ratio, is no number or too few samples may be taken.
    pub fn ends(&self, margin: f64) -> Result<ThresholdTest, Error> {
        ThresholdTest::new(margin, self.share(0.5)?, self.most_samples)
    }

    /// On which side of the middle a state lies: of [`score`].
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if too few samples may be taken.
    pub fn state(&self) -> Result<ThresholdTest, Error> {
        let share = 0.5 / self.most_judged() as f64;
        ThresholdTest::new(0.0, self.share(share)?, self.most_samples)
    }

    fn share(&self, share: f64) -> Result<Confidence, Error> {
        Confidence::new(1.0 - self.error.alpha() * share)
    }
}

/// How far a state's sample lies beyond the middle between samples of the good and of the bad
/// state, as a log ratio; above 0 on the side of what has the larger values.
#[must_use]
pub fn score(good: f64, state: f64, bad: f64) -> f64 {
    state.ln() - f64::midpoint(good.ln(), bad.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_takes_as_many_states_as_the_logarithm_says() {
        let halvings = |states| Bisection::new(Confidence::P99, states, 9).halvings();
        assert_eq!([1, 2, 3, 4, 5, 24, 32, 33].map(halvings), [1, 1, 2, 2, 3, 5, 5, 6]);
    }

    #[test]
    fn a_score_is_the_distance_from_the_geometric_middle() {
        assert!(score(100.0, 110.0, 121.0).abs() < 1e-12);
        assert!(score(100.0, 121.0, 121.0) > 0.09);
        assert!(score(100.0, 100.0, 121.0) < -0.09);
    }
}
