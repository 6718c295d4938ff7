//! Finds the candidates that can no longer win, while blocks come in.
//!
//! A candidate is out once it is shown to be behind another one, or to gain less than a margin over
//! the baseline. Each of these comparisons is a [`ThresholdTest`] of log ratios, one per block.
//! Only the comparisons of the best candidate could put it out, and their number is the number of
//! candidates: the others, and the baseline. They share the error, so that the best one is put out
//! with a probability of at most that error (Bonferroni's inequality), whatever happens to the
//! others; `tests/race.rs` counts it.

use crate::{Confidence, Direction, Error, LookResult, Margin, ThresholdSide, ThresholdTest};

/// A sequential rule that eliminates candidates that cannot win.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Race {
    to_gain: ThresholdTest,
    to_lead: ThresholdTest,
    direction: Direction,
}

/// The reason why a candidate cannot win.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Out {
    /// The candidate gains less than the margin over the baseline.
    NoGain,
    /// The candidate in this column is better.
    Behind(usize),
}

impl Race {
    /// Creates a race of `candidates` over at most `most_blocks`. It eliminates the best candidate,
    /// if that gains at least the margin, with a probability of at most `1 - level`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for fewer than three blocks.
    pub fn new(
        candidates: usize,
        most_blocks: usize,
        margin: Margin,
        (direction, level): (Direction, Confidence),
    ) -> Result<Self, Error> {
        let share = Confidence::new(1.0 - level.alpha() / candidates.max(1) as f64)?;
        Ok(Self {
            to_gain: ThresholdTest::new(-margin.as_log(), share, most_blocks)?,
            to_lead: ThresholdTest::new(0.0, share, most_blocks)?,
            direction,
        })
    }

    /// Returns the candidates that are out after the blocks so far, by column. The first column is
    /// the baseline; a column that ends before it belongs to a candidate that is already out. Call
    /// it after every block. Values at or below zero have no ratios and put no candidate out.
    pub fn out(&self, columns: &[Vec<f64>]) -> Vec<(usize, Out)> {
        let Some((baseline, _)) = columns.split_first() else { return Vec::new() };
        let is_in = |column: &Vec<f64>| column.len() == baseline.len();
        let is_positive = columns.iter().flatten().all(|value| *value > 0.0);
        if !is_positive || !self.to_lead.is_look(baseline.len()) {
            return Vec::new();
        }
        let running: Vec<usize> = (1..columns.len()).filter(|at| is_in(&columns[*at])).collect();
        let why = |at: usize| {
            if self.is_above(&self.to_gain, &columns[at], baseline) {
                return Some(Out::NoGain);
            }
            let mut others = running.iter().filter(|other| **other != at);
            let better =
                others.find(|other| self.is_above(&self.to_lead, &columns[at], &columns[**other]));
            better.map(|other| Out::Behind(*other))
        };
        running.iter().filter_map(|at| Some((*at, why(*at)?))).collect()
    }

    /// Returns true if a column is shown to be worse than another by more than a threshold.
    fn is_above(&self, test: &ThresholdTest, column: &[f64], other: &[f64]) -> bool {
        let sign = match self.direction {
            Direction::LowerIsBetter => 1.0,
            Direction::HigherIsBetter => -1.0,
        };
        let ratios = column.iter().zip(other).map(|(one, other)| sign * (one / other).ln());
        test.look(&ratios.collect::<Vec<f64>>()) == LookResult::Decided(ThresholdSide::Above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn race(direction: Direction) -> Race {
        Race::new(2, 8, Margin::TWO_PERCENT, (direction, Confidence::P95)).unwrap()
    }

    fn columns(blocks: usize, values: [f64; 3]) -> Vec<Vec<f64>> {
        let drift = |block: usize| 1.0 + 0.1 * block as f64;
        values.map(|value| (0..blocks).map(|at| value * drift(at)).collect()).to_vec()
    }

    #[test]
    fn a_candidate_that_is_slower_than_another_or_gains_nothing_is_out() {
        let times = race(Direction::LowerIsBetter);
        let out = times.out(&columns(3, [10.0, 8.0, 9.0]));
        assert_eq!(out, [(2, Out::Behind(1))]);
        let out = times.out(&columns(3, [10.0, 9.9, 10.5]));
        assert_eq!(out, [(1, Out::NoGain), (2, Out::NoGain)]);
        let rates = race(Direction::HigherIsBetter);
        assert_eq!(rates.out(&columns(3, [10.0, 12.0, 9.0])), [(2, Out::NoGain)]);
    }

    #[test]
    fn a_candidate_that_is_out_puts_no_other_out() {
        let times = race(Direction::LowerIsBetter);
        let mut columns = columns(4, [10.0, 8.0, 9.0]);
        columns[1].pop();
        assert_eq!(times.out(&columns), []);
    }

    #[test]
    fn no_candidate_is_out_between_looks_or_by_values_without_ratios() {
        let times = race(Direction::LowerIsBetter);
        assert_eq!(times.out(&columns(2, [10.0, 8.0, 9.0])), []);
        assert_eq!(times.out(&columns(5, [10.0, 8.0, 9.0])), [], "looks are at 3, 4, 6 and 8");
        assert_eq!(times.out(&columns(3, [10.0, 0.0, 9.0])), []);
        assert_eq!(times.out(&[]), []);
    }

    #[test]
    fn a_race_of_two_blocks_is_refused() {
        let ends = (Direction::LowerIsBetter, Confidence::P95);
        assert!(Race::new(2, 2, Margin::TWO_PERCENT, ends).is_err());
    }
}
