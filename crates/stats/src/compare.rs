//! Comparison of two samples, paired or independent.

use crate::comparison::{Findings, bound};
use crate::{
    Alternative, Comparison, Criteria, Design, Error, Ground, Order, Sample, Scale, both,
    equivalence_paired, equivalence_unpaired, hodges_lehmann, hodges_lehmann_interval,
    least_p_paired, least_p_unpaired, paired_differences, rank_sum, ratio_of_means,
    ratio_of_means_paired, shift, shift_interval, signed_rank,
};

/// Compares two independent samples.
///
/// Assumes that only the treatment differs between them. This is false if one was taken after the
/// other on a machine that drifts, and no test can detect it: interleave them and use
/// [`compare_paired`].
pub fn compare(baseline: &Sample, candidate: &Sample, criteria: &Criteria) -> Comparison {
    unpaired(baseline, candidate, criteria).judged(baseline.median(), criteria)
}

/// Compares two independent samples, each in the order taken.
///
/// Works like [`compare`], but values that resemble their neighbours count as fewer values, in
/// proportion to the information they carry, consecutive parts of the samples must agree, and
/// nothing is decided where a sample drifts or has fewer than ten values: see [`Order`].
pub fn compare_in_order(
    baseline: &Sample,
    candidate: &Sample,
    criteria: &Criteria,
) -> (Comparison, Order) {
    // One after the other, since both need memory for millions of values; each uses two threads.
    let order = Order::of(baseline, candidate);
    let findings = unpaired(baseline, candidate, criteria);
    let bound = bound(findings.scale, baseline.median(), criteria.margin);
    let findings = order.allow(findings, bound, criteria.confidence);
    (findings.judged(baseline.median(), criteria), order)
}

fn unpaired(baseline: &Sample, candidate: &Sample, criteria: &Criteria) -> Findings {
    let (scale, first, second) = scaled(baseline, candidate, Sample::sorted_logs);
    let (confidence, alpha) = (criteria.confidence, criteria.confidence.alpha());
    let bound = bound(scale, baseline.median(), criteria.margin);
    let design = Design::Unpaired { baseline: baseline.len(), candidate: candidate.len() };
    let least_p = least_p_unpaired(baseline.len(), candidate.len());
    let ground = if baseline.is_constant() && candidate.is_constant() && design.repeats() {
        Ground::NoVariance
    } else if least_p > alpha {
        Ground::TooFew { needed: design.least_values(criteria.later.alpha()) }
    } else {
        Ground::Tested
    };
    let tests = || {
        let difference = rank_sum(&first, &second, Alternative::TwoSided);
        let equivalence = equivalence_unpaired(&first, &second, bound);
        (difference, equivalence, ratio_of_means(baseline, candidate, confidence).ok())
    };
    let values = baseline.len() + candidate.len();
    let ((difference, equivalence, ratio_of_means), interval) =
        both(values, tests, || shift_interval(&first, &second, confidence).ok());
    Findings {
        design,
        scale,
        effect: interval.map_or_else(|| shift(&first, &second), |interval| interval.value),
        interval,
        difference,
        equivalence,
        least_p,
        ratio_of_means,
        ground,
    }
}

/// Compares two samples that have one value per block each, in the same order.
///
/// # Errors
/// [`Error::LengthsDiffer`] unless both have the same length, [`Error::NotFinite`] where a
/// difference overflows.
pub fn compare_paired(
    baseline: &Sample,
    candidate: &Sample,
    criteria: &Criteria,
) -> Result<Comparison, Error> {
    let (scale, first, second) = scaled(baseline, candidate, |sample| sample.logs().ok());
    let differences = paired_differences(&first, &second)?;
    let (confidence, alpha) = (criteria.confidence, criteria.confidence.alpha());
    let bound = bound(scale, baseline.median(), criteria.margin);
    let design = Design::Paired { blocks: differences.len() };
    let least_p = least_p_paired(differences.len());
    let ground = if differences.is_constant() && design.repeats() {
        Ground::NoVariance
    } else if least_p > alpha {
        Ground::TooFew { needed: design.least_values(criteria.later.alpha()) }
    } else {
        Ground::Tested
    };
    let interval = hodges_lehmann_interval(&differences, confidence).ok();
    let findings = Findings {
        design,
        scale,
        effect: interval.map_or_else(|| hodges_lehmann(&differences), |interval| interval.value),
        interval,
        difference: signed_rank(&differences, Alternative::TwoSided),
        equivalence: equivalence_paired(&differences, bound),
        least_p,
        ratio_of_means: ratio_of_means_paired(baseline, candidate, confidence).ok(),
        ground,
    };
    Ok(findings.judged(baseline.median(), criteria))
}

/// Returns logarithms if all values have one, otherwise the values themselves.
fn scaled(
    baseline: &Sample,
    candidate: &Sample,
    logs: impl Fn(&Sample) -> Option<Sample> + Sync,
) -> (Scale, Sample, Sample) {
    let values = baseline.len() + candidate.len();
    match both(values, || logs(baseline), || logs(candidate)) {
        (Some(first), Some(second)) => (Scale::LogRatio, first, second),
        _ => (Scale::Difference, baseline.clone(), candidate.clone()),
    }
}
