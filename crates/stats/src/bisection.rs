//! The decisions of a search for the change that made something worse.
//!
//! A bisection first asks whether the last state is worse than the first by more than a margin, and
//! then, for one state after another, on which side of the midpoint between those two it is. The
//! error rate holds for the whole search: half of it goes to the first question, and the other half
//! is shared among twice the number of states that halving needs, because a state that cannot be
//! judged makes further ones necessary (Bonferroni's inequality).

use crate::{Confidence, Error, ThresholdTest};

/// The rules of a search among a given number of states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bisection {
    error: Confidence,
    halvings: usize,
    most_samples: usize,
}

impl Bisection {
    /// Creates a search among `states` states that could be the first bad one. It names a wrong
    /// state with a probability of at most `1 - confidence`, and takes at most `most_samples`
    /// samples of each state.
    pub fn new(confidence: Confidence, states: usize, most_samples: usize) -> Self {
        let halvings = states.max(2).next_power_of_two().trailing_zeros() as usize;
        Self { error: confidence, halvings, most_samples }
    }

    /// Returns the largest number of states that halving needs if every state can be judged.
    pub fn halvings(&self) -> usize {
        self.halvings
    }

    /// Returns the largest number of states that may be judged.
    pub fn most_judged(&self) -> usize {
        2 * self.halvings
    }

    /// Returns the test that decides whether the bad state is worse than the good one by more than
    /// a margin. Its values are the log ratios of their samples, above 0 where the bad state is
    /// worse.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `margin`, a log ratio, is not a number or `most_samples` is too
    /// small.
    pub fn ends(&self, margin: f64) -> Result<ThresholdTest, Error> {
        ThresholdTest::new(margin, self.share(0.5)?, self.most_samples)
    }

    /// Returns the test that decides on which side of the midpoint a state is. Its values are
    /// [`score`]s.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `most_samples` is too small.
    pub fn state(&self) -> Result<ThresholdTest, Error> {
        let share = 0.5 / self.most_judged() as f64;
        ThresholdTest::new(0.0, self.share(share)?, self.most_samples)
    }

    fn share(&self, share: f64) -> Result<Confidence, Error> {
        Confidence::new(1.0 - self.error.alpha() * share)
    }
}

/// Returns how far a state's sample is beyond the midpoint between the samples of the good and the
/// bad state, as a log ratio; it is above 0 on the side with the larger values.
pub fn score(good: f64, state: f64, bad: f64) -> f64 {
    state.ln() - f64::midpoint(good.ln(), bad.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_takes_the_number_of_states_that_the_logarithm_gives() {
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
