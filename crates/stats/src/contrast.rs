//! Effects in a factorial layout: weights over treatments, applied within each block.
//!
//! Montgomery, *Design and Analysis of Experiments*, 8th ed., 2012, chapters 3 and 5. Every effect
//! becomes one value for each block and is then judged as a pair is.

use crate::{Comparison, Criteria, Error, Sample, compare_paired, paired_differences};

/// Factors and their levels; treatments are numbered with the last factor's level varying fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactorLevels {
    levels: Vec<usize>,
}

/// Weights over treatments that sum to zero: the effect is `sum of weight x ln(value)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast {
    weights: Vec<f64>,
}

impl FactorLevels {
    /// Creates a layout of factors with these numbers of levels, each two or more.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a factor of fewer than two levels.
    pub fn new(levels: impl Into<Vec<usize>>) -> Result<Self, Error> {
        let levels = levels.into();
        match levels.iter().find(|count| **count < 2) {
            None => Ok(Self { levels }),
            Some(count) => Err(Error::OutOfRange {
                what: "number of levels",
                value: *count as f64,
                expected: "two or more",
            }),
        }
    }

    /// Returns the number of treatments.
    pub fn treatments(&self) -> usize {
        self.levels.iter().product()
    }

    /// Returns the level of each factor in a treatment.
    pub fn levels_of(&self, treatment: usize) -> Vec<usize> {
        let mut rest = treatment;
        let mut levels: Vec<usize> = Vec::new();
        for count in self.levels.iter().rev() {
            levels.push(rest % count);
            rest /= count;
        }
        levels.reverse();
        levels
    }

    /// Returns the contrast of a level with the factor's first level, averaged over the other
    /// factors.
    pub fn main_effect(&self, factor: usize, level: usize) -> Contrast {
        let share = self.levels[factor] as f64 / self.treatments() as f64;
        self.contrast(|levels| match levels[factor] {
            0 => -share,
            found if found == level => share,
            _ => 0.0,
        })
    }

    /// Returns the contrast for how much larger the effect of `level` is at `other_level` of
    /// another factor than at its first level, averaged over the remaining factors.
    pub fn interaction(
        &self,
        (factor, level): (usize, usize),
        (other, other_level): (usize, usize),
    ) -> Contrast {
        let cells = self.levels[factor] * self.levels[other];
        let share = cells as f64 / self.treatments() as f64;
        let side = |found: usize, wanted: usize| match found {
            0 => -1.0,
            _ if found == wanted => 1.0,
            _ => 0.0,
        };
        self.contrast(|levels| {
            share * side(levels[factor], level) * side(levels[other], other_level)
        })
    }

    /// Returns the contrast of one treatment with another.
    pub fn pair(&self, baseline: usize, candidate: usize) -> Contrast {
        let mut weights = vec![0.0; self.treatments()];
        weights[baseline] -= 1.0;
        weights[candidate] += 1.0;
        Contrast { weights }
    }

    /// Returns the contrast for the slope per doubling of a factor's numbers, one for each level,
    /// averaged over the other factors.
    ///
    /// # Errors
    /// [`Error::LengthsDiffer`] unless there is a number for each level, [`Error::NotPositive`] for
    /// one that has no logarithm.
    pub fn trend(&self, factor: usize, numbers: &[f64]) -> Result<Contrast, Error> {
        let slope = self.slope(factor, numbers)?;
        let others = self.levels[factor] as f64 / self.treatments() as f64;
        Ok(self.contrast(|levels| others * slope[levels[factor]]))
    }

    /// Returns the contrast for how much the effect of `level` grows with each doubling of another
    /// factor's numbers.
    ///
    /// # Errors
    /// As [`trend`](Self::trend).
    pub fn trend_of_effect(
        &self,
        (factor, level): (usize, usize),
        other: usize,
        numbers: &[f64],
    ) -> Result<Contrast, Error> {
        let slope = self.slope(other, numbers)?;
        let cells = self.levels[factor] * self.levels[other];
        let share = cells as f64 / self.treatments() as f64;
        Ok(self.contrast(|levels| match levels[factor] {
            0 => -share * slope[levels[other]],
            found if found == level => share * slope[levels[other]],
            _ => 0.0,
        }))
    }

    fn contrast(&self, weight: impl Fn(&[usize]) -> f64) -> Contrast {
        let treatments = 0..self.treatments();
        Contrast { weights: treatments.map(|t| weight(&self.levels_of(t))).collect() }
    }

    /// Returns the weights, by least squares, of the values at each number in the slope on log2.
    fn slope(&self, factor: usize, numbers: &[f64]) -> Result<Vec<f64>, Error> {
        let count = self.levels[factor];
        if numbers.len() != count {
            return Err(Error::LengthsDiffer { left: count, right: numbers.len() });
        }
        let doublings: Vec<f64> = Sample::new(numbers)?.logs()?.values().to_vec();
        let doublings: Vec<f64> = doublings.iter().map(|ln| ln / std::f64::consts::LN_2).collect();
        let mean = doublings.iter().sum::<f64>() / count as f64;
        let square: f64 = doublings.iter().map(|x| (x - mean).powi(2)).sum();
        Ok(doublings.iter().map(|x| (x - mean) / square).collect())
    }
}

impl Contrast {
    /// Returns the weights, one for each treatment.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Judges the contrast on blocks, given as `columns[treatment][block]`.
    ///
    /// A contrast of two treatments compares their values. Any other compares the weighted
    /// geometric means of its two sides, or weighted sums if a value is zero or below. Treatments
    /// without a weight are ignored.
    ///
    /// # Errors
    /// [`Error::LengthsDiffer`] unless each of its treatments has a value in every block,
    /// [`Error::Empty`] without blocks, [`Error::NotFinite`] if a value is not finite.
    pub fn compare(&self, columns: &[Vec<f64>], criteria: &Criteria) -> Result<Comparison, Error> {
        let (baseline, candidate) = self.sides(columns)?;
        compare_paired(&baseline, &candidate, criteria)
    }

    /// Returns the contrast of each block: in logarithms, or of the plain values if one is zero or
    /// below.
    ///
    /// # Errors
    /// As [`compare`](Self::compare).
    pub fn differences(&self, columns: &[Vec<f64>]) -> Result<Sample, Error> {
        let (baseline, candidate) = self.sides(columns)?;
        match (baseline.logs(), candidate.logs()) {
            (Ok(baseline), Ok(candidate)) => paired_differences(&baseline, &candidate),
            _ => paired_differences(&baseline, &candidate),
        }
    }

    fn sides(&self, columns: &[Vec<f64>]) -> Result<(Sample, Sample), Error> {
        if columns.len() != self.weights.len() {
            return Err(Error::LengthsDiffer { left: self.weights.len(), right: columns.len() });
        }
        let weighted = || self.weights.iter().zip(columns).filter(|(weight, _)| **weight != 0.0);
        let blocks = weighted().next().map_or(0, |(_, column)| column.len());
        if let Some((_, column)) = weighted().find(|(_, column)| column.len() != blocks) {
            return Err(Error::LengthsDiffer { left: blocks, right: column.len() });
        }
        let positive = weighted().flat_map(|(_, column)| column).all(|value| *value > 0.0);
        let side = |wanted: fn(f64) -> bool| {
            let parts = weighted().filter(|(weight, _)| wanted(**weight));
            let parts: Vec<(f64, &Vec<f64>)> = parts.map(|(w, c)| (w.abs(), c)).collect();
            let value = |block: usize| match parts[..] {
                // Not through logarithms, which would round the value.
                [(1.0, column)] => column[block],
                _ if positive => {
                    parts.iter().map(|(w, column)| w * column[block].ln()).sum::<f64>().exp()
                }
                _ => parts.iter().map(|(w, column)| w * column[block]).sum(),
            };
            Sample::new((0..blocks).map(value).collect::<Vec<f64>>())
        };
        Ok((side(|w| w < 0.0)?, side(|w| w > 0.0)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Direction, Ground, Verdict};

    fn two_by_two() -> FactorLevels {
        FactorLevels::new([2, 2]).unwrap()
    }

    fn rates() -> Criteria {
        Criteria::new(Direction::HigherIsBetter)
    }

    #[test]
    fn treatments_count_with_the_last_factor_fastest() {
        let layout = FactorLevels::new([2, 3]).unwrap();
        let levels: Vec<Vec<usize>> = (0..6).map(|t| layout.levels_of(t)).collect();
        assert_eq!(levels, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
        assert!(FactorLevels::new([2, 1]).is_err());
    }

    #[test]
    fn weights_are_those_of_the_textbook() {
        let layout = two_by_two();
        assert_eq!(layout.main_effect(0, 1).weights(), [-0.5, -0.5, 0.5, 0.5]);
        assert_eq!(layout.main_effect(1, 1).weights(), [-0.5, 0.5, -0.5, 0.5]);
        assert_eq!(layout.interaction((0, 1), (1, 1)).weights(), [1.0, -1.0, -1.0, 1.0]);
        assert_eq!(layout.pair(0, 3).weights(), [-1.0, 0.0, 0.0, 1.0]);
        let three = FactorLevels::new([3, 2]).unwrap();
        assert_eq!(three.main_effect(0, 2).weights(), [-0.5, -0.5, 0.0, 0.0, 0.5, 0.5]);
        let trend = FactorLevels::new([3]).unwrap().trend(0, &[1.0, 2.0, 4.0]).unwrap();
        assert_eq!(trend.weights(), [-0.5, 0.0, 0.5]);
    }

    #[test]
    fn every_contrast_sums_to_zero() {
        let layout = FactorLevels::new([2, 3, 4]).unwrap();
        let numbers = [1.0, 3.0, 4.0, 9.0];
        for contrast in [
            layout.main_effect(2, 3),
            layout.interaction((0, 1), (1, 2)),
            layout.trend(2, &numbers).unwrap(),
            layout.trend_of_effect((1, 2), 2, &numbers).unwrap(),
        ] {
            assert!(contrast.weights().iter().sum::<f64>().abs() < 1e-12, "{contrast:?}");
        }
    }

    /// Blocks that drift: each value is a base, times both effects, times both together.
    fn blocks(a: f64, b: f64, both: f64) -> Vec<Vec<f64>> {
        let noise = |i: usize| 1.0 + 0.001 * ((i * 7 % 5) as f64 - 2.0);
        let base = |block: usize| 100.0 + 10.0 * block as f64;
        let column = |factor: f64, at: usize| {
            (0..10).map(|block| base(block) * factor * noise(block + at)).collect()
        };
        vec![column(1.0, 0), column(b, 3), column(a, 1), column(a * b * both, 2)]
    }

    #[test]
    fn effects_and_their_interaction_are_separated() {
        let columns = blocks(1.1, 1.2, 0.9);
        let layout = two_by_two();
        let percent = |contrast: Contrast| {
            let found = contrast.compare(&columns, &rates()).unwrap();
            (found.percent().unwrap(), found.verdict)
        };
        let (change, verdict) = percent(layout.interaction((0, 1), (1, 1)));
        assert!((change + 10.0).abs() < 0.5 && verdict == Verdict::Worse, "{change}");
        // The main effect is the mean of those with and without the other, in logarithms.
        let expected = 100.0 * (1.1 * 0.9_f64.sqrt() - 1.0);
        let (change, _) = percent(layout.main_effect(0, 1));
        assert!((change - expected).abs() < 0.5, "{change}");
        let (change, verdict) = percent(layout.pair(0, 1));
        assert!((change - 20.0).abs() < 0.5 && verdict == Verdict::Better, "{change}");
    }

    #[test]
    fn a_trend_is_the_change_with_each_doubling() {
        let numbers = [4.0, 8.0, 16.0];
        let columns: Vec<Vec<f64>> = numbers
            .iter()
            .map(|n: &f64| (0..8).map(|block| (50.0 + block as f64) * n.powf(0.5)).collect())
            .collect();
        let trend = FactorLevels::new([3]).unwrap().trend(0, &numbers).unwrap();
        let found = trend.compare(&columns, &rates()).unwrap();
        assert!((found.percent().unwrap() - 100.0 * (2_f64.sqrt() - 1.0)).abs() < 1e-9);
        assert!(FactorLevels::new([3]).unwrap().trend(0, &[1.0, 2.0]).is_err());
        assert!(FactorLevels::new([2]).unwrap().trend(0, &[0.0, 2.0]).is_err());
    }

    #[test]
    fn values_that_do_not_vary_are_judged_by_the_margin() {
        let columns = vec![vec![10.0; 5], vec![10.1; 5], vec![12.0; 5], vec![12.1; 5]];
        let found = two_by_two().main_effect(0, 1).compare(&columns, &rates()).unwrap();
        assert_eq!((found.ground, found.verdict), (Ground::NoVariance, Verdict::Better));
        let found = two_by_two().main_effect(1, 1).compare(&columns, &rates()).unwrap();
        assert_eq!(found.verdict, Verdict::Equivalent);
    }

    #[test]
    fn a_zero_leads_to_differences_and_ragged_blocks_to_errors() {
        let columns = vec![vec![0.0, 1.0, 2.0], vec![1.0, 2.0, 3.0]];
        let layout = FactorLevels::new([2]).unwrap();
        let found = layout.main_effect(0, 1).compare(&columns, &rates()).unwrap();
        assert_eq!(found.effect, 1.0);
        let ragged = vec![vec![1.0], vec![1.0, 2.0]];
        assert!(layout.pair(0, 1).compare(&ragged, &rates()).is_err());
        let beside = vec![vec![1.0, 2.0], vec![1.0, 2.0], vec![0.0]];
        let of_two = FactorLevels::new([3]).unwrap().pair(0, 1).compare(&beside, &rates()).unwrap();
        assert_eq!(
            of_two.scale,
            crate::Scale::LogRatio,
            "the third treatment is not part of the contrast"
        );
        assert!(layout.pair(0, 1).compare(&[vec![], vec![]], &rates()).is_err());
        assert!(layout.pair(0, 1).compare(&[vec![1.0]], &rates()).is_err());
    }
}
