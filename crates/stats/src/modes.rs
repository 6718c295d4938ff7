//! Distributions with two modes, which a median does not describe.
//!
//! A valley between two peaks of a histogram is tested against the lower peak. If the distribution
//! had one mode, no interval between two others of the same width would hold fewer values than both
//! of them, so a value of the lower peak and the valley would fall into the valley at least every
//! second time (binomial test, adjusted for the choice of peaks and valley).

use crate::extremes::binomial_below;
use crate::{Sample, whole};

/// Fewer values than these have no modes that a histogram could show.
const FEWEST: usize = 30;
/// The minimum share of the values on either side of the valley; smaller groups are a tail.
const LEAST_SHARE: f64 = 0.05;
/// The minimum and maximum number of bins from the 5th to the 95th percentile.
const BINS: [usize; 2] = [5, 20];
/// The number of values for each of those bins, between the two.
const VALUES_PER_BIN: usize = 20;
/// A bin spans at least this number of steps of the values' resolution, so that no bin is empty
/// because no value can fall into it.
const STEPS_PER_BIN: f64 = 2.0;
/// The valley holds less than this share of the lower peak.
const VALLEY_SHARE: f64 = 0.5;
/// The largest share of distributions with one mode that are found to have two.
const FALSE_SHARE: f64 = 0.01;

/// Two modes of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modes {
    /// The medians of the values below and above the boundary.
    pub centres: [f64; 2],
    /// The share of the values above the boundary.
    pub upper_share: f64,
    /// The middle of the valley.
    pub boundary: f64,
    /// True if the values on one side have two modes themselves.
    pub several: bool,
}

impl Modes {
    /// Returns the excess of the upper mode over the lower one, in percent.
    pub fn percent_apart(&self) -> f64 {
        let [lower, upper] = self.centres;
        100.0 * (upper - lower) / lower.abs()
    }
}

/// Returns the two modes on either side of the clearest valley, or `None` if one mode explains the
/// values.
///
/// `worth` is the share of the values that are independent, as for [`extremes`](crate::extremes).
pub fn two_modes(sample: &Sample, worth: f64) -> Option<Modes> {
    let count = sample.len() as f64 * worth.clamp(0.0, 1.0);
    if whole::floor(count) < FEWEST {
        return None;
    }
    let [from, to] = [LEAST_SHARE, 1.0 - LEAST_SHARE].map(|share| sample.quantile(share));
    let bins = (whole::floor(count) / VALUES_PER_BIN).clamp(BINS[0], BINS[1]) as f64;
    let width = ((to - from) / bins).max(STEPS_PER_BIN * resolution(sample.sorted()));
    if width <= 0.0 {
        return None;
    }
    let histogram = histogram(sample.sorted(), from, width, whole::floor(bins));
    let scaled: Vec<f64> =
        histogram.iter().map(|&count| (count as f64 * worth.clamp(0.0, 1.0)).round()).collect();
    let choices = bins * (bins - 1.0) * (bins - 2.0) / 6.0;
    let valley = clearest_valley(&scaled, FALSE_SHARE / choices)?;
    let boundary = from + (valley as f64 - bins + 0.5) * width;
    split(sample.sorted(), boundary, worth)
}

/// Returns the medians on either side of a boundary, if neither side is a tail.
fn split(sorted: &[f64], boundary: f64, worth: f64) -> Option<Modes> {
    let (below, above) = sorted.split_at(sorted.partition_point(|value| *value < boundary));
    let share = |side: &[f64]| side.len() as f64 / sorted.len() as f64;
    if share(below) < LEAST_SHARE || share(above) < LEAST_SHARE {
        return None;
    }
    let median = |side: &[f64]| crate::quantile::at(side, (side.len() - 1) as f64 / 2.0);
    let has_two =
        |side: &[f64]| Sample::new(side).is_ok_and(|side| two_modes(&side, worth).is_some());
    Some(Modes {
        centres: [median(below), median(above)],
        upper_share: share(above),
        boundary,
        several: has_two(below) || has_two(above),
    })
}

/// Counts values in bins of one width: `bins` of them from `from`, and the same number on either side.
fn histogram(sorted: &[f64], from: f64, width: f64, bins: usize) -> Vec<usize> {
    let mut counts = vec![0; 3 * bins];
    for value in sorted {
        let position = (value - from) / width + bins as f64;
        if (0.0..counts.len() as f64).contains(&position) {
            counts[whole::floor(position)] += 1;
        }
    }
    counts
}

/// Returns the bin that most clearly holds fewer values than a bin on either side.
fn clearest_valley(counts: &[f64], level: f64) -> Option<usize> {
    let highest = |side: &[f64]| side.iter().copied().fold(0.0, f64::max);
    let p = |at: usize| {
        let peak = highest(&counts[..at]).min(highest(&counts[at + 1..]));
        let valley = counts[at];
        match valley < VALLEY_SHARE * peak {
            true => binomial_below(whole::floor(valley) + 1, whole::floor(valley + peak), 0.5),
            false => 1.0,
        }
    };
    let valleys = (0..counts.len()).map(|at| (at, p(at))).filter(|(_, p)| *p < level);
    let least = valleys.clone().map(|(_, p)| p).fold(1.0, f64::min);
    // The middle one of several that are equally clear.
    let clearest: Vec<usize> = valleys.filter(|(_, p)| *p <= least).map(|(at, _)| at).collect();
    clearest.get(clearest.len() / 2).copied()
}

/// Returns the median distance between neighbouring distinct values.
fn resolution(sorted: &[f64]) -> f64 {
    let steps: Vec<f64> =
        sorted.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0).collect();
    if steps.is_empty() { 0.0 } else { crate::quantile::median_of(steps) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn normal(rng: &mut Rng) -> f64 {
        let radius = (-2.0 * rng.uniform().max(1e-300).ln()).sqrt();
        radius * (std::f64::consts::TAU * rng.uniform()).cos()
    }

    fn sample(n: usize, mut value: impl FnMut() -> f64) -> Sample {
        Sample::new((0..n).map(|_| value()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn distributions_with_one_mode_are_seldom_reported_to_have_two() {
        let mut rng = Rng::new(11);
        let shapes: [fn(&mut Rng) -> f64; 6] = [
            |rng| rng.uniform(),
            normal,
            |rng| -rng.uniform().max(1e-300).ln(),
            |rng| normal(rng).exp(),
            |rng| normal(rng) / normal(rng).abs().max(1e-9),
            |rng| (100.0 + 1.5 * normal(rng)).round(),
        ];
        for n in [30, 100, 1000, 4000] {
            for (shape, draw) in shapes.iter().enumerate() {
                let found = (0..300)
                    .filter(|_| two_modes(&sample(n, || draw(&mut rng)), 1.0).is_some())
                    .count();
                assert!(found <= 6, "{found} of 300 of shape {shape} with {n} values");
            }
        }
    }

    #[test]
    fn two_modes_are_found_with_their_places_and_shares() {
        let mut rng = Rng::new(13);
        for (n, share, least) in [(40, 0.5, 90), (200, 0.3, 95), (1000, 0.1, 98)] {
            let (mut found, mut several) = (0, 0);
            for _ in 0..100 {
                let mixed = sample(n, || {
                    let middle = if rng.uniform() < share { 140.0 } else { 100.0 };
                    middle + 3.0 * normal(&mut rng)
                });
                let Some(modes) = two_modes(&mixed, 1.0) else { continue };
                found += 1;
                let [lower, upper] = modes.centres;
                assert!((lower - 100.0).abs() < 4.0 && (upper - 140.0).abs() < 5.0, "{modes:?}");
                assert!((modes.upper_share - share).abs() < 0.3, "{modes:?}");
                assert!((modes.percent_apart() - 40.0).abs() < 9.0, "{modes:?}");
                several += usize::from(modes.several);
            }
            assert!(found >= least, "{found} of 100 with {n} values, {share} of them in one mode");
            assert!(several <= 5, "{several} of 100 with {n} values");
        }
    }

    #[test]
    fn three_modes_are_not_reported_as_two() {
        let mut rng = Rng::new(23);
        let mut three = || {
            let middle = [80.0, 100.0, 120.0][whole::floor(3.0 * rng.uniform()).min(2)];
            middle + 1.5 * normal(&mut rng)
        };
        let several = (0..50)
            .filter(|_| two_modes(&sample(1000, &mut three), 1.0).is_some_and(|of| of.several))
            .count();
        assert!(several >= 48, "{several} of 50");
    }

    #[test]
    fn clock_steps_and_a_few_stalls_are_not_modes() {
        let mut rng = Rng::new(17);
        // A clock that counts in steps of 20, and one value in a hundred far off.
        let clock = sample(2000, || {
            let value = 140.0 + 25.0 * normal(&mut rng);
            20.0 * (value / 20.0).round() + if rng.uniform() < 0.01 { 3000.0 } else { 0.0 }
        });
        assert_eq!(two_modes(&clock, 1.0), None);
        assert_eq!(two_modes(&sample(500, || 7.0), 1.0), None);
        let two: Vec<f64> = (0..500).map(|at| f64::from(at % 2)).collect();
        assert_eq!(two_modes(&Sample::new(two).unwrap(), 1.0), None, "the resolution may be 1");
    }

    #[test]
    fn values_that_resemble_their_neighbours_are_worth_fewer() {
        let mut rng = Rng::new(19);
        let mixed = sample(60, || {
            let middle = if rng.uniform() < 0.5 { 140.0 } else { 100.0 };
            middle + 3.0 * normal(&mut rng)
        });
        assert!(two_modes(&mixed, 1.0).is_some());
        assert_eq!(two_modes(&mixed, 0.2), None);
    }
}
