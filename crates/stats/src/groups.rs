//! Groups of values in one dimension, where a few values may be far from all groups.
//!
//! Sorted values are divided where the sum of absolute deviations from the medians of the groups is
//! smallest (k-medians, exact by dynamic programming: Wang and Song, R Journal 3/2, 2011), and the
//! standard deviation within groups is 1.4826 times the median of these deviations (Huber, "Robust
//! Statistics", 1981): sums of squares would take a few faulty values for the spread of a group. A
//! few values far from the others make separate groups, which are too small to be kinds.

use crate::{Sample, median};

/// The minimum share of the values in a group that is a kind.
const LEAST_SHARE: f64 = 1.0 / 6.0;
/// The largest number of groups, those of a few far values included.
const MOST_GROUPS: usize = 6;
/// The minimum number of values for each group that is tried: fewer form groups by chance.
const VALUES_OF_GROUP: usize = 8;
/// The least number of values of which two groups are tried.
const FEWEST_OF_TWO: usize = 10;
/// The share that each of those two groups exceeds: up to two fifths can be found as outliers
/// ([`Population`](crate::Population)), which says more of them.
const SHARE_OF_TWO: f64 = 0.4;
/// The distance from which medians of neighbouring groups are apart, in standard deviations within
/// groups. The halves of one normal group are 2.3 apart, those of an even one 2.8; of 2,000 simulated
/// samples of 16 to 200 values of one normal or heavy-tailed group at most .4 % were divided, of an
/// even one 1.3 %.
pub const GROUPS_APART: f64 = 3.4;
/// The addition to this distance, divided by the number of values.
const APART_OF_FEW: f64 = 100.0;
/// A normal standard deviation, as a multiple of the median absolute deviation.
const NORMAL_MAD: f64 = 1.4826;
/// The largest number of values that are divided: of more, evenly spaced ranks are taken.
const MOST_VALUES: usize = 400;

/// Returns the values between groups, ascending; none unless there are two groups of a sixth of the
/// values or more (of 10 to 15 values, of more than two fifths) that are `apart`, such as
/// [`GROUPS_APART`]. Values between two such groups that
/// belong to neither are divided at the middle.
pub fn groups(values: &[f64], apart: f64) -> Vec<f64> {
    let Ok(sample) = Sample::new(values) else { return Vec::new() };
    let count = sample.len();
    let step = count.div_ceil(MOST_VALUES);
    let sorted: Vec<f64> = sample.sorted().iter().step_by(step).copied().collect();
    let apart = apart + APART_OF_FEW / count as f64;
    let two = if count >= FEWEST_OF_TWO { 2 } else { 0 };
    let most = MOST_GROUPS.min(count / VALUES_OF_GROUP).max(two);
    let partitions = partitions(&sorted, most);
    let finest = partitions.iter().rev().find(|ends| separation(&sorted, ends) > apart);
    finest.map_or_else(Vec::new, |ends| boundaries(&sorted, ends))
}

/// Returns the best division into 2, 3, ... `most` groups: the end of each group.
fn partitions(sorted: &[f64], most: usize) -> Vec<Vec<usize>> {
    let count = sorted.len();
    let mut sums = vec![0.0];
    for value in sorted {
        sums.push(sums[sums.len() - 1] + value);
    }
    // In a sorted group the absolute deviations are its upper half less its lower half.
    let within = |from: usize, to: usize| {
        let half = (to - from) / 2;
        (sums[to] - sums[to - half]) - (sums[from + half] - sums[from])
    };
    let mut least: Vec<f64> = (0..=count).map(|end| within(0, end)).collect();
    // For each number of groups, the start of the last group by its end.
    let mut starts: Vec<Vec<usize>> = Vec::new();
    let mut partitions = Vec::new();
    for groups in 2..=most {
        let best = |end: usize| {
            let sum = |start: usize| (least[start] + within(start, end), start);
            (groups - 1..end).map(sum).min_by(|a, b| a.0.total_cmp(&b.0))
        };
        let (sums_to, starts_to) =
            (0..=count).map(|end| best(end).unwrap_or((f64::INFINITY, 0))).unzip();
        least = sums_to;
        starts.push(starts_to);
        let mut ends = vec![count];
        for starts in starts.iter().rev() {
            ends.push(starts[ends[ends.len() - 1]]);
        }
        ends.reverse();
        partitions.push(ends);
    }
    partitions
}

/// Returns the least distance of neighbouring medians, in standard deviations within groups.
fn separation(sorted: &[f64], ends: &[usize]) -> f64 {
    let (mut medians, mut deviations) = (Vec::new(), Vec::new());
    for group in spans(ends).map(|(from, to)| &sorted[from..to]) {
        let Some(centre) = median(group) else { return 0.0 };
        medians.push(centre);
        deviations.extend(group.iter().map(|value| (value - centre).abs()));
    }
    let Some(deviation) = median(&deviations) else { return 0.0 };
    let distances = medians.windows(2).map(|pair| pair[1] - pair[0]);
    let least = distances.fold(f64::INFINITY, f64::min);
    if least > 0.0 { least / (NORMAL_MAD * deviation) } else { 0.0 }
}

/// Returns the middles between groups that are kinds.
fn boundaries(sorted: &[f64], ends: &[usize]) -> Vec<f64> {
    let is_kind = |(from, to): &(usize, usize)| {
        let share = (to - from) as f64 / sorted.len() as f64;
        if sorted.len() < 2 * VALUES_OF_GROUP { share > SHARE_OF_TWO } else { share >= LEAST_SHARE }
    };
    let kinds: Vec<(usize, usize)> = spans(ends).filter(is_kind).collect();
    kinds.windows(2).map(|pair| 0.5 * (sorted[pair[0].1 - 1] + sorted[pair[1].0])).collect()
}

fn spans(ends: &[usize]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends.iter().copied())
}
