//! The Mann-Whitney (Wilcoxon rank-sum) test.
//!
//! Mann & Whitney, Ann. Math. Stat. 18 (1947); Lehmann, *Nonparametrics: Statistical Methods
//! Based on Ranks* (1975), sections 1.2 to 1.4 (the exact distribution with ties: 1.4).

use crate::distribution::normal_cdf;
use crate::{Alternative, Method, Sample, Test, midrank::Midranks};

/// The largest number of values in both samples together for which the null distribution is exact.
pub(crate) const EXACT_VALUES: usize = 60;

/// Tests whether values of the candidate tend to be lower or higher than those of the baseline.
///
/// Exact, ties included, for up to 60 values in total; by the normal approximation beyond, with tie
/// and continuity corrections. The statistic is U of the candidate: the number of pairs in which
/// the candidate is higher, ties counted half.
pub fn rank_sum(baseline: &Sample, candidate: &Sample, alternative: Alternative) -> Test {
    let size = candidate.len();
    if baseline.len() + size <= EXACT_VALUES {
        let ranks = Midranks::of(&[candidate.values(), baseline.values()].concat());
        let doubled_sum: usize = ranks.doubled[..size].iter().sum();
        let statistic = statistic(doubled_sum, size);
        let null = null_distribution(&ranks.doubled, size);
        let at_most: f64 = null[..=doubled_sum].iter().sum();
        let at_least: f64 = null[doubled_sum..].iter().sum();
        return Test { statistic, p: alternative.p(at_most, at_least), method: Method::Exact };
    }
    by_normal(baseline.sorted(), candidate.sorted(), 0.0, alternative)
}
/// Tests samples as [`rank_sum`] does, with `by` added to every value of the candidate.
pub(crate) fn shifted_rank_sum(
    baseline: &Sample,
    candidate: &Sample,
    by: f64,
    alternative: Alternative,
) -> Test {
    if baseline.len() + candidate.len() <= EXACT_VALUES {
        return rank_sum(baseline, &candidate.map_rising(|value| value + by), alternative);
    }
    // Rounding is monotone: sorted values stay sorted.
    by_normal(baseline.sorted(), candidate.sorted(), by, alternative)
}

/// Tests sorted samples, the second one shifted, by the normal approximation.
fn by_normal(baseline: &[f64], candidate: &[f64], by: f64, alternative: Alternative) -> Test {
    let ranks = MergedRanks::of(baseline, candidate, by);
    let size = candidate.len();
    let statistic = statistic(ranks.doubled_sum, size);
    let (first, second) = (baseline.len() as f64, size as f64);
    let mean = first * second / 2.0;
    let deviation = variance(first, second, ranks.tie_loss).sqrt();
    if deviation == 0.0 {
        return Test { statistic, p: 1.0, method: Method::Normal };
    }
    let at_most = normal_cdf((statistic - mean + 0.5) / deviation);
    let at_least = normal_cdf((mean - statistic + 0.5) / deviation);
    Test { statistic, p: alternative.p(at_most, at_least), method: Method::Normal }
}

fn statistic(doubled_sum: usize, size: usize) -> f64 {
    (doubled_sum - size * (size + 1)) as f64 / 2.0
}

/// Sums over the ranks of two samples together, without a list of them.
struct MergedRanks {
    /// Twice the sum of the candidate's ranks.
    doubled_sum: usize,
    /// As in [`Midranks`].
    tie_loss: f64,
}

impl MergedRanks {
    /// Ranks two sorted slices in one pass.
    fn of(mut baseline: &[f64], mut candidate: &[f64], by: f64) -> Self {
        let (mut doubled_sum, mut tie_loss, mut before) = (0, 0.0, 0);
        loop {
            let value = match (baseline.first(), candidate.first()) {
                (Some(first), Some(second)) => first.min(second + by),
                (Some(only), None) => *only,
                (None, Some(only)) => only + by,
                (None, None) => return Self { doubled_sum, tie_loss },
            };
            let own = candidate.iter().take_while(|other| **other + by == value).count();
            let group = baseline.iter().take_while(|other| **other == value).count() + own;
            (baseline, candidate) = (&baseline[group - own..], &candidate[own..]);
            doubled_sum += own * (2 * before + group + 1);
            let size = group as f64;
            tie_loss += size.powi(3) - size;
            before += group;
        }
    }
}

/// Returns the probability of each sum of `chosen` of the weights, with all choices equally likely.
pub(crate) fn null_distribution(weights: &[usize], chosen: usize) -> Vec<f64> {
    let highest: usize = weights.iter().sum();
    let mut ways = vec![vec![0.0; highest + 1]; chosen + 1];
    ways[0][0] = 1.0;
    let mut reached = 0;
    for (seen, weight) in weights.iter().enumerate() {
        reached += weight;
        for count in (1..=chosen.min(seen + 1)).rev() {
            let (fewer, more) = ways.split_at_mut(count);
            let from = &fewer[count - 1][..=reached - weight];
            for (into, ways_without) in more[0][*weight..=reached].iter_mut().zip(from) {
                *into += ways_without;
            }
        }
    }
    let mut chances = ways.swap_remove(chosen);
    let all: f64 = chances.iter().sum();
    chances.iter_mut().for_each(|chance| *chance /= all);
    chances
}

/// Returns the variance of U under the null hypothesis.
pub(crate) fn variance(first: f64, second: f64, tie_loss: f64) -> f64 {
    let all = first + second;
    first * second / 12.0 * (all + 1.0 - tie_loss / (all * (all - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(baseline: &[f64], candidate: &[f64], alternative: Alternative) -> Test {
        rank_sum(&Sample::new(baseline).unwrap(), &Sample::new(candidate).unwrap(), alternative)
    }

    #[test]
    fn separate_samples_of_four_give_one_in_thirty_five() {
        let (low, high) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        let found = test(&low, &high, Alternative::TwoSided);
        assert_eq!((found.statistic, found.method), (16.0, Method::Exact));
        assert!((found.p - 2.0 / 70.0).abs() < 1e-15);
        assert!((test(&low, &high, Alternative::Greater).p - 1.0 / 70.0).abs() < 1e-15);
        assert_eq!(test(&high, &low, Alternative::TwoSided).statistic, 0.0);
    }

    #[test]
    fn equal_values_show_nothing_with_few_and_with_many() {
        assert_eq!(test(&[1.0; 5], &[1.0; 4], Alternative::TwoSided).p, 1.0);
        let many = test(&[1.0; 50], &[1.0; 40], Alternative::Greater);
        assert_eq!((many.p, many.method), (1.0, Method::Normal));
    }

    #[test]
    fn ranks_of_a_merge_are_those_of_all_values_together() {
        let values = |seed: u32| (0..50).map(move |i| f64::from((i * i + seed) % 17) - 8.0);
        let (a, b): (Vec<f64>, Vec<f64>) = (values(1).collect(), values(5).chain([-0.0]).collect());
        let all = Midranks::of(&[&b[..], &a].concat());
        let [a, b] = [a, b].map(|values| Sample::new(values).unwrap());
        let merged = MergedRanks::of(a.sorted(), b.sorted(), 0.0);
        assert_eq!(merged.doubled_sum, all.doubled[..b.len()].iter().sum::<usize>());
        assert_eq!(merged.tie_loss, all.tie_loss);
    }

    #[test]
    fn a_shift_is_as_good_as_shifted_values() {
        let values = |seed: u32| (0..50).map(move |i| f64::from((i * i + seed) % 17) / 8.0);
        let [a, b] = [1, 5].map(|seed| Sample::new(values(seed).collect::<Vec<_>>()).unwrap());
        let few = |sample: &Sample| Sample::new(&sample.values()[..9]).unwrap();
        for (a, b) in [(&a, &b), (&few(&a), &few(&b))] {
            let shifted = b.map_rising(|value| value + 0.25);
            let expected = rank_sum(a, &shifted, Alternative::Greater);
            assert_eq!(shifted_rank_sum(a, b, 0.25, Alternative::Greater), expected);
        }
    }

    #[test]
    fn exchanging_the_samples_exchanges_the_sides() {
        let (a, b) = ([1.0, 3.0, 3.0, 9.0, 4.0], [2.0, 3.0, 8.0]);
        let forth = test(&a, &b, Alternative::Less).p;
        assert!((forth - test(&b, &a, Alternative::Greater).p).abs() < 1e-14);
    }
}
