//! Two samples compared.

use numalab_stats::{
    Comparison, Confidence, Criteria, Direction, Error, Estimate, Extreme, Interval, Margin, Order,
    Sample, Verdict, both, extremes, ratio_of_means,
};

use crate::shape::{Tail, TwoModes};

/// Multiple of a sample's median beyond which a value is called a stall.
pub(super) const STALL: f64 = 1.5;

/// The least value of a time or a rate, as a divisor of the median of its sample.
const FAR_FROM_ZERO: f64 = 5.0;

/// Two unpaired samples with everything that comparing them shows.
#[derive(Clone, Debug)]
pub struct SampleComparison {
    /// The names of the samples, such as a file or a pattern's label.
    pub names: [String; 2],
    /// The unit of the values; empty if unknown.
    pub unit: String,
    /// The direction in which values improve.
    pub direction: Direction,
    /// The equivalence margin: smaller changes count as none.
    pub margin: Margin,
    pub baseline: Sample,
    pub candidate: Sample,
    /// The comparison, corrected for correlation between successive values.
    pub found: Comparison,
    /// The correlation and drift of the values.
    pub order: Order,
    /// Percentiles of the worse tail for which both samples are large enough.
    pub extremes: Vec<Extreme>,
    /// The modes of baseline and candidate, if either has two.
    pub modes: [Option<TwoModes>; 2],
}

impl SampleComparison {
    /// Compares two unpaired samples, each with its values in the order taken.
    ///
    /// # Errors
    /// [`Error`] if a sample is empty or has a value that is not finite, or if the margin is
    /// invalid.
    pub fn of(
        names: [String; 2],
        values: [Vec<f64>; 2],
        unit: String,
        direction: Direction,
        margin_percent: f64,
    ) -> Result<Self, Error> {
        let [baseline, candidate] = values;
        let all = baseline.len() + candidate.len();
        let (baseline, candidate) = both(all, || Sample::new(baseline), || Sample::new(candidate));
        let (baseline, candidate) = (baseline?, candidate?);
        let margin = Margin::percent(margin_percent)?;
        let criteria = Criteria { margin, ..Criteria::new(direction) };
        let (found, order) = numalab_stats::compare_in_order(&baseline, &candidate, &criteria);
        let worth = order.effective_size / all as f64;
        let (extremes, modes) = both(
            all,
            || extremes(&baseline, &candidate, direction, worth),
            || [&baseline, &candidate].map(|sample| TwoModes::of(sample, worth, margin)),
        );
        Ok(Self {
            names,
            unit,
            direction,
            margin,
            baseline,
            candidate,
            found,
            order,
            extremes,
            modes,
        })
    }

    /// Returns the improvement of the candidate's mean in percent, as commonly published: for times
    /// `mean(baseline) / mean(candidate) - 1`, for rates the inverse ratio. The interval is
    /// Fieller's; `None` if it is unbounded, or if a mean is not above zero.
    pub fn gain_of_means(&self) -> Option<Estimate> {
        let (below, above) = match self.direction {
            Direction::LowerIsBetter => (&self.candidate, &self.baseline),
            Direction::HigherIsBetter => (&self.baseline, &self.candidate),
        };
        if below.mean().min(above.mean()) <= 0.0 {
            return None;
        }
        let ratio = ratio_of_means(below, above, Confidence::P95).ok()?;
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let interval = Interval { lo: percent(ratio.interval.lo), hi: percent(ratio.interval.hi) };
        Some(Estimate { value: percent(ratio.value), interval, ..ratio })
    }

    /// Returns the percentile at which the tails differ.
    pub fn tail(&self) -> Option<Tail> {
        Tail::of(&self.extremes, self.direction, self.margin)
    }

    /// Counts the values of each sample that are worse than one and a half times its median: they may be
    /// too few for any percentile.
    pub fn stalls(&self) -> [usize; 2] {
        [&self.baseline, &self.candidate].map(|sample| {
            let is_stall = |value: &&f64| self.times_median(sample, **value) > STALL;
            sample.values().iter().filter(is_stall).count()
        })
    }

    /// Returns the ratio of the worst value to its sample's median.
    pub fn worst(&self) -> f64 {
        let worst_of = |sample: &Sample| {
            let times = sample.values().iter().map(|value| self.times_median(sample, *value));
            times.filter(|times| times.is_finite()).fold(1.0, f64::max)
        };
        worst_of(&self.baseline).max(worst_of(&self.candidate))
    }

    /// Counts the values of each sample that are zero or less among others far above: a script often
    /// writes 0 or -1 for a run that failed, and the lowest time is the best one. Samples of differences
    /// have values near zero too.
    pub fn not_positive(&self) -> [usize; 2] {
        [&self.baseline, &self.candidate].map(|sample| {
            let far = sample.median() / FAR_FROM_ZERO;
            let below = sample.values().iter().filter(|value| **value <= 0.0).count();
            let is_alone = sample.values().iter().all(|value| *value <= 0.0 || *value > far);
            if sample.median() > 0.0 && is_alone { below } else { 0 }
        })
    }

    fn times_median(&self, sample: &Sample, value: f64) -> f64 {
        match self.direction {
            Direction::LowerIsBetter => value / sample.median(),
            Direction::HigherIsBetter => sample.median() / value,
        }
    }

    /// Reports whether the candidate's tail is shown to be worse.
    pub fn is_tail_worse(&self) -> bool {
        self.tail().as_ref().is_some_and(Tail::is_shown_worse)
    }

    /// Returns `true` if the candidate is worse by more than the margin.
    pub fn is_worse(&self) -> bool {
        self.found.verdict == Verdict::Worse && self.found.is_beyond_margin()
    }
}
