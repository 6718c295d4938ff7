//! Two samples set side by side.

use numalab_stats::{
    Comparison, Confidence, Criteria, Direction, Error, Estimate, Extreme, Interval, Margin, Order,
    Sample, Verdict, extremes, ratio_of_means,
};

use crate::shape::{FarEnd, TwoModes};

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
    /// The modes of baseline and candidate, where one has two.
    pub modes: [Option<TwoModes>; 2],
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
        let worth = order.effective_size / all;
        let extremes = extremes(&baseline, &candidate, direction, worth);
        let modes = [&baseline, &candidate].map(|sample| TwoModes::of(sample, worth, margin));
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

    /// Where the far ends differ.
    #[must_use]
    pub fn far_end(&self) -> Option<FarEnd> {
        FarEnd::of(&self.extremes, self.direction, self.margin)
    }

    /// Reports whether the candidate's far end is shown to be worse.
    #[must_use]
    pub fn is_far_end_worse(&self) -> bool {
        self.far_end().as_ref().is_some_and(FarEnd::is_shown_worse)
    }

    /// Whether the candidate is worse by more than the margin.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.found.verdict == Verdict::Worse && self.found.is_beyond_margin()
    }
}
