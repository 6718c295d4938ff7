//! Comparison of two groups of runs, with the run as the unit.
//!
//! The variation of a machine within a run says little about the next run: memory is placed
//! elsewhere, neighbours have changed. Each figure therefore has one value per run, and the
//! variance is that between runs. A few runs estimate a variance poorly. Many figures of the same
//! machine, each with its own variance, show together how much such variances differ, and each is
//! shrunk towards the common one accordingly (empirical Bayes: Smyth, Stat. Appl. Genet. Mol. Biol.
//! 3, 2004, "moderated t"). If variances differ widely, as with heavy tails, they are shrunk
//! little.

use statrs::function::gamma::digamma;

use crate::distribution::{student_quantile, student_tail};
use crate::{Confidence, Interval};

/// The minimum number of variances that shows how variances differ.
const LEAST_VARIANCES: usize = 2;
/// Rounds of the search for the least effect that is shown.
const LEAST_ROUNDS: usize = 40;
/// The minimum variance, as a share of the median variance: a coarse clock gives smaller ones.
const LEAST_SHARE: f64 = 1e-5;

/// The difference between two groups of runs in one figure, on the scale of its values
/// (logarithms).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunShift {
    /// Mean of the candidates minus mean of the baselines.
    pub effect: f64,
    /// The variance of one run; 0 if no group has two runs.
    pub variance: f64,
    /// The factor from the variance of a run to that of the effect: `1/n + 1/m`.
    weight: f64,
    /// Degrees of freedom of the variance; 0 if no group has two runs.
    pub freedom: f64,
}

impl RunShift {
    /// Returns the shift between two groups of values, one value per run; `None` if a group is
    /// empty or a value is not finite.
    pub fn of(baseline: &[f64], candidate: &[f64]) -> Option<Self> {
        let finite = baseline.iter().chain(candidate).all(|value| value.is_finite());
        if baseline.is_empty() || candidate.is_empty() || !finite {
            return None;
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let squares = |values: &[f64]| {
            let mean = mean(values);
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
        };
        let freedom = (baseline.len() + candidate.len() - 2) as f64;
        let sum = squares(baseline) + squares(candidate);
        Some(Self {
            effect: mean(candidate) - mean(baseline),
            variance: if freedom > 0.0 { sum / freedom } else { 0.0 },
            weight: 1.0 / baseline.len() as f64 + 1.0 / candidate.len() as f64,
            freedom,
        })
    }

    /// Returns the shift of a sum of two independent parts, with Satterthwaite's degrees of freedom
    /// (Biometrics Bulletin 2, 1946).
    pub fn plus(&self, other: &Self) -> Self {
        let errors = [self, other].map(|part| part.variance * part.weight);
        let error: f64 = errors.iter().sum();
        let parts = errors[0].powi(2) / self.freedom + errors[1].powi(2) / other.freedom;
        let least = self.freedom.min(other.freedom);
        let freedom = if parts > 0.0 { error.powi(2) / parts } else { least };
        let variance = self.variance + other.variance;
        let weight = if variance > 0.0 { error / variance } else { self.weight };
        Self { effect: self.effect + other.effect, variance, weight, freedom }
    }

    /// Returns the shift with its variance multiplied by `factor`.
    pub fn widened(&self, factor: f64) -> Self {
        Self { variance: factor * self.variance, ..*self }
    }

    /// Returns the standard deviation of one run.
    pub fn spread(&self) -> f64 {
        self.variance.sqrt()
    }

    /// Returns the interval of the effect; `None` if no group has two runs.
    pub fn interval(&self, confidence: Confidence) -> Option<Interval> {
        if self.freedom <= 0.0 {
            return None;
        }
        let reach = student_quantile(1.0 - confidence.alpha() / 2.0, self.freedom) * self.error();
        Some(Interval { lo: self.effect - reach, hi: self.effect + reach })
    }

    /// Returns the probability of such an effect if the true one were at most `bound` either way:
    /// both tails at the bound, which at 0 is the usual test. 1 if no group has two runs.
    pub fn p_beyond(&self, bound: f64) -> f64 {
        let effect = self.effect.abs();
        (self.tail(effect - bound) + self.tail(effect + bound)).min(1.0)
    }

    /// Returns the probability of such an effect if the true one were `bound` or more to either
    /// side: two one-sided tests. 1 if no group has two runs.
    pub fn p_within(&self, bound: f64) -> f64 {
        self.tail(bound - self.effect.abs())
    }

    /// Returns the smallest effect with a probability of at most `p` beyond `bound`; `None` if no
    /// group has two values.
    pub fn least_shown(&self, bound: f64, p: f64) -> Option<f64> {
        if self.freedom <= 0.0 {
            return None;
        }
        let is_shown = |effect: f64| Self { effect, ..*self }.p_beyond(bound) <= p;
        let (mut low, mut high) = (bound, bound + self.error().max(f64::MIN_POSITIVE));
        for _ in 0..LEAST_ROUNDS {
            if is_shown(high) {
                break;
            }
            (low, high) = (high, bound + 2.0 * (high - bound));
        }
        for _ in 0..LEAST_ROUNDS {
            let middle = f64::midpoint(low, high);
            if is_shown(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }

    /// Returns the standard error of the effect.
    fn error(&self) -> f64 {
        (self.variance * self.weight).sqrt()
    }

    /// Returns the probability of a deviation of more than `distance` to one side.
    fn tail(&self, distance: f64) -> f64 {
        if self.freedom <= 0.0 {
            return 1.0;
        }
        let t = distance / self.error();
        match t {
            // The runs do not vary at all, as in virtual time: the bound alone decides.
            t if t.is_nan() => 1.0,
            t if t.is_infinite() => f64::from(u8::from(t < 0.0)),
            t if t > 0.0 => student_tail(t, self.freedom),
            t => 1.0 - student_tail(-t, self.freedom),
        }
    }
}

/// Shrinks the variances of the shifts of one machine towards their common value.
pub fn moderate(shifts: &mut [RunShift]) {
    let with_variance = || shifts.iter().filter(|shift| shift.freedom > 0.0);
    let mut variances: Vec<f64> = with_variance().map(|shift| shift.variance).collect();
    variances.sort_by(f64::total_cmp);
    let Some(&median) = variances.get(variances.len() / 2) else { return };
    if variances.len() < LEAST_VARIANCES || median <= 0.0 {
        return;
    }
    let count = variances.len() as f64;
    let logs: Vec<(f64, f64)> = with_variance()
        .map(|shift| {
            let half = shift.freedom / 2.0;
            let log = shift.variance.max(LEAST_SHARE * median).ln();
            (log - digamma(half) + half.ln(), trigamma(half))
        })
        .collect();
    let mean = logs.iter().map(|log| log.0).sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|log| (log.0 - mean).powi(2)).sum();
    let chance = logs.iter().map(|log| log.1).sum::<f64>() / count;
    let excess = squares / (count - 1.0) - chance;
    // All figures together have no more degrees of freedom than their runs provided.
    let most: f64 = with_variance().map(|shift| shift.freedom).sum();
    let (freedom, common) = if excess > 0.0 {
        let freedom = 2.0 * trigamma_inverse(excess);
        let half = freedom / 2.0;
        (freedom, (mean + digamma(half) - half.ln()).exp())
    } else {
        (f64::INFINITY, mean.exp())
    };
    for shift in shifts.iter_mut().filter(|shift| shift.freedom > 0.0) {
        let weight = (shift.freedom / (freedom + shift.freedom)).clamp(0.0, 1.0);
        shift.variance = common * (1.0 - weight) + shift.variance * weight;
        shift.freedom = (shift.freedom + freedom).min(most);
    }
}

/// Returns the derivative of the digamma function, by recurrence and the asymptotic series
/// (Abramowitz & Stegun 6.4.6 and 6.4.12).
fn trigamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 12.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    let series = 1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0));
    sum + inverse + square / 2.0 + inverse * square * series
}

/// Returns the inverse of [`trigamma`], by bisection of the exponent.
fn trigamma_inverse(y: f64) -> f64 {
    let (mut low, mut high) = (-20.0_f64, 20.0_f64);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if trigamma(middle.exp()) > y { low = middle } else { high = middle }
    }
    (0.5 * (low + high)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shift(baseline: &[f64], candidate: &[f64]) -> RunShift {
        RunShift::of(baseline, candidate).unwrap()
    }

    #[test]
    fn two_groups_agree_with_students_test() {
        // Means 2 and 5, pooled variance 1, two and two: t = 3 / sqrt(2/3) = 3.674 of 4.
        let found = shift(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]);
        assert_eq!((found.effect, found.variance, found.freedom), (3.0, 1.0, 4.0));
        assert!((found.p_beyond(0.0) - 0.021_311_641_128_756_727).abs() < 1e-12);
        let interval = found.interval(Confidence::P95).unwrap();
        assert!((interval.lo - 0.733_041).abs() < 1e-5, "{interval:?}");
    }

    #[test]
    fn the_least_effect_that_is_shown_has_the_probability_asked_for() {
        let found = shift(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]);
        let least = found.least_shown(0.5, 0.01).unwrap();
        let at = RunShift { effect: least, ..found };
        assert!((at.p_beyond(0.5) - 0.01).abs() < 1e-6, "{least}");
        assert_eq!(shift(&[1.0], &[2.0]).least_shown(0.5, 0.01), None);
    }

    #[test]
    fn a_margin_is_taken_from_the_effect() {
        let found = shift(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]);
        assert!(found.p_beyond(1.0) > found.p_beyond(0.0));
        assert!(found.p_within(6.0) < 0.02 && found.p_within(3.0) == 0.5);
    }

    #[test]
    fn one_run_per_side_gives_no_interval() {
        let found = shift(&[1.0], &[9.0]);
        assert_eq!((found.effect, found.interval(Confidence::P95)), (8.0, None));
        assert_eq!((found.p_beyond(0.0), found.p_within(100.0)), (1.0, 1.0));
        assert!(RunShift::of(&[], &[1.0]).is_none());
        assert!(RunShift::of(&[f64::NAN], &[1.0]).is_none());
    }

    #[test]
    fn runs_that_do_not_vary_are_judged_by_the_bound() {
        let found = shift(&[1.0, 1.0], &[1.5, 1.5]);
        assert_eq!((found.p_beyond(0.4), found.p_beyond(0.6)), (0.0, 1.0));
        assert_eq!((found.p_within(0.4), found.p_within(0.6)), (1.0, 0.0));
    }

    #[test]
    fn trigamma_is_that_of_the_tables() {
        let square = std::f64::consts::PI.powi(2);
        assert!((trigamma(1.0) - square / 6.0).abs() < 1e-12);
        assert!((trigamma(0.5) - square / 2.0).abs() < 1e-12);
        assert!((trigamma_inverse(trigamma(3.7)) - 3.7).abs() < 1e-9);
    }

    #[test]
    fn similar_variances_are_pooled_and_different_ones_are_not() {
        let near = |spread: f64| shift(&[-spread, 0.0, spread], &[0.1]);
        let mut alike = [near(1.0), near(1.1), near(0.9), near(1.05)];
        moderate(&mut alike);
        assert!(alike.iter().all(|shift| shift.freedom == 8.0), "{alike:?}");
        assert!((alike[0].variance - alike[2].variance).abs() < 1e-12);
        let mut apart = [near(1.0), near(100.0), near(0.01), near(3.0)];
        let before = apart;
        moderate(&mut apart);
        for (after, before) in apart.iter().zip(before) {
            assert!(after.freedom < 3.0 && after.variance < 2.0 * before.variance.max(0.01));
        }
    }
}
