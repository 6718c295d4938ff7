//! Two samples, compared.

use crate::verdict::{Evidence, judge};
use crate::{
    Alternative, Confidence, Direction, Equivalence, Error, Estimate, Ground, Interval, Margin,
    Sample, Test, Verdict, attainable, equivalence_paired, equivalence_unpaired, hodges_lehmann,
    hodges_lehmann_interval, holm, least_p_paired, least_p_unpaired, least_pairs,
    paired_differences, percent_change, planning, rank_sum, ratio_of_means, ratio_of_means_paired,
    shift, shift_interval, signed_rank,
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
        Self {
            confidence: Confidence::P95,
            margin: Margin::TWO_PERCENT,
            direction,
        }
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

/// Compares two samples taken apart from each other.
///
/// Assumes that nothing but the treatment differs between them. Where one was taken after the
/// other on a machine that drifts that is false, and no test can tell: interleave, and use
/// [`compare_paired`].
#[must_use]
pub fn compare(baseline: &Sample, candidate: &Sample, criteria: &Criteria) -> Comparison {
    let (scale, first, second) = scaled(baseline, candidate);
    let (confidence, alpha) = (criteria.confidence, criteria.confidence.alpha());
    let bound = bound(scale, baseline.median(), criteria.margin);
    let design = Design::Unpaired {
        baseline: baseline.len(),
        candidate: candidate.len(),
    };
    let least_p = least_p_unpaired(baseline.len(), candidate.len());
    let ground = if baseline.is_constant() && candidate.is_constant() && design.repeats() {
        Ground::NoVariance
    } else if least_p > alpha {
        Ground::TooFew {
            needed: attainable::least_values_a_side(alpha),
        }
    } else {
        Ground::Tested
    };
    Findings {
        design,
        scale,
        effect: shift(&first, &second),
        interval: shift_interval(&first, &second, confidence).ok(),
        difference: rank_sum(&first, &second, Alternative::TwoSided),
        equivalence: equivalence_unpaired(&first, &second, bound),
        least_p,
        ratio_of_means: ratio_of_means(baseline, candidate, confidence).ok(),
        ground,
    }
    .judged(baseline.median(), criteria)
}

/// Compares two samples with one value of each per block, in the same order.
///
/// # Errors
/// [`Error::LengthsDiffer`] unless there are as many of both, [`Error::NotFinite`] where a
/// difference overflows.
pub fn compare_paired(
    baseline: &Sample,
    candidate: &Sample,
    criteria: &Criteria,
) -> Result<Comparison, Error> {
    let (scale, first, second) = scaled(baseline, candidate);
    let differences = paired_differences(&first, &second)?;
    let (confidence, alpha) = (criteria.confidence, criteria.confidence.alpha());
    let bound = bound(scale, baseline.median(), criteria.margin);
    let design = Design::Paired {
        blocks: differences.len(),
    };
    let least_p = least_p_paired(differences.len());
    let ground = if differences.is_constant() && design.repeats() {
        Ground::NoVariance
    } else if least_p > alpha {
        Ground::TooFew {
            needed: least_pairs(alpha),
        }
    } else {
        Ground::Tested
    };
    let findings = Findings {
        design,
        scale,
        effect: hodges_lehmann(&differences),
        interval: hodges_lehmann_interval(&differences, confidence).ok(),
        difference: signed_rank(&differences, Alternative::TwoSided),
        equivalence: equivalence_paired(&differences, bound),
        least_p,
        ratio_of_means: ratio_of_means_paired(baseline, candidate, confidence).ok(),
        ground,
    };
    Ok(findings.judged(baseline.median(), criteria))
}

/// Takes the verdicts of several metrics again, with Holm's adjustment of the tests of
/// difference, so that the chance of any false claim among them stays below alpha.
pub fn adjust_verdicts(comparisons: &mut [Comparison]) {
    let p_values: Vec<f64> = comparisons.iter().map(|c| c.difference.p).collect();
    for (comparison, adjusted) in comparisons.iter_mut().zip(holm(&p_values)) {
        comparison.verdict = comparison.judged_with(adjusted);
    }
}

impl Design {
    /// Values on the smaller side, or blocks.
    fn fewest(self) -> usize {
        match self {
            Self::Paired { blocks } => blocks,
            Self::Unpaired {
                baseline,
                candidate,
            } => baseline.min(candidate),
        }
    }

    /// Whether there are enough values to believe that they do not vary.
    fn repeats(self) -> bool {
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
        Some(Interval {
            lo: self.in_percent(lo)?,
            hi: self.in_percent(hi)?,
        })
    }

    /// The noise floor in percent of the baseline.
    #[must_use]
    pub fn least_detectable_percent(&self) -> Option<f64> {
        self.in_percent(self.least_detectable?)
    }

    /// The verdict with another p-value for the difference, as adjusted for several metrics.
    #[must_use]
    pub fn judged_with(&self, adjusted_p: f64) -> Verdict {
        let evidence = Evidence {
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
struct Findings {
    design: Design,
    scale: Scale,
    effect: f64,
    interval: Option<Estimate>,
    difference: Test,
    equivalence: Equivalence,
    least_p: f64,
    ratio_of_means: Option<Estimate>,
    ground: Ground,
}

impl Findings {
    fn judged(self, baseline_median: f64, criteria: &Criteria) -> Comparison {
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
            verdict: Verdict::Inconclusive {
                further_blocks: None,
            },
            criteria: *criteria,
        };
        comparison.verdict = comparison.judged_with(self.difference.p);
        comparison
    }
}

/// Logarithms where all values have one, else the values themselves.
fn scaled(baseline: &Sample, candidate: &Sample) -> (Scale, Sample, Sample) {
    match (baseline.logs(), candidate.logs()) {
        (Ok(first), Ok(second)) => (Scale::LogRatio, first, second),
        _ => (Scale::Difference, baseline.clone(), candidate.clone()),
    }
}

/// The margin in the scale of the effect.
fn bound(scale: Scale, baseline_median: f64, margin: Margin) -> f64 {
    match scale {
        Scale::LogRatio => margin.as_log(),
        Scale::Difference => margin.as_percent() / 100.0 * baseline_median.abs(),
    }
}
