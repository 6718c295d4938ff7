//! What there is to say about two samples, and the verdict it leads to.

use crate::multiplicity::holm_steps;
use crate::verdict::{Evidence, judge};
use crate::{
    Confidence, Direction, Equivalence, Estimate, Ground, Interval, Margin, Test, Verdict,
    attainable, holm, percent_change, planning,
};

/// Values of each kind from which their not varying is believed to be their nature.
const FEWEST_WITHOUT_VARIANCE: usize = 3;

/// By what a comparison is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criteria {
    /// Of the interval; tests use its alpha.
    pub confidence: Confidence,
    /// What still counts as no change.
    pub margin: Margin,
    /// Which way is better.
    pub direction: Direction,
}

impl Criteria {
    /// 95 % confidence and a margin of 2 %, for a metric of this direction.
    #[must_use]
    pub fn new(direction: Direction) -> Self {
        Self { confidence: Confidence::P95, margin: Margin::TWO_PERCENT, direction }
    }
}

/// How values of the two sides belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// One value of each side per block.
    Paired {
        /// How many blocks.
        blocks: usize,
    },
    /// Two samples taken apart from each other.
    Unpaired {
        /// Values of the baseline.
        baseline: usize,
        /// Values of the candidate.
        candidate: usize,
    },
}

/// What effect and interval are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// `ln(candidate / baseline)`.
    LogRatio,
    /// `candidate - baseline`, where a value at or below zero has no logarithm; the margin is
    /// then a share of the baseline's median.
    Difference,
}

/// What there is to say about a baseline and a candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// How the values belong together.
    pub design: Design,
    /// What `effect`, `interval` and `least_detectable` are measured in.
    pub scale: Scale,
    /// The Hodges-Lehmann effect: above zero, the candidate is higher.
    pub effect: f64,
    /// Its distribution-free interval; `None` where there are too few values for one.
    pub interval: Option<Interval>,
    /// The signed-rank or rank-sum test of a difference.
    pub difference: Test,
    /// The two one-sided tests of equivalence within the margin.
    pub equivalence: Equivalence,
    /// The smallest p that the test of a difference can give with so many values.
    pub least_p: f64,
    /// `mean(candidate) / mean(baseline)` with Fieller's interval, where it is bounded.
    pub ratio_of_means: Option<Estimate>,
    /// The noise floor: the smallest effect that so many such values show with 80 % power.
    pub least_detectable: Option<f64>,
    /// The median of the baseline.
    pub baseline_median: f64,
    /// What the verdict rests on.
    pub ground: Ground,
    /// The answer, from the p-value as it is: [`adjust_verdicts`] allows for several metrics.
    pub verdict: Verdict,
    criteria: Criteria,
}

/// Takes the verdicts of several metrics again, with Holm's adjustment of the tests of
/// difference, so that the chance of any false claim among them stays below alpha.
///
/// The values still needed are those with which a difference would stand among so many, and
/// a ground of [`Ground::Tested`] becomes [`Ground::TooFew`] where none could.
pub fn adjust_verdicts(comparisons: &mut [Comparison]) {
    let p_values: Vec<f64> = comparisons.iter().map(|c| c.difference.p).collect();
    let many = comparisons.len();
    let steps = holm_steps(&p_values);
    for ((comparison, p), step) in comparisons.iter_mut().zip(holm(&p_values)).zip(steps) {
        comparison.adjust(p, step, many);
    }
}

impl Design {
    /// Values on the smaller side, or blocks.
    fn fewest(self) -> usize {
        match self {
            Self::Paired { blocks } => blocks,
            Self::Unpaired { baseline, candidate } => baseline.min(candidate),
        }
    }

    /// The fewest values with which the test of a difference can reach a level.
    pub(crate) fn least_values(self, level: f64) -> usize {
        match self {
            Self::Paired { .. } => attainable::least_pairs(level),
            Self::Unpaired { .. } => attainable::least_values_a_side(level),
        }
    }

    /// Whether there are enough values to believe that they do not vary.
    pub(crate) fn repeats(self) -> bool {
        self.fewest() >= FEWEST_WITHOUT_VARIANCE
    }
}

impl Comparison {
    /// The effect in percent of the baseline; `None` where the baseline's median is zero and
    /// there are no ratios.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        self.in_percent(self.effect)
    }

    /// The interval in percent of the baseline.
    #[must_use]
    pub fn percent_interval(&self) -> Option<Interval> {
        let (lo, hi) = self.interval.map(|interval| (interval.lo, interval.hi))?;
        Some(Interval { lo: self.in_percent(lo)?, hi: self.in_percent(hi)? })
    }

    /// The noise floor in percent of the baseline.
    #[must_use]
    pub fn least_detectable_percent(&self) -> Option<f64> {
        self.in_percent(self.least_detectable?)
    }

    /// Judges again as one of `many`, with the p-value as adjusted for them and the number
    /// by which the level was divided for it.
    fn adjust(&mut self, adjusted_p: f64, step: usize, many: usize) {
        let alpha = self.criteria.confidence.alpha();
        // What the smallest of all p-values must reach; before it no other is looked at.
        let hardest = alpha / many as f64;
        if self.ground != Ground::NoVariance && self.least_p > hardest {
            self.ground = Ground::TooFew { needed: self.design.least_values(hardest) };
        }
        self.verdict = self.judged_with(adjusted_p, alpha / step as f64);
    }

    /// The verdict with a p-value for the difference, and the level at which the test
    /// itself must find one.
    fn judged_with(&self, adjusted_p: f64, level: f64) -> Verdict {
        let evidence = Evidence {
            level,
            effect: self.effect,
            interval: self.interval,
            bound: bound(self.scale, self.baseline_median, self.criteria.margin),
            p_difference: adjusted_p,
            p_equivalence: self.equivalence.p(),
            values: self.design.fewest(),
            ground: self.ground,
        };
        judge(&evidence, self.criteria.direction, self.criteria.confidence)
    }

    fn in_percent(&self, effect: f64) -> Option<f64> {
        match self.scale {
            Scale::LogRatio => Some(percent_change(effect)),
            Scale::Difference if self.baseline_median == 0.0 => None,
            Scale::Difference => Some(100.0 * effect / self.baseline_median.abs()),
        }
    }
}

/// What is found before it is judged.
pub(crate) struct Findings {
    pub design: Design,
    pub scale: Scale,
    pub effect: f64,
    pub interval: Option<Estimate>,
    pub difference: Test,
    pub equivalence: Equivalence,
    pub least_p: f64,
    pub ratio_of_means: Option<Estimate>,
    pub ground: Ground,
}

impl Findings {
    pub(crate) fn judged(self, baseline_median: f64, criteria: &Criteria) -> Comparison {
        let interval = self.interval.map(|estimate| estimate.interval);
        let confidence = criteria.confidence;
        let mut comparison = Comparison {
            design: self.design,
            scale: self.scale,
            effect: self.effect,
            interval,
            difference: self.difference,
            equivalence: self.equivalence,
            least_p: self.least_p,
            ratio_of_means: self.ratio_of_means,
            least_detectable: interval.map(|i| planning::least_detectable(&i, confidence)),
            baseline_median,
            ground: self.ground,
            verdict: Verdict::Inconclusive { further_blocks: None },
            criteria: *criteria,
        };
        comparison.verdict = comparison.judged_with(self.difference.p, confidence.alpha());
        comparison
    }
}

/// The margin in the scale of the effect.
pub(crate) fn bound(scale: Scale, baseline_median: f64, margin: Margin) -> f64 {
    match scale {
        Scale::LogRatio => margin.as_log(),
        Scale::Difference => margin.as_percent() / 100.0 * baseline_median.abs(),
    }
}
