//! The answers of a study in words.

use numalab_page::number::{count, figure, percent, trimmed};
use numalab_page::{Lead, Mood};
use numalab_stats::{Comparison, Ground, Interval, Scale, Verdict};

use crate::label::{self, change_words, listed};
use crate::study::{Effect, EffectKind, StudySummary, Subject};

/// Maximum number of additional blocks to suggest; an answer that needs more is not worth its time.
const WORTH_RUNNING: usize = 200;

/// Suggests a remedy if more blocks would not help.
pub(super) fn undecidable(summary: &StudySummary<'_>) -> Option<Lead> {
    let is_asked = |(subject, _): &(&Subject, &Effect)| {
        summary.asked().is_none_or(|asked| std::ptr::eq(asked, *subject))
    };
    let asked: Vec<_> = summary.answers().filter(is_asked).collect();
    let is_far = |(_, effect): &(&Subject, &Effect)| match effect.found.verdict {
        Verdict::Inconclusive { further_blocks: Some(further) } => further > WORTH_RUNNING,
        _ => false,
    };
    asked.iter().any(is_far).then(|| {
        let sentence = "More blocks would not: identical runs differ here by more than the effect \
             in question. A machine without other load would, or a metric that other load does \
             not affect: instructions or CPU time (of perf stat or time, with a pattern that \
             reads it), or virtual time (numalab emulate -- COMMAND).";
        Lead::new("What would decide", sentence, Mood::Odd)
    })
}

/// Returns the explanation of the answer, worst first within each change; if the factor cannot act,
/// only effects with a verdict.
pub(super) fn explained(summary: &StudySummary<'_>, cannot_show: bool) -> Vec<Lead> {
    let mut by_change: Vec<Vec<(&Subject, &Effect)>> = Vec::new();
    for (subject, effect) in summary.answers() {
        match by_change.iter_mut().find(|found| found[0].1.change == effect.change) {
            Some(found) => found.push((subject, effect)),
            None => by_change.push(vec![(subject, effect)]),
        }
    }
    let explained = by_change.iter().filter_map(|found| {
        let rest: Vec<_> = found.iter().copied().filter(|(s, _)| !is_asked(summary, s)).collect();
        let is_primary_known = rest.len() < found.len();
        let says = (!is_primary_known && !cannot_show) || rest.iter().any(is_decided);
        says.then(|| family(&label(found[0].1), &rest))
    });
    explained.collect()
}

/// Returns an effect's change: `pages 4k → 2m`.
pub(super) fn label(effect: &Effect) -> String {
    change_words(effect.kind, &effect.change)
}

/// Returns `true` if a metric answers the question.
fn is_asked(summary: &StudySummary<'_>, subject: &Subject) -> bool {
    summary.asked().is_some_and(|asked| std::ptr::eq(asked, subject))
}

/// Returns the answer on the metric that answers the question, one sentence per change.
pub(super) fn answer(summary: &StudySummary<'_>) -> Option<Lead> {
    let asked: Vec<_> = summary.answers().filter(|(s, _)| is_asked(summary, s)).collect();
    if asked.is_empty() {
        return None;
    }
    let sentences: Vec<String> =
        asked.iter().map(|(subject, effect)| sentence(summary, subject, effect)).collect();
    let mood = mood_of(asked.iter().map(|(_, effect)| effect.found.verdict));
    Some(Lead::new("Answer", sentences.join(" "), mood))
}

/// Returns `true` unless the verdict is inconclusive.
pub(super) fn is_decided((_, effect): &(&Subject, &Effect)) -> bool {
    effect.found.verdict.is_decided()
}

/// Returns the mood of several verdicts: that of the worst.
pub(super) fn mood_of(verdicts: impl IntoIterator<Item = Verdict>) -> Mood {
    let verdicts: Vec<Verdict> = verdicts.into_iter().collect();
    let is_settled = verdicts.iter().all(|verdict| *verdict == Verdict::Equivalent);
    match (verdicts.contains(&Verdict::Worse), verdicts.contains(&Verdict::Better)) {
        (true, _) => Mood::Bad,
        (false, true) => Mood::Good,
        (false, false) if is_settled => Mood::Fine,
        (false, false) => Mood::Odd,
    }
}

/// Returns a verdict for use in a sentence.
pub(super) fn verdict_words(found: &Comparison, margin_percent: f64) -> String {
    match found.verdict {
        Verdict::Better => "better".to_owned(),
        Verdict::Worse => "worse".to_owned(),
        Verdict::Equivalent => {
            format!("no change that matters (within {} %)", trimmed(margin_percent))
        }
        Verdict::Inconclusive { .. } => format!("not decided ({})", needed(found)),
    }
}

/// Appends differing tails to a verdict of no difference, because the median alone says too
/// little.
pub(super) fn with_tail(word: String, effect: &Effect) -> String {
    match (&effect.tail, effect.found.verdict) {
        (Some(tail), Verdict::Equivalent | Verdict::Inconclusive { .. }) => {
            format!("{word} by medians, {}", label::tail(tail))
        }
        _ => word,
    }
}

/// Returns the verdicts of several effects, each with the levels at which it holds: `better at 8
/// and 16, not decided (about 2 more blocks) at 4`, `better at each`.
pub(super) fn verdicts(named: &[(&Effect, String)], margin_percent: f64, at: &str) -> String {
    let mut verdicts: Vec<(String, Vec<String>)> = Vec::new();
    for (effect, name) in named {
        let word = with_tail(verdict_words(&effect.found, margin_percent), effect);
        match verdicts.iter_mut().find(|(known, _)| *known == word) {
            Some((_, names)) => names.push(name.clone()),
            None => verdicts.push((word, vec![name.clone()])),
        }
    }
    let said: Vec<String> = match &verdicts[..] {
        [(word, _)] => vec![format!("{word} {at} each")],
        several => several.iter().map(|(word, of)| format!("{word} {at} {}", listed(of))).collect(),
    };
    said.join(", ")
}

/// Describes one effect: `alloc blind → numa: better; test_numa time changes by -46.7 % (medians
/// 9.1 → 4.9 s; 96.8 % interval: -48 to -45 %).`
fn sentence(summary: &StudySummary<'_>, subject: &Subject, effect: &Effect) -> String {
    let word = with_tail(verdict_words(&effect.found, subject.margin_percent), effect);
    let medians = effect.sides.and_then(|(baseline, candidate)| {
        Some([subject.median(baseline)?, subject.median(candidate)?])
    });
    let is_paired = medians.is_some_and(|medians| differs(medians, &effect.found));
    let unit = &subject.quantity.unit;
    let medians = medians
        .map(|[before, after]| format!("medians {} → {} {unit}", figure(before), figure(after)))
        .map(|medians| medians.trim_end().to_owned());
    let interval = effect.found.percent_interval();
    let interval =
        interval.map(|interval| format!("{} interval: {}", level(summary), range(&interval)));
    let known: Vec<String> = medians.into_iter().chain(interval).collect();
    let known = if known.is_empty() { String::new() } else { format!(" ({})", known.join("; ")) };
    let (change, over) = (change(subject, &effect.found), averaged(summary, effect));
    let within = if is_paired { " within blocks" } else { "" };
    let title = subject.title();
    format!("{}: {word}; {title} changes by {change}{within}{over}{known}.", label(effect))
}

/// Returns true if the ratio of the medians over all blocks differs by a percentage point or more
/// from the change, which comes from pairs within blocks.
fn differs([before, after]: [f64; 2], found: &Comparison) -> bool {
    let change = found.percent();
    change.is_some_and(|change| (100.0 * (after / before - 1.0) - change).abs() >= 1.0)
}

/// Names the factors whose levels a main effect averages: ` on average over guest`.
fn averaged(summary: &StudySummary<'_>, effect: &Effect) -> String {
    let is_changed = |name: &str| effect.change.changed.iter().any(|of| of.factor == name);
    let factors = summary.document.run.factors.iter().map(|factor| factor.name.as_str());
    let others: Vec<&str> = factors.filter(|name| !is_changed(name)).collect();
    match (effect.kind, others.is_empty()) {
        (EffectKind::Main, false) => format!(" on average over {}", others.join(" and ")),
        (EffectKind::Main, true)
        | (
            EffectKind::Within | EffectKind::Together | EffectKind::Interaction | EffectKind::Trend,
            _,
        ) => String::new(),
    }
}

fn family(label: &str, found: &[(&Subject, &Effect)]) -> Lead {
    let with = |wanted: fn(Verdict) -> bool| -> Vec<&(&Subject, &Effect)> {
        found.iter().filter(|(_, effect)| wanted(effect.found.verdict)).collect()
    };
    let worse = with(|verdict| verdict == Verdict::Worse);
    let better = with(|verdict| verdict == Verdict::Better);
    let equal = with(|verdict| verdict == Verdict::Equivalent);
    let open = with(|verdict| !verdict.is_decided());
    let named = |effects: &[&(&Subject, &Effect)]| {
        let one = |(subject, effect): &(&Subject, &Effect)| {
            format!("{} {}", subject.title(), change_with_interval(subject, &effect.found))
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
            .map(|(subject, effect)| {
                let within = format!("within {} %", trimmed(subject.margin_percent));
                format!("{} ({})", subject.title(), with_tail(within, effect))
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

/// Lists open questions: `redis GET rps, redis SET rps (at least 9 blocks are needed); chase
/// latency (about 8 more blocks)`.
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

/// Returns the confidence level of a study's intervals: `96.8 %`.
pub(super) fn level(summary: &StudySummary<'_>) -> String {
    format!("{} %", trimmed((summary.confidence.get() * 10_000.0).round() / 100.0))
}

/// Formats a change with its interval: `-3.1 % (-4.0 to -2.2 %)`.
pub(super) fn change_with_interval(subject: &Subject, found: &Comparison) -> String {
    let change = change(subject, found);
    match found.percent_interval() {
        Some(interval) => format!("{change} ({})", range(&interval)),
        None => change,
    }
}

/// Formats a percentage without a sign: `3.10 %`.
pub(super) fn unsigned(value: f64) -> String {
    percent(value).trim_start_matches('+').to_owned()
}

/// Formats an interval: `-4.0 to -2.2 %`.
pub(super) fn range(interval: &Interval) -> String {
    format!("{} to {}", percent(interval.lo).trim_end_matches(" %"), percent(interval.hi))
}

/// Formats a change, `-3.1 %`; as a difference, `+98.0 points`, if there is no ratio.
pub(super) fn change(subject: &Subject, found: &Comparison) -> String {
    match (found.percent(), found.scale) {
        (Some(change), _) => percent(change),
        (None, Scale::Difference) => {
            let sign = if found.effect < 0.0 { "" } else { "+" };
            // A difference of shares is not a change in percent.
            let unit = match subject.quantity.unit.as_str() {
                "%" | "percent" => "points",
                unit => unit,
            };
            format!("{sign}{} {unit}", figure(found.effect)).trim_end().to_owned()
        }
        (None, Scale::LogRatio) => "–".to_owned(),
    }
}

/// Describes the blocks that an inconclusive answer still needs.
fn needed(found: &Comparison) -> String {
    match (found.verdict, found.ground) {
        (_, Ground::TooFew { needed }) => format!("at least {needed} blocks are needed"),
        (_, Ground::Gated) => "the answer that it explains comes first".to_owned(),
        (Verdict::Inconclusive { further_blocks: Some(further) }, _) if further > WORTH_RUNNING => {
            format!("about {further} more blocks, more than are worth running")
        }
        (Verdict::Inconclusive { further_blocks: Some(further) }, _) => {
            format!("about {further} more {}", if further == 1 { "block" } else { "blocks" })
        }
        (
            Verdict::Inconclusive { further_blocks: None }
            | Verdict::Better
            | Verdict::Worse
            | Verdict::Equivalent,
            _,
        ) => "more blocks would not settle it".to_owned(),
    }
}

/// Returns a verdict with its detail: `better`, `equivalent within 2 %`, `inconclusive: about 8
/// more blocks`.
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

/// Describes the change and the verdict of a run by itself: `-3.1 %, equivalent within 2 %`.
pub(in crate::study) fn own_words(subject: &Subject, found: &Comparison) -> String {
    format!("{}, {}", change(subject, found), verdict(found, subject.margin_percent))
}

/// Returns a verdict in the width of a terminal: `inconclusive, +8 blocks`.
pub(super) fn short_verdict(found: &Comparison) -> String {
    let word = match (found.verdict, found.ground) {
        (Verdict::Better, _) => "better",
        (Verdict::Worse, _) => "worse",
        (Verdict::Equivalent, _) => "equivalent",
        (_, Ground::TooFew { needed }) => return format!("inconclusive, at least {needed} blocks"),
        (Verdict::Inconclusive { further_blocks: Some(further) }, _) if further > WORTH_RUNNING => {
            return "inconclusive, too noisy".to_owned();
        }
        (Verdict::Inconclusive { further_blocks: Some(further) }, _) => {
            return format!("inconclusive, +{}", count(further, "block"));
        }
        (Verdict::Inconclusive { further_blocks: None }, _) => "inconclusive",
    };
    match found.ground {
        Ground::NoVariance => format!("{word} (no variance)"),
        _ => word.to_owned(),
    }
}

pub(super) fn title(kind: EffectKind) -> &'static str {
    match kind {
        EffectKind::Main => "Effects",
        EffectKind::Within => "Effects with the other factors fixed",
        EffectKind::Together => "Several changes at once, against the baseline",
        EffectKind::Interaction => {
            "Interactions: how much one change adds to the effect of \
             another"
        }
        EffectKind::Trend => "Trends: the change with each doubling",
    }
}
