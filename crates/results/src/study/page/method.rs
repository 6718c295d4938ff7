//! The method behind a study's verdicts, in sentences.

use numalab_page::number::count;

use super::words;
use crate::study::StudySummary;

/// Returns the facts needed to judge the verdicts, with this study's figures.
pub(super) fn sentences(summary: &StudySummary<'_>) -> Vec<String> {
    let run = &summary.document.run;
    let rules = &run.rules;
    let arms = if rules.aa { " and the baseline once more" } else { "" };
    vec![
        format!(
            "Each block has each of {} once{arms}, in random order from the seed; {} came before \
             and {} not judged. Workloads have the same order and the same seed under every \
             treatment of a block.",
            count(run.treatments.len(), "treatment"),
            count(rules.warm_ups, "warm-up block"),
            if rules.warm_ups == 1 { "is" } else { "are" }
        ),
        "Effects are Hodges-Lehmann estimates of log ratios within blocks, with distribution-free \
         intervals; averages over other factors and interactions are weighted the same way in \
         logarithms. Better and worse need a signed-rank test after Holm's adjustment over main \
         effects and interactions in all metrics, and an interval that excludes zero; equivalent \
         needs two one-sided tests within the margin, and takes precedence. Other effects explain \
         these: they are adjusted among themselves, and count only if an effect that they explain is \
         decided. The geometric mean has a BCa bootstrap interval from 20 blocks on, and the permutation test is given next to the \
         signed-rank test."
            .to_owned(),
        looks(summary),
        "A disturbed sample (a cpu throttled, time stolen or taken by other processes, waiting \
         for memory) is kept, marked and repeated; no rule looks at a value. Both analyses are \
         made: with undisturbed samples, and with the first sample of each cell."
            .to_owned(),
    ]
}

/// Describes the number of looks, their cost in confidence, and the order of testing.
fn looks(summary: &StudySummary<'_>) -> String {
    let first = match &summary.document.run.rules.primary {
        Some(primary) => format!(
            " {primary} answers the question and is tested first, at the full level; the other \
             metrics explain it, and are tested among themselves once it is decided."
        ),
        None => String::new(),
    };
    format!(
        "This is look {} at a study that may be resumed: intervals and tests are at {}, so that \
         the error of all looks together is at most 5 %, however often it is resumed.{first}",
        summary.looks,
        words::level(summary)
    )
}
