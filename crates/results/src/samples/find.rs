//! Two samples set side by side, and published figures recomputed.

mod published;

use numalab_stats::{
    Comparison, Confidence, Criteria, Direction, Error, Estimate, Extreme, Interval, Margin, Order,
    Sample, Verdict, extremes, ratio_of_means,
};

pub use published::{Published, PublishedError, PublishedRow};

/// Far ends that reach this much farther, in percent, are named even where chance could have made
/// them so.
const FAR_PERCENT: f64 = 100.0;

/// Two samples that were taken apart from each other, and what there is to say about them.
#[derive(Clone, Debug)]
pub struct SampleComparison {
    /// What the values are called: a file, the label of a pattern.
    pub names: [String; 2],
    /// The unit of the values, if it is known.
    pub unit: String,
    /// Which way is better.
    pub direction: Direction,
    /// Changes up to this count as none.
    pub margin: Margin,
    /// The baseline.
    pub baseline: Sample,
    /// The candidate.
    pub candidate: Sample,
    /// What was found, the order of the values allowed for.
    pub found: Comparison,
    /// What that order says.
    pub order: Order,
    /// The percentiles of the bad end that both samples are large enough for.
    pub extremes: Vec<Extreme>,
}

impl SampleComparison {
    /// Compares two samples that are not paired, each with its values in the order taken.
    ///
    /// # Errors
    /// [`Error`] for a sample without values or with one that is not finite, or a margin that
    /// is none.
    pub fn of(
        names: [String; 2],
        values: [Vec<f64>; 2],
        unit: String,
        direction: Direction,
        margin_percent: f64,
    ) -> Result<Self, Error> {
        let [baseline, candidate] = values;
        let (baseline, candidate) = (Sample::new(baseline)?, Sample::new(candidate)?);
        let margin = Margin::percent(margin_percent)?;
        let criteria = Criteria { margin, ..Criteria::new(direction) };
        let (found, order) = numalab_stats::compare_in_order(&baseline, &candidate, &criteria);
        let all = (baseline.len() + candidate.len()) as f64;
        let extremes = extremes(&baseline, &candidate, direction, order.effective_size / all);
        Ok(Self { names, unit, direction, margin, baseline, candidate, found, order, extremes })
    }

    /// By how much better the candidate's mean is, in percent, as such figures are usually
    /// published: of times `mean(baseline) / mean(candidate) - 1`, of rates the inverse ratio.
    /// With Fieller's interval; `None` where it is unbounded.
    #[must_use]
    pub fn gain_of_means(&self) -> Option<Estimate> {
        let (below, above) = match self.direction {
            Direction::LowerIsBetter => (&self.candidate, &self.baseline),
            Direction::HigherIsBetter => (&self.baseline, &self.candidate),
        };
        let ratio = ratio_of_means(below, above, Confidence::P95).ok()?;
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let interval = Interval { lo: percent(ratio.interval.lo), hi: percent(ratio.interval.hi) };
        Some(Estimate { value: percent(ratio.value), interval, ..ratio })
    }

    /// The farthest percentile at which the samples are shown to differ by more than the margin,
    /// else one at which the candidate may be so far off that it has to be said.
    #[must_use]
    pub fn differing_extreme(&self) -> Option<&Extreme> {
        let margin = self.margin.as_percent();
        let shown = |extreme: &&Extreme| extreme.is_shown() && extreme.percent().abs() > margin;
        let far = |extreme: &&Extreme| {
            extreme.reach_percent(self.direction).abs() > FAR_PERCENT.max(margin)
        };
        let ends = || self.extremes.iter().rev();
        ends().find(shown).or_else(|| ends().find(far))
    }

    /// Whether the candidate is worse by more than the margin.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.found.verdict == Verdict::Worse && self.found.is_beyond_margin()
    }
}
