//! Sentences for findings about a study as a whole.

use numalab_formats::size::format_rounded;
use numalab_page::number::{count, figure, percent, trimmed};
use numalab_page::{Lead, Mood};
use numalab_record::study::{EndReason, Notice};
use numalab_stats::Interval;

use super::{published, walks, words};
use crate::label::{self, change_words};
use crate::shape::Tail;
use crate::study::{
    BestTreatment, CostBound, EffectKind, EffectOf, MetricNoise, OwnDifference, StudyFinding,
    StudyObservation, StudySummary,
};
use crate::system::no_effect;

/// Maximum number of metrics named in a sentence.
const LISTED: usize = 4;

/// Returns a finding as a sentence with its heading.
pub(super) fn said(finding: &StudyFinding, summary: &StudySummary<'_>) -> Lead {
    let odd = |name: &str, sentence: String| Lead::new(name, sentence, Mood::Odd);
    let plain = |name: &str, sentence: String| Lead::new(name, sentence, Mood::Plain);
    match &finding.what {
        StudyObservation::Unfinished => {
            odd("Answer", "No block is finished, so there is no answer yet.".to_owned())
        }
        StudyObservation::NoPrimary => plain(
            "Primary metric",
            "None is named (rules.primary), so all metrics are tested together.".to_owned(),
        ),
        StudyObservation::PrimaryWithoutValues { primary } => {
            odd("Answer", format!("{primary}, which answers the question, has no values."))
        }
        StudyObservation::CannotShow { factor, cost } => {
            odd("Answer", cannot_show(factor, cost.as_ref(), summary))
        }
        StudyObservation::Unmentioned { factor, variable, noise } => {
            plain("Answer", unmentioned(factor, variable, noise.as_ref()))
        }
        StudyObservation::Best(found) => best(found),
        StudyObservation::Published(found) => published::lead(found),
        StudyObservation::PageWalks(found) => walks::lead(found),
        StudyObservation::Tails { tail, unit } => tails(finding, tail, unit),
        StudyObservation::TwoModes { workload, metric, unit, treatment, modes } => {
            let modes = label::two_modes(modes, unit, figure);
            let of = format!("{workload} {metric} of {treatment}");
            odd("Two modes", format!("{of}: {modes}; the median describes neither."))
        }
        StudyObservation::Incomplete { finished, planned, reason } => {
            odd("Not complete", incomplete(*finished, *planned, reason.as_ref()))
        }
        StudyObservation::Disturbed { samples, disturbed, is_repeated } => {
            let sentence = match (*disturbed, *is_repeated) {
                (0, _) => format!("None of {} was disturbed.", count(*samples, "sample")),
                (disturbed, false) => format!(
                    "{disturbed} of {} were disturbed; this study repeats none.",
                    count(*samples, "sample")
                ),
                (disturbed, true) => repeated(disturbed, *samples, &finding.evidence),
            };
            match finding.evidence.is_empty() {
                true => plain("Disturbed samples", sentence),
                false => odd("Depends on which samples count", sentence),
            }
        }
        StudyObservation::SharedMachine { samples, disturbed, is_allowed_for } => {
            odd("Shared machine", shared_machine(*samples, *disturbed, *is_allowed_for))
        }
        StudyObservation::Files { renewed_bytes, kept_bytes, kept } => {
            files(*renewed_bytes, *kept_bytes, kept.as_deref())
        }
        StudyObservation::BaselineAgainstItself { metrics, differing, own } => plain(
            "False positives on this machine",
            against_itself(*metrics, *differing, own, finding.threshold),
        ),
    }
}

fn shared_machine(samples: usize, disturbed: usize, is_allowed_for: bool) -> String {
    let how = match is_allowed_for {
        true => "intervals are at least as wide as the A/A arm shows",
        false => "without an A/A arm (aa = true), intervals do not allow for that",
    };
    let samples = count(samples, "sample");
    format!(
        "This machine is shared: other load disturbed {disturbed} of {samples}. None was \
         repeated after that was detected; {how}."
    )
}

fn tails(finding: &StudyFinding, tail: &Tail, unit: &str) -> Lead {
    let of = finding.evidence.iter().map(|of| {
        let change = change_words(EffectKind::Main, &of.change);
        format!("{} {} ({change})", of.workload, of.metric)
    });
    let of: String = of.collect();
    let number = |value: f64| format!("{} {unit}", figure(value)).trim_end().to_owned();
    let sentence = format!("{of}: {}.", label::tail_values(tail, number));
    label::tail_lead(tail, sentence)
}

/// Describes the place of files in the page cache.
fn files(renewed_bytes: u64, kept_bytes: u64, kept: Option<&str>) -> Lead {
    let renewed = (renewed_bytes > 0).then(|| {
        format!(
            "Before each sample {} of files were dropped from the page cache and read again under \
             its own treatment.",
            format_rounded(renewed_bytes)
        )
    });
    let stayed = kept.map(|path| {
        format!(
            "{} of files, such as {path}, could not be dropped: they stay on the node that first \
             read them, under every treatment, and the verdicts apply only to that.",
            format_rounded(kept_bytes)
        )
    });
    let mood = if stayed.is_some() { Mood::Odd } else { Mood::Plain };
    let sentences: Vec<String> = renewed.into_iter().chain(stayed).collect();
    Lead::new("Page cache", sentences.join(" "), mood)
}

/// Describes the best of several treatments, with its median and the baseline's.
fn best(of: &BestTreatment) -> Lead {
    let BestTreatment { workload, metric, unit, treatment, baseline, .. } = of;
    let value =
        format!("{treatment}, with a median {workload} {metric} of {} {unit}", figure(of.median));
    let (sentence, mood) = if treatment == baseline {
        (format!("{value}: the baseline; no other treatment has a better median."), Mood::Plain)
    } else {
        let (shown, mood) = match of.is_shown {
            true => ("better than the baseline", Mood::Good),
            false => ("not shown to be better than the baseline", Mood::Odd),
        };
        let interval = of.interval_percent.map(|[lo, hi]| words::range(&Interval { lo, hi }));
        let interval = interval.map_or_else(String::new, |interval| format!(" ({interval})"));
        let change = of
            .change_percent
            .map_or_else(String::new, |change| format!(": {}{interval}", percent(change)));
        let has = format!("which has {} {unit}", figure(of.baseline_median));
        (format!("{value}: {shown}, {baseline}, {has}{change}."), mood)
    };
    Lead::new("Best treatment", sentence, mood)
}

/// Describes the progress of a study that is not finished.
fn incomplete(finished: usize, planned: usize, reason: Option<&EndReason>) -> String {
    let done = format!("{finished} of {planned} blocks are finished");
    match reason {
        Some(EndReason::Precise) => format!("{done}: every interval was narrow enough."),
        Some(EndReason::NoneLeft) => {
            format!("{done}: no treatment was left that could be better than the baseline.")
        }
        Some(EndReason::BudgetSpent) => format!("{done}: the time limit was reached."),
        Some(EndReason::Failed(why)) => format!("{done}; it failed: {why}"),
        Some(EndReason::Interrupted | EndReason::Done) | None => {
            format!("{done}; it was interrupted.")
        }
    }
}

/// Describes the number of repeated samples, and whether repeating them changed the answer.
fn repeated(disturbed: usize, samples: usize, differ: &[EffectOf]) -> String {
    let named = |of: &EffectOf| {
        let change = change_words(EffectKind::Main, &of.change);
        format!("{} {} ({change})", of.workload, of.metric)
    };
    let mut names: Vec<String> = differ.iter().take(LISTED).map(named).collect();
    let more = differ.len().saturating_sub(LISTED);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    let consequence = if names.is_empty() {
        "if only first samples count, every verdict is the same.".to_owned()
    } else {
        format!("if only first samples count, these verdicts differ: {}.", names.join(", "))
    };
    format!(
        "{disturbed} of {} were disturbed, and repeated by a rule that does not look at the \
         value; {consequence}",
        count(samples, "sample")
    )
}

/// Describes a factor that cannot act: `numa_balancing cannot show an effect here: memory is on one
/// node; 0 → 1 costs at most 3.1 % (sched-pipe time-per-op).`
fn cannot_show(factor: &str, cost: Option<&CostBound>, summary: &StudySummary<'_>) -> String {
    let why = match summary.why_without_effect(factor) {
        Some(Notice::KnobWithoutEffect { reason, .. }) => no_effect(reason),
        Some(Notice::GuestOfOneNode { .. }) => "the guest's memory is on one node".to_owned(),
        Some(Notice::PolicyWithoutEffect) => "all memory is on one node".to_owned(),
        _ => "one of the machines has one node".to_owned(),
    };
    let cost = match cost {
        None => "there are no values for its cost yet".to_owned(),
        Some(CostBound::Most { metric, percent }) if *percent < 0.005 => {
            format!("it has no visible cost in {metric}")
        }
        Some(CostBound::Most { metric, percent: most }) => {
            format!("it costs at most {} ({metric})", words::unsigned(*most))
        }
        Some(CostBound::TooFew { blocks, needed }) => format!(
            "{} too few to bound its cost: at least {needed} are needed",
            if *blocks == 1 { "1 block is".to_owned() } else { format!("{blocks} blocks are") }
        ),
    };
    format!("{factor} cannot show an effect here ({why}); {cost}.")
}

/// Describes levels that are the same as far as the study knows: `No command mentions label (passed as
/// NUMALAB_LABEL). Unless one reads it, nothing differs between its levels, and changes of up to 24.2 %
/// (copy time) are noise of this machine.`
fn unmentioned(factor: &str, variable: &str, noise: Option<&MetricNoise>) -> String {
    let noise = match noise {
        None => "the blocks are too few to bound the noise".to_owned(),
        Some(MetricNoise { metric, percent }) => format!(
            "changes of up to {} ({metric}) are noise of this machine",
            words::unsigned(*percent)
        ),
    };
    format!(
        "No command mentions {factor} (passed as {variable}). Unless one reads it, nothing differs \
         between its levels, and {noise}."
    )
}

fn against_itself(
    metrics: usize,
    differing: usize,
    own: &OwnDifference,
    threshold: Option<f64>,
) -> String {
    let level = threshold.unwrap_or_default();
    let differs = format!(
        "Compared with itself, the baseline differs in {differing} of {} at the {} % level ({} \
         expected by chance).",
        count(metrics, "metric"),
        trimmed(100.0 * level),
        trimmed(level * metrics as f64)
    );
    match own {
        OwnDifference::TooFewBlocks { blocks, needed, greatest_percent } => {
            let greatest = greatest_percent.map_or_else(String::new, |greatest| {
                format!(
                    "; the baseline differed from itself by up to {}",
                    words::unsigned(greatest)
                )
            });
            format!("Too few blocks to tell ({blocks}; at least {needed} are needed){greatest}.")
        }
        OwnDifference::Least { percent: None } => differs,
        OwnDifference::Least { percent: Some([low, high]) } => {
            let [least, most] = [words::unsigned(*low), words::unsigned(*high)];
            let nothing = words::unsigned(0.0);
            match () {
                () if most == nothing => differs,
                () if least == nothing => format!(
                    "{differs} In some metrics effects smaller than {most} could not be detected."
                ),
                () if least == most => {
                    format!("{differs} An effect smaller than {least} could not be detected.")
                }
                () => format!(
                    "{differs} Effects smaller than {least} to {most} could not be detected, \
                     depending on the metric."
                ),
            }
        }
    }
}
