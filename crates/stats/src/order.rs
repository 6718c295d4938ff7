//! Evidence from the order of the values of two samples: trend, and resemblance of neighbours.
//!
//! Tests of two samples assume independent values. If each value resembles the one before it, they
//! find differences that do not exist: with a lag-1 correlation of 0.3, 0.54, 0.7 and 20 values a
//! side in 14, 27 and 41 % of comparisons instead of 5. The variance of a mean of `n` such values
//! is that of `n / tau`, with `tau = (1 + r) / (1 - r)` for a process of first order (Bayley &
//! Hammersley, J. Roy. Stat. Soc. Suppl. 8, 1946). We estimate `r` from the ranks within both
//! samples together and correct its bias (Kendall, Biometrika 41, 1954). Where it is likely to be
//! above zero, we divide standardised distances by `sqrt(tau)` and read them from Student's t with
//! half of the remaining degrees of freedom, because `tau` itself is an estimate.
//!
//! A machine that changes its state now and then, or that walks, remembers for longer than its
//! neighbours show. A claim therefore needs a second test, of the means of four consecutive parts
//! of each sample by Student's t (batch means: Conway, Management Science 10, 1963): parts contain
//! what is shorter than a quarter of a sample. No test of two samples sees what lasts as long as a
//! sample. Below ten values a side none of this can be seen, and nothing is claimed. Error and
//! power are simulated in `tests/order.rs`.

use crate::comparison::Findings;
use crate::distribution::{normal_cdf, normal_quantile, student_cdf, student_quantile};
use crate::midrank::Midranks;
use crate::{
    Confidence, Equivalence, Estimate, Ground, Interval, RunShift, Sample, Test, both, quantile,
};

/// The number of consecutive parts of a sample.
const PARTS: usize = 4;
/// The factor on the variance of parts: those of a slow process still resemble their neighbours (by
/// simulation).
const PARTS_WIDER: f64 = 1.1;
/// The minimum number of values on each side for a claim.
const FEWEST_IN_ORDER: usize = 10;
/// Values count as at most this number of quartile distances from the median, so that a stall does
/// not hide a difference between parts.
const TAIL_QUARTILES: f64 = 4.0;

/// The level at which drift must be shown, for both samples together, before a comparison is
/// withheld.
const DRIFT_LEVEL: f64 = 0.01;
/// The minimum number of values for which a trend can be distinguished from chance.
const FEWEST_FOR_TREND: usize = 7;
/// The number of standard errors above zero from which a correlation of neighbours is allowed for;
/// one independent pair of samples in five exceeds it.
const LEAST_SCORE: f64 = 0.84;
/// The largest correlation: a higher one cannot be distinguished from a trend.
const MOST_CORRELATION: f64 = 0.95;
/// The minimum number of independent values for an interval: fewer leave no degree of freedom.
const FEWEST_FOR_INTERVAL: f64 = 2.0 + TAU_FREEDOM;
/// The divisor of the degrees of freedom that accounts for estimating `tau` (by simulation).
const TAU_FREEDOM: f64 = 2.0;

/// Evidence from the order of the values of two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Order {
    /// The lag-1 rank correlation within both samples that was allowed for, 0 to 0.95; 0 if none is
    /// likely.
    pub autocorrelation: f64,
    /// The number of independent values that carry the same information as those of both sides
    /// together.
    pub effective_size: f64,
    /// The trends of baseline and candidate.
    pub trends: [Trend; 2],
    /// The difference between the means of four consecutive parts of each side, of logarithms if all
    /// values have one; `None` for fewer than ten values on a side.
    pub parts: Option<RunShift>,
}

/// A trend of values in the order taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Spearman's rank correlation with the order, -1 to 1.
    pub correlation: f64,
    /// The variance of this correlation without a trend; infinite for fewer than seven values.
    pub variance: f64,
    /// The two-sided p-value, by Student's t; 1 for fewer than seven values.
    pub p: f64,
    /// The median of the last third minus that of the first, in percent of the latter; `None` if
    /// that is zero.
    pub percent: Option<f64>,
}

impl Trend {
    /// Returns true if the values drift: at 1 %, allowing for two samples (Bonferroni).
    pub fn is_shown(&self) -> bool {
        2.0 * self.p <= DRIFT_LEVEL
    }

    /// Finds the trend of a sample with these sums over its ranks.
    fn of(sample: &Sample, ranks: &RankSums) -> Self {
        let spread = (ranks.power * ranks.order_power).sqrt();
        let correlation = if spread > 0.0 { ranks.with_order / spread } else { 0.0 };
        let percent = thirds_percent(sample.values());
        if sample.len() < FEWEST_FOR_TREND {
            return Self { correlation, variance: f64::INFINITY, p: 1.0, percent };
        }
        let freedom = (sample.len() - 2) as f64;
        let unexplained = (1.0 - correlation * correlation).max(0.0);
        let p = 2.0 * student_cdf(-correlation.abs() * (freedom / unexplained).sqrt(), freedom);
        Self { correlation, variance: 1.0 / (freedom + 1.0), p, percent }
    }
}

impl Order {
    /// Measures trend and autocorrelation of two samples.
    pub fn of(baseline: &Sample, candidate: &Sample) -> Self {
        let seen = |sample: &Sample| {
            let ranks = RankSums::of(sample);
            (ranks.with_next, ranks.power, Trend::of(sample, &ranks))
        };
        let values = baseline.len() + candidate.len();
        let (first, second) = both(values, || seen(baseline), || seen(candidate));
        let (product, power) = (first.0 + second.0, first.1 + second.1);
        let trends = [first.2, second.2];
        let parts = parts(baseline, candidate);
        let all = values as f64;
        let raw = if power > 0.0 { product / power } else { 0.0 };
        let a_side = all / 2.0;
        if (raw + 1.0 / a_side) * all.sqrt() <= LEAST_SCORE || power == 0.0 {
            return Self { autocorrelation: 0.0, effective_size: all, trends, parts };
        }
        let unbiased = raw + (1.0 + 3.0 * raw.max(0.0)) / a_side;
        let autocorrelation = unbiased.clamp(0.0, MOST_CORRELATION);
        let effective_size = all * (1.0 - autocorrelation) / (1.0 + autocorrelation);
        Self { autocorrelation, effective_size, trends, parts }
    }

    /// Returns true if either sample drifts, or both together do in one direction.
    pub fn drifts(&self) -> bool {
        let both = || {
            let sum: f64 = self.trends.iter().map(|trend| trend.correlation).sum();
            let variance: f64 = self.trends.iter().map(|trend| trend.variance).sum();
            2.0 * normal_cdf(-sum.abs() / variance.sqrt()) <= DRIFT_LEVEL
        };
        self.trends.iter().any(Trend::is_shown) || both()
    }

    /// Corrects tests and interval of findings that assumed independent values for values in this
    /// order. `bound` is the margin on the scale of the effect.
    pub(crate) fn allow(&self, findings: Findings, bound: f64, confidence: Confidence) -> Findings {
        if findings.ground == Ground::NoVariance {
            return findings;
        }
        let ground = match (findings.ground, self.parts) {
            (Ground::Tested | Ground::TooFew { .. }, None) => {
                Ground::TooFewInOrder { needed: FEWEST_IN_ORDER }
            }
            (Ground::Tested, _) if self.drifts() => Ground::Drifts,
            (ground, _) => ground,
        };
        let findings = self.confirmed(Findings { ground, ..findings }, bound);
        if self.autocorrelation == 0.0 {
            return findings;
        }
        let quantile = 1.0 - confidence.alpha() / 2.0;
        let wider = self.tau().sqrt() * student_quantile(quantile, self.freedom())
            / normal_quantile(quantile);
        let effect = findings.effect;
        let enough = |_: &Estimate| self.effective_size >= FEWEST_FOR_INTERVAL;
        let interval = findings.interval.filter(enough).map(|mut estimate| {
            let Interval { lo, hi } = estimate.interval;
            estimate.interval =
                Interval { lo: effect - wider * (effect - lo), hi: effect + wider * (hi - effect) };
            estimate
        });
        let p = (2.0 * self.p(findings.difference.p / 2.0)).min(1.0);
        let difference = Test { p: p.max(findings.difference.p), ..findings.difference };
        let worse = |p: f64| self.p(p).max(p);
        let equivalence = Equivalence {
            p_not_below: worse(findings.equivalence.p_not_below),
            p_not_above: worse(findings.equivalence.p_not_above),
        };
        Findings { interval, difference, equivalence, ..findings }
    }

    /// Raises p-values to those of the parts of the samples.
    fn confirmed(&self, findings: Findings, bound: f64) -> Findings {
        let Some(parts) = self.parts else { return findings };
        let p = findings.difference.p.max(parts.p_beyond(0.0));
        let within = parts.p_within(bound);
        Findings {
            difference: Test { p, ..findings.difference },
            equivalence: Equivalence {
                p_not_below: findings.equivalence.p_not_below.max(within),
                p_not_above: findings.equivalence.p_not_above.max(within),
            },
            ..findings
        }
    }

    /// Corrects a one-sided p-value of independent values for values in this order.
    fn p(&self, independent: f64) -> f64 {
        let clamped = independent.clamp(1e-300, 1.0 - f64::EPSILON);
        let score = normal_quantile(clamped) / self.tau().sqrt();
        student_cdf(score, self.freedom())
    }

    fn tau(&self) -> f64 {
        (1.0 + self.autocorrelation) / (1.0 - self.autocorrelation)
    }

    fn freedom(&self) -> f64 {
        ((self.effective_size - 2.0) / TAU_FREEDOM).max(1.0)
    }
}

/// Returns the difference between the means of the parts of both samples, without their tails.
fn parts(baseline: &Sample, candidate: &Sample) -> Option<RunShift> {
    let samples = [baseline, candidate];
    if samples.iter().any(|sample| sample.len() < FEWEST_IN_ORDER) {
        return None;
    }
    let has_logs = samples.iter().all(|sample| sample.min() > 0.0);
    let means = |sample: &Sample| {
        let [low, middle, high] = [25.0, 50.0, 75.0].map(|percent| sample.percentile(percent));
        let least = middle - TAIL_QUARTILES * (middle - low);
        let most = middle + TAIL_QUARTILES * (high - middle);
        let inner = |value: &f64| {
            let value = value.clamp(least, most);
            if has_logs { value.max(sample.min()).ln() } else { value }
        };
        let part = |at: usize| {
            let ends = [at, at + 1].map(|end| end * sample.len() / PARTS);
            let values = &sample.values()[ends[0]..ends[1]];
            values.iter().map(inner).sum::<f64>() / values.len() as f64
        };
        (0..PARTS).map(part).collect::<Vec<f64>>()
    };
    let values = baseline.len() + candidate.len();
    let (first, second) = both(values, || means(baseline), || means(candidate));
    RunShift::of(&first, &second).map(|shift| shift.widened(PARTS_WIDER))
}

/// Sums over the ranks of a sample's values and over their places in the order taken, each minus its
/// mean.
#[derive(Default)]
struct RankSums {
    /// Squares of ranks.
    power: f64,
    /// Products of a rank with the next one.
    with_next: f64,
    /// Squares of places.
    order_power: f64,
    /// Products of a rank with its place.
    with_order: f64,
}

impl RankSums {
    fn of(sample: &Sample) -> Self {
        let middle = (sample.len() - 1) as f64 / 2.0;
        let (mut sums, mut before) = (Self::default(), 0.0);
        for (index, doubled) in Midranks::of_sample(sample).doubled.iter().enumerate() {
            let rank = *doubled as f64 / 2.0 - 1.0 - middle;
            let place = index as f64 - middle;
            sums.power += rank * rank;
            sums.with_next += before * rank;
            sums.order_power += place * place;
            sums.with_order += place * rank;
            before = rank;
        }
        sums
    }
}

fn thirds_percent(values: &[f64]) -> Option<f64> {
    let third = values.len().div_ceil(3);
    let median = |of: &[f64]| quantile::median_of(of.to_vec());
    let (first, last) = (median(&values[..third]), median(&values[values.len() - third..]));
    (first != 0.0).then(|| 100.0 * (last - first) / first.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_places_are_counted_from_their_mean() {
        let ranks = RankSums::of(&sample([3.0, 1.0, 2.0]));
        // Ranks 1, -1, 0 in places -1, 0, 1.
        assert_eq!([ranks.power, ranks.with_next, ranks.with_order], [2.0, -1.0, -1.0]);
    }

    fn sample(values: impl IntoIterator<Item = f64>) -> Sample {
        Sample::new(values.into_iter().collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn alternating_values_count_in_full_and_have_no_trend() {
        let values = sample((0..20).map(|index| f64::from(index * 7 % 20 % 2 * 10 + index % 3)));
        let order = Order::of(&values, &values);
        assert_eq!((order.autocorrelation, order.effective_size), (0.0, 40.0));
        assert!(!order.drifts(), "{order:?}");
    }

    #[test]
    fn rising_values_drift_by_the_difference_between_their_thirds() {
        let order = Order::of(&sample((0..9).map(|i| 100.0 + f64::from(i))), &sample([7.0; 9]));
        assert!(order.trends[0].is_shown() && !order.trends[1].is_shown(), "{order:?}");
        assert_eq!(order.trends[0].correlation, 1.0);
        assert!((order.trends[0].percent.unwrap() - 100.0 * 6.0 / 101.0).abs() < 1e-9);
        assert_eq!(order.trends[1].correlation, 0.0);
    }

    #[test]
    fn a_p_value_of_independent_values_grows_where_neighbours_resemble_each_other() {
        let trends = Order::of(&sample([1.0]), &sample([1.0])).trends;
        let order = Order { autocorrelation: 0.5, effective_size: 11.0, trends, parts: None };
        // -1.96 / sqrt(3) = -1.1316 in Student's t with 4.5 degrees of freedom.
        assert!((order.p(0.025) - 0.157).abs() < 3e-3, "{}", order.p(0.025));
    }
}
