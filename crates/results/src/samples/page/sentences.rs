//! Sentences on the tests of two samples, and on the order of their values.

use numalab_page::number::{figure, trimmed};
use numalab_stats::Trend;

use crate::samples::SampleComparison;

/// Smaller probabilities are equally small to a reader.
const LEAST_P: f64 = 1e-12;

/// Describes the tests, and what they assume.
pub(super) fn sentences(of: &SampleComparison) -> Vec<String> {
    let mut sentences = order_sentences(of);
    if let Some(parts) = of.order.parts {
        sentences.push(format!(
            "A verdict must also hold for four consecutive parts of each file, in case values depend \
             on many before them: {} for a difference between the parts.",
            chance(parts.p_beyond(0.0))
        ));
    }
    let (difference, equivalence) = match of.order.parts {
        // Each p-value was raised to that of the parts.
        Some(_) => (
            "The larger p of the rank-sum test and the parts decides: for a difference",
            "for equivalence",
        ),
        None => ("Rank-sum test of a difference", "of equivalence"),
    };
    sentences.extend([
        format!(
            "{difference}: {}; {equivalence} within {} %: {}.",
            chance(of.found.difference.p),
            trimmed(of.margin.as_percent()),
            chance(of.found.equivalence.p())
        ),
        "The samples are not paired: the answer holds only if nothing else changed between them, \
         and on a machine that drifts something does. `numalab compare --commands` interleaves the two."
            .to_owned(),
    ]);
    sentences
}

/// Describes the correlation of successive values, and the correction for it.
fn order_sentences(of: &SampleComparison) -> Vec<String> {
    let shown = of.names.iter().zip(&of.order.trends).filter(|(_, trend)| trend.is_shown());
    let mut sentences: Vec<String> = shown.map(|(name, trend)| drift(name, trend)).collect();
    if sentences.is_empty() && of.order.drifts() {
        let [first, second] = of.order.trends.map(|trend| trend.correlation);
        let way = if first + second > 0.0 { "rise" } else { "fall" };
        sentences.push(format!("Taken together, both samples {way} over time."));
    }
    if !sentences.is_empty() {
        sentences.push(
            "The machine drifts, or each value depends on many before it: two samples taken one \
             after the other then differ by that alone. If the values were sorted, give them in \
             the order measured."
                .to_owned(),
        );
    }
    if of.order.autocorrelation > 0.0 {
        sentences.push(format!(
            "Values resemble the ones before them (lag-1 correlation {:.2}): the {} are worth about \
             {:.0} independent ones, which the verdict, its tests and the interval of the \
             Hodges-Lehmann effect allow for; the interval of the gain of means does not.",
            of.order.autocorrelation,
            of.baseline.len() + of.candidate.len(),
            of.order.effective_size.max(1.0),
        ));
    }
    sentences
}

/// Describes a trend: `a.txt: values rise in the order taken ...`.
fn drift(name: &str, trend: &Trend) -> String {
    let way = if trend.correlation > 0.0 { "rise" } else { "fall" };
    let size = trend.percent.map_or_else(String::new, |change| {
        let side = if change > 0.0 { "above" } else { "below" };
        let change = figure(change.abs());
        format!("; the median of the last third is {change} % {side} that of the first")
    });
    format!("{name}: values {way} in the order taken ({}{size}).", chance(trend.p))
}

/// Formats a probability: `p = 0.0200`, or `p < 1e-12`.
fn chance(p: f64) -> String {
    match p < LEAST_P {
        true => format!("p < {LEAST_P:e}"),
        false => format!("p = {}", figure(p)),
    }
}
