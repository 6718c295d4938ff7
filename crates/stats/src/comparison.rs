//! The result of comparing two samples, and the verdict that follows from it.

use crate::evidence::Evidence;
use crate::multiplicity::holm_steps;
use crate::verdict::judge;
use crate::{
    Confidence, Direction, Equivalence, Estimate, Ground, Interval, Margin, Test, Verdict,
    attainable, holm, percent_change, planning,
};

/// The minimum number of values of each kind at which constant values are taken to be constant by
/// nature.
const FEWEST_WITHOUT_VARIANCE: usize = 3;

/// The criteria by which a comparison is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criteria {
    /// Confidence of the interval; tests use the alpha of this level.
    pub confidence: Confidence,
    /// Confidence with which more values would be judged, for which the number still needed is
    /// counted: another one where each look has its share of the error
    /// ([`Confidence::at_look`]).
    pub later: Confidence,
    /// The largest change that still counts as none.
    pub margin: Margin,
    /// The direction in which the metric is better.
    pub direction: Direction,
}

impl Criteria {
    /// Returns criteria with 95 % confidence and a margin of 2 % for a metric of this direction.
    pub fn new(direction: Direction) -> Self {
        let confidence = Confidence::P95;
        Self { confidence, later: confidence, margin: Margin::TWO_PERCENT, direction }
    }
}

/// The relation between the values of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// One value of each side per block.
    Paired {
        /// Number of blocks.
        blocks: usize,
    },
    /// Two independent samples.
    Unpaired {
        /// Number of baseline values.
        baseline: usize,
        /// Number of candidate values.
        candidate: usize,
    },
}

/// The scale of effect and interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// `ln(candidate / baseline)`.
    LogRatio,
    /// `candidate - baseline`, used when a value at or below zero has no logarithm; the margin is
    /// then a share of the baseline's median.
    Difference,
}

/// The result of comparing a baseline and a candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The relation between the values of the two sides.
    pub design: Design,
    /// The scale of `effect`, `interval` and `least_detectable`.
    pub scale: Scale,
    /// The Hodges-Lehmann effect, above zero where the candidate is higher.
    pub effect: f64,
    /// The distribution-free interval of the effect; `None` if there are too few values for one.
    pub interval: Option<Interval>,
    /// The signed-rank or rank-sum test of a difference.
    pub difference: Test,
    /// The two one-sided tests of equivalence within the margin.
    pub equivalence: Equivalence,
    /// The smallest p that the test of a difference can give with this number of values.
    pub least_p: f64,
    /// `mean(candidate) / mean(baseline)` with Fieller's interval, if that is bounded.
    pub ratio_of_means: Option<Estimate>,
    /// The noise floor: the smallest effect that this number of such values shows with 80 % power.
    pub least_detectable: Option<f64>,
    /// The median of the baseline.
    pub baseline_median: f64,
    /// The basis of the verdict.
    pub ground: Ground,
    /// The answer from the unadjusted p-value: [`adjust_verdicts`] allows for several metrics.
    pub verdict: Verdict,
    criteria: Criteria,
    judged_by: JudgedBy,
}

/// The figures that the verdict follows from, besides effect and interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct JudgedBy {
    p_difference: f64,
    p_equivalence: f64,
    /// The level at which the test itself must find a difference.
    level: f64,
}

/// Recomputes the verdicts of several metrics. The tests of difference and the tests of equivalence
/// are adjusted separately by Holm's method, so that the chance of any false difference stays below
/// alpha, and so does the chance of any false equivalence.
///
/// The number of values still needed is the number with which a difference would be shown among
/// this number of metrics, and a ground of [`Ground::Tested`] becomes [`Ground::TooFew`] where none
/// could be shown.
pub fn adjust_verdicts(comparisons: &mut [Comparison]) {
    let p_values: Vec<f64> = comparisons.iter().map(|c| c.difference.p).collect();
    let many = comparisons.len();
    let steps = holm_steps(&p_values);
    let equivalence = holm(&comparisons.iter().map(|c| c.equivalence.p()).collect::<Vec<_>>());
    let adjusted = holm(&p_values).into_iter().zip(equivalence);
    for ((comparison, p), step) in comparisons.iter_mut().zip(adjusted).zip(steps) {
        comparison.adjust(p, step, many);
    }
}

/// Withholds verdicts of comparisons that explain others, where those do not permit them.
///
/// Both sides are adjusted before, each among itself at the full level. Without a difference among
/// `answers`, differences among the rest do not count, because equivalence says nothing against
/// chance differences; without any decision, nothing does (serial gatekeeping: Westfall & Krishen, J.
/// Stat. Plan. Inference 99, 2001; Maurer, Hothorn & Lehmacher 1995). The chance of any false
/// difference where nothing differs stays below alpha, and explaining comparisons do not reduce the
/// power of the answers. Verdicts that do not count are inconclusive on [`Ground::Gated`]. Without
/// `answers` nothing changes.
pub fn gate(answers: &[Comparison], rest: &mut [Comparison]) {
    let is_open = |comparison: &Comparison| !comparison.verdict.is_decided();
    if answers.is_empty() {
        return;
    }
    let is_different =
        |comparison: &Comparison| matches!(comparison.verdict, Verdict::Better | Verdict::Worse);
    let is_decided = !answers.iter().all(is_open);
    let opens_differences = answers.iter().any(is_different);
    let is_gated = |comparison: &&mut Comparison| {
        !is_open(comparison) && !(is_decided && (opens_differences || !is_different(comparison)))
    };
    for comparison in rest.iter_mut().filter(is_gated) {
        comparison.ground = Ground::Gated;
        comparison.verdict = Verdict::Inconclusive { further_blocks: None };
    }
}

impl Design {
    /// Returns the number of blocks, or of values on the smaller side.
    fn fewest(self) -> usize {
        match self {
            Self::Paired { blocks } => blocks,
            Self::Unpaired { baseline, candidate } => baseline.min(candidate),
        }
    }

    /// Returns the fewest values with which the test of a difference can reach a level.
    pub(crate) fn least_values(self, level: f64) -> usize {
        match self {
            Self::Paired { .. } => attainable::least_pairs(level),
            Self::Unpaired { .. } => attainable::least_values_a_side(level),
        }
    }

    /// Returns true if there are enough values to believe that they are constant.
    pub(crate) fn repeats(self) -> bool {
        self.fewest() >= FEWEST_WITHOUT_VARIANCE
    }
}

impl Comparison {
    /// Returns the effect in percent of the baseline; `None` if the baseline's median is zero, so
    /// that ratios do not exist.
    pub fn percent(&self) -> Option<f64> {
        self.in_percent(self.effect)
    }

    /// Returns the interval in percent of the baseline.
    pub fn percent_interval(&self) -> Option<Interval> {
        let (lo, hi) = self.interval.map(|interval| (interval.lo, interval.hi))?;
        Some(Interval { lo: self.in_percent(lo)?, hi: self.in_percent(hi)? })
    }

    /// Returns the noise floor in percent of the baseline.
    pub fn least_detectable_percent(&self) -> Option<f64> {
        self.in_percent(self.least_detectable?)
    }

    /// Widens the interval to the width of a comparison of equals: its half width is at least the
    /// distance to the farther end of that interval. A verdict that the wider interval does not
    /// support becomes inconclusive, and the number of blocks still needed is that for the wider
    /// interval. Comparisons on different scales are left unchanged.
    pub fn widen_to(&mut self, equals: &Self) {
        let (Some(interval), Some(floor)) = (self.interval, equals.interval) else { return };
        if self.scale != equals.scale {
            return;
        }
        let reach = floor.lo.abs().max(floor.hi.abs());
        let (lo, hi) = (interval.lo.min(self.effect - reach), interval.hi.max(self.effect + reach));
        self.interval = Some(Interval { lo, hi });
        let bound = bound(self.scale, self.baseline_median, self.criteria.margin);
        let holds = match self.verdict {
            Verdict::Better | Verdict::Worse => lo > 0.0 || hi < 0.0,
            Verdict::Equivalent => lo >= -bound && hi <= bound,
            // What it explains must be decided first.
            Verdict::Inconclusive { .. } => self.ground == Ground::Gated,
        };
        if !holds {
            let further_blocks =
                planning::further_blocks(&self.evidence(), self.criteria.confidence);
            self.verdict = Verdict::Inconclusive { further_blocks };
        }
    }

    /// Returns true if the whole interval is beyond the margin on either side or, where values do
    /// not vary, if the effect is.
    pub fn is_beyond_margin(&self) -> bool {
        let bound = bound(self.scale, self.baseline_median, self.criteria.margin);
        match (self.ground, self.interval) {
            (Ground::NoVariance, _) => self.effect.abs() > bound,
            (_, Some(interval)) => interval.lo > bound || interval.hi < -bound,
            (_, None) => false,
        }
    }

    /// Judges again as one of `many`, with the adjusted p-values (difference, equivalence) and the
    /// divisor of the level for the difference.
    fn adjust(&mut self, adjusted_p: (f64, f64), step: usize, many: usize) {
        // The level that the smallest of all p-values must reach; no other is tested before it.
        let hardest = |confidence: Confidence| confidence.alpha() / many as f64;
        if self.ground != Ground::NoVariance && self.least_p > hardest(self.criteria.confidence) {
            let needed = self.design.least_values(hardest(self.criteria.later));
            self.ground = Ground::TooFew { needed };
        }
        let (p_difference, p_equivalence) = adjusted_p;
        let level = self.criteria.later.alpha() / step as f64;
        self.judged_by = JudgedBy { p_difference, p_equivalence, level };
        self.verdict = self.judged();
    }

    fn judged(&self) -> Verdict {
        judge(&self.evidence(), self.criteria.direction, self.criteria.confidence)
    }

    fn evidence(&self) -> Evidence {
        let JudgedBy { p_difference, p_equivalence, level } = self.judged_by;
        Evidence {
            later: self.criteria.later,
            level,
            fewest: self.design.least_values(level),
            effect: self.effect,
            interval: self.interval,
            bound: bound(self.scale, self.baseline_median, self.criteria.margin),
            p_difference,
            p_equivalence,
            values: self.design.fewest(),
            ground: self.ground,
        }
    }

    fn in_percent(&self, effect: f64) -> Option<f64> {
        match self.scale {
            Scale::LogRatio => Some(percent_change(effect)),
            Scale::Difference if self.baseline_median == 0.0 => None,
            Scale::Difference => Some(100.0 * effect / self.baseline_median.abs()),
        }
    }
}

/// The statistics that a verdict is derived from.
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
            judged_by: JudgedBy {
                p_difference: self.difference.p,
                p_equivalence: self.equivalence.p(),
                level: criteria.later.alpha(),
            },
        };
        comparison.verdict = comparison.judged();
        comparison
    }
}

/// Converts the margin to the scale of the effect.
pub(crate) fn bound(scale: Scale, baseline_median: f64, margin: Margin) -> f64 {
    match scale {
        Scale::LogRatio => margin.as_log(),
        Scale::Difference => margin.as_percent() / 100.0 * baseline_median.abs(),
    }
}
