//! Answers in words.

use numalab_analysis::study::{Effect, EffectKind, StudySummary, Subject};
use numalab_record::study::{EndReason, Entry};
use numalab_stats::{Comparison, Ground, Interval, Scale, Verdict};

use crate::number::{count, figure, percent, trimmed};
use crate::page::{Lead, Mood};

/// Metrics that a sentence names at most.
const LISTED: usize = 4;

/// The question's answer, then what explains it, worst first within each change.
pub(super) fn conclusions(summary: &StudySummary<'_>) -> Vec<Lead> {
    let mut by_label: Vec<(&str, Vec<(&Subject, &Effect)>)> = Vec::new();
    for (subject, effect) in summary.answers() {
        match by_label.iter_mut().find(|(label, _)| *label == effect.label) {
            Some((_, found)) => found.push((subject, effect)),
            None => by_label.push((&effect.label, vec![(subject, effect)])),
        }
    }
    if by_label.is_empty() {
        return vec![Lead::new(
            "Answer",
            "No block is finished: nothing can be said yet.",
            Mood::Odd,
        )];
    }
    let explained = by_label.iter().filter_map(|(label, found)| {
        let rest: Vec<_> = found.iter().copied().filter(|(s, _)| !is_asked(summary, s)).collect();
        let is_decided = |(_, effect): &(&Subject, &Effect)| {
            !matches!(effect.found.verdict, Verdict::Inconclusive { .. })
        };
        let is_primary_known = rest.len() < found.len();
        let says = !is_primary_known || rest.iter().any(is_decided);
        says.then(|| family(label, &rest))
    });
    std::iter::once(answer(summary)).chain(best(summary)).chain(explained).collect()
}

/// Whether a metric answers the question.
fn is_asked(summary: &StudySummary<'_>, subject: &Subject) -> bool {
    summary.asked().is_some_and(|asked| std::ptr::eq(asked, subject))
}

/// The best of several treatments, with its value and the baseline's.
fn best(summary: &StudySummary<'_>) -> Option<Lead> {
    let treatments = &summary.document.run.treatments;
    let best = summary.best().filter(|_| treatments.len() > 2)?;
    let unit = &best.subject.quantity.unit;
    let name = |treatment: usize| treatments.get(treatment).map_or("", |t| t.name.as_str());
    let title = best.subject.title();
    let value = format!(
        "{}, with a median {title} of {} {unit}",
        name(best.treatment),
        figure(best.median)
    );
    let Some(effect) = best.effect.filter(|_| best.treatment > 0) else {
        let sentence = format!("{value}: the baseline; no other treatment has a better median.");
        return Some(Lead::new("Best treatment", sentence, Mood::Plain));
    };
    let (shown, mood) = match best.is_shown() {
        true => ("better than the baseline", Mood::Good),
        false => ("not shown to be better than the baseline", Mood::Odd),
    };
    let sentence = format!(
        "{value}: {shown}, {}, which has {} {unit}: {}.",
        name(0),
        figure(best.baseline),
        change_with_interval(&effect.found)
    );
    Some(Lead::new("Best treatment", sentence, mood))
}

/// The question answered on the metric that it is about, a sentence a change.
fn answer(summary: &StudySummary<'_>) -> Lead {
    let asked: Vec<_> = summary.answers().filter(|(s, _)| is_asked(summary, s)).collect();
    if asked.is_empty() {
        let what = match &summary.document.run.rules.primary {
            Some(primary) => format!("{primary}, which answers the question, has no values."),
            None => "The study names no metric that answers its question (rules.primary); all \
                     of them are tested together."
                .to_owned(),
        };
        return Lead::new("Answer", what, Mood::Odd);
    }
    let sentences: Vec<String> =
        asked.iter().map(|(subject, effect)| sentence(summary, subject, effect)).collect();
    let has = |wanted| asked.iter().any(|(_, effect)| effect.found.verdict == wanted);
    let is_settled = asked.iter().all(|(_, e)| e.found.verdict == Verdict::Equivalent);
    let mood = match (has(Verdict::Worse), has(Verdict::Better)) {
        (true, _) => Mood::Bad,
        (false, true) => Mood::Good,
        (false, false) if is_settled => Mood::Fine,
        (false, false) => Mood::Odd,
    };
    Lead::new("Answer", sentences.join(" "), mood)
}

/// `alloc blind → numa: better; test_numa time changes by -46.7 % (medians 9.1 → 4.9 s; 96.8 %
/// interval: -48 to -45 %).`
fn sentence(summary: &StudySummary<'_>, subject: &Subject, effect: &Effect) -> String {
    let word = match effect.found.verdict {
        Verdict::Better => "better".to_owned(),
        Verdict::Worse => "worse".to_owned(),
        Verdict::Equivalent => {
            format!("no change that matters (within {} %)", trimmed(subject.margin_percent))
        }
        Verdict::Inconclusive { .. } => format!("not decided ({})", needed(&effect.found)),
    };
    let medians = effect.sides.and_then(|(baseline, candidate)| {
        let [before, after] = [subject.median(baseline)?, subject.median(candidate)?];
        let unit = &subject.quantity.unit;
        Some(format!("medians {} → {} {unit}", figure(before), figure(after)))
    });
    let interval = effect.found.percent_interval();
    let interval =
        interval.map(|interval| format!("{} interval: {}", level(summary), range(&interval)));
    let known: Vec<String> = medians.into_iter().chain(interval).collect();
    let known = if known.is_empty() { String::new() } else { format!(" ({})", known.join("; ")) };
    let change = change(&effect.found);
    format!("{}: {word}; {} changes by {change}{known}.", effect.label, subject.title())
}

fn family(label: &str, found: &[(&Subject, &Effect)]) -> Lead {
    let with = |wanted: fn(Verdict) -> bool| -> Vec<&(&Subject, &Effect)> {
        found.iter().filter(|(_, effect)| wanted(effect.found.verdict)).collect()
    };
    let worse = with(|verdict| verdict == Verdict::Worse);
    let better = with(|verdict| verdict == Verdict::Better);
    let equal = with(|verdict| verdict == Verdict::Equivalent);
    let open = with(|verdict| matches!(verdict, Verdict::Inconclusive { .. }));
    let named = |effects: &[&(&Subject, &Effect)]| {
        let one = |(subject, effect): &(&Subject, &Effect)| {
            format!("{} {}", subject.title(), change_with_interval(&effect.found))
        };
        let names: Vec<String> = effects.iter().map(|effect| one(effect)).collect();
        names.join("; ")
    };
    let mut parts = Vec::new();
    if !worse.is_empty() {
        parts.push(format!("Worse: {}.", named(&worse)));
    }
    if !better.is_empty() {
        parts.push(format!("Better: {}.", named(&better)));
    }
    if !equal.is_empty() {
        let titles: Vec<String> = equal
            .iter()
            .map(|(subject, _)| {
                format!("{} (within {} %)", subject.title(), trimmed(subject.margin_percent))
            })
            .collect();
        parts.push(format!("No change that matters: {}.", titles.join(", ")));
    }
    if !open.is_empty() {
        parts.push(format!("Not decided: {}.", undecided(&open)));
    }
    let mood = match (worse.is_empty(), better.is_empty(), open.is_empty()) {
        (false, ..) => Mood::Bad,
        (true, false, _) => Mood::Good,
        (true, true, true) => Mood::Fine,
        (true, true, false) => Mood::Odd,
    };
    Lead::new(label, parts.join(" "), mood)
}

/// `redis GET rps, redis SET rps (9 blocks are the least); chase latency (about 8 more blocks)`.
fn undecided(open: &[&(&Subject, &Effect)]) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (subject, effect) in open {
        let needed = needed(&effect.found);
        match groups.iter_mut().find(|(takes, _)| *takes == needed) {
            Some((_, titles)) => titles.push(subject.title()),
            None => groups.push((needed, vec![subject.title()])),
        }
    }
    let groups: Vec<String> =
        groups.iter().map(|(needed, titles)| format!("{} ({needed})", titles.join(", "))).collect();
    groups.join("; ")
}

/// The confidence of a study's intervals: `96.8 %`.
pub(super) fn level(summary: &StudySummary<'_>) -> String {
    format!("{} %", trimmed((summary.confidence.get() * 10_000.0).round() / 100.0))
}

/// `-3.1 % (-4.0 to -2.2 %)`.
pub(super) fn change_with_interval(found: &Comparison) -> String {
    let change = change(found);
    match found.percent_interval() {
        Some(interval) => format!("{change} ({})", range(&interval)),
        None => change,
    }
}

/// `-4.0 to -2.2 %`.
pub(super) fn range(interval: &Interval) -> String {
    format!("{} to {}", percent(interval.lo).trim_end_matches(" %"), percent(interval.hi))
}

/// `-3.1 %`; a difference where there is no ratio.
pub(super) fn change(found: &Comparison) -> String {
    match (found.percent(), found.scale) {
        (Some(change), _) => percent(change),
        (None, Scale::Difference) => format!("{:+.3}", found.effect),
        (None, Scale::LogRatio) => "–".to_owned(),
    }
}

/// What an answer that is none still takes.
fn needed(found: &Comparison) -> String {
    match (found.verdict, found.ground) {
        (_, Ground::TooFew { needed }) => format!("{needed} blocks are the least"),
        (_, Ground::Gated) => "the primary metric comes first".to_owned(),
        (Verdict::Inconclusive { further_blocks: Some(further) }, _) => {
            format!("about {further} more {}", if further == 1 { "block" } else { "blocks" })
        }
        _ => "no number of blocks would do".to_owned(),
    }
}

/// `better`, `equivalent within 2 %`, `inconclusive: about 8 more blocks`.
pub(super) fn verdict(found: &Comparison, margin_percent: f64) -> String {
    let word = match found.verdict {
        Verdict::Better => "better".to_owned(),
        Verdict::Worse => "worse".to_owned(),
        Verdict::Equivalent => format!("equivalent within {} %", trimmed(margin_percent)),
        Verdict::Inconclusive { .. } => return format!("inconclusive: {}", needed(found)),
    };
    match found.ground {
        Ground::NoVariance => format!("{word} (no variance)"),
        _ => word,
    }
}

/// A verdict as a terminal has room for: `inconclusive, +8 blocks`.
pub(super) fn short_verdict(found: &Comparison) -> String {
    let word = match (found.verdict, found.ground) {
        (Verdict::Better, _) => "better",
        (Verdict::Worse, _) => "worse",
        (Verdict::Equivalent, _) => "equivalent",
        (_, Ground::TooFew { needed }) => return format!("inconclusive, {needed} blocks at least"),
        (Verdict::Inconclusive { further_blocks: Some(further) }, _) => {
            return format!("inconclusive, +{}", count(further, "block"));
        }
        _ => "inconclusive",
    };
    match found.ground {
        Ground::NoVariance => format!("{word} (no variance)"),
        _ => word.to_owned(),
    }
}

/// What the A/A arm says, in a sentence.
pub(super) fn aa_sentence(summary: &StudySummary<'_>) -> Option<String> {
    let arms: Vec<_> = summary.subjects.iter().filter_map(|s| s.aa.as_ref()).collect();
    if arms.is_empty() {
        return None;
    }
    let wrong = arms.iter().filter(|arm| arm.is_false_positive()).count();
    let least: Vec<f64> =
        arms.iter().filter_map(|arm| arm.found.least_detectable_percent()).collect();
    let expected = 0.05 * arms.len() as f64;
    let mut text = format!(
        "The baseline against itself differs in {wrong} of {} at the 5 % level ({} expected by \
         chance).",
        count(arms.len(), "metric"),
        trimmed(expected)
    );
    let (low, high) = least
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
    let shown = |least: f64| percent(least).trim_start_matches('+').to_owned();
    let [low, high] = [shown(low), shown(high)];
    if low == high {
        text.push_str(&format!(" An effect smaller than {low} could not be seen."));
    } else if !least.is_empty() {
        text.push_str(&format!(
            " Effects smaller than {low} to {high} could not be seen, depending on the metric."
        ));
    }
    Some(text)
}

/// How many samples were disturbed, and whether it matters.
pub(super) fn disturbance_sentence(summary: &StudySummary<'_>) -> String {
    let (taken, disturbed) = summary
        .disturbed()
        .into_iter()
        .fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
    if disturbed == 0 {
        return format!("None of {} was disturbed.", count(taken, "sample"));
    }
    let samples = count(taken, "sample");
    if summary.document.run.rules.repeats == 0 {
        return format!("{disturbed} of {samples} were disturbed, and none was to be taken again.");
    }
    let mut differ: Vec<String> = summary
        .answers()
        .filter(|(_, effect)| effect.verdicts_differ())
        .map(|(subject, effect)| format!("{} ({})", subject.title(), effect.label))
        .collect();
    let more = differ.len().saturating_sub(LISTED);
    differ.truncate(LISTED);
    if more > 0 {
        differ.push(format!("and {more} more"));
    }
    let consequence = if differ.is_empty() {
        "with the samples as they first came, every verdict is the same.".to_owned()
    } else {
        format!("with the samples as they first came, other verdicts: {}.", differ.join(", "))
    };
    format!(
        "{disturbed} of {samples} were disturbed, and taken again by a rule that does not look \
         at the value; {consequence}"
    )
}

/// How far the study is, where it is not at its end.
pub(super) fn progress_sentence(summary: &StudySummary<'_>) -> Option<String> {
    let rules = &summary.document.run.rules;
    let judged = summary.subjects.iter().map(Subject::blocks).min().unwrap_or(0);
    let last = summary.document.journal.iter().rev().find_map(|entry| match entry {
        Entry::Ended { reason, .. } => Some(reason),
        _ => None,
    });
    let ended_last = matches!(summary.document.journal.last(), Some(Entry::Ended { .. }));
    let done = format!("{judged} of {} blocks are finished", rules.blocks);
    match last.filter(|_| ended_last) {
        Some(EndReason::Done) => None,
        Some(EndReason::Precise) => Some(format!("{done}: every interval was narrow enough.")),
        Some(EndReason::BudgetSpent) => Some(format!("{done}: the time allowed was spent.")),
        Some(EndReason::Failed(why)) => Some(format!("{done}; it failed: {why}")),
        Some(EndReason::Interrupted) | None => Some(format!("{done}; it was interrupted.")),
    }
}

/// A heading.
pub(super) fn title(kind: EffectKind) -> &'static str {
    match kind {
        EffectKind::Main => "Effects",
        EffectKind::Within => "Effects where the other factors stand still",
        EffectKind::Together => "Several changes at once, against the baseline",
        EffectKind::Interaction => "Interactions: by how much one change makes another larger",
        EffectKind::Trend => "Trends: the change with each doubling",
    }
}
