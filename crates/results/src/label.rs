//! Labels of cells, their parameters and verdicts, the same in every format.

use numalab_page::number::{count, percent, size, trimmed};
use numalab_page::{Lead, Mood};
use numalab_record::{CoreCell, Experiment, LatencyCell, Metric, Team, WorkerPlan};
use numalab_stats::Verdict;

use crate::compare::{AnswerWord, Compared, ComparedCell};
use crate::shape::{Tail, TwoModes};
use crate::study::{Change, EffectKind};

/// Describes a change: `pages 4k → 2m`, `guest off → on where host=on`.
pub fn change_words(kind: EffectKind, change: &Change) -> String {
    let changed =
        change.changed.iter().map(|one| format!("{} {} → {}", one.factor, one.from, one.to));
    let joint = if kind == EffectKind::Interaction { " with " } else { ", " };
    let changed = changed.collect::<Vec<_>>().join(joint);
    if let Some(scale) = &change.scale {
        let of = if changed.is_empty() { String::new() } else { format!("effect of {changed} ") };
        return format!("{of}with each doubling of {scale}");
    }
    let held = change.held.iter().map(|one| format!("{}={}", one.factor, one.level));
    let held = held.collect::<Vec<_>>().join(", ");
    if held.is_empty() { changed } else { format!("{changed} where {held}") }
}

/// Describes the comparison of tails: `tails worse`.
pub(crate) fn tail(of: &Tail) -> &'static str {
    match (of.is_shown, of.is_worse) {
        (true, true) => "tails worse",
        (true, false) => "tails better",
        (false, true) => "tails may be worse",
        (false, false) => "tails may be better",
    }
}

/// Joins items as `a`, `a and b`, or `a, b and c`.
pub(crate) fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Makes a clause a sentence: with a full stop, and with a capital letter unless it begins with a
/// name such as `eth0` or `numa_balancing`.
pub(crate) fn whole_sentence(clause: &str) -> String {
    let first = clause.split([' ', ',', ':']).next().unwrap_or_default();
    match first.chars().all(|letter| letter.is_ascii_lowercase()) {
        true => format!("{}.", capital(clause)),
        false => format!("{clause}."),
    }
}

/// Capitalises the first letter: `Tails worse`.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Adds to a verdict how the tails compare: `equivalent by medians, tails worse`.
pub(crate) fn with_tail(verdict: &str, tail: Option<&Tail>) -> String {
    tail.map_or_else(
        || verdict.to_owned(),
        |of| format!("{verdict} by medians, {}", self::tail(of)),
    )
}

pub(crate) fn tail_lead(of: &Tail, sentence: String) -> Lead {
    let mood = if of.is_shown_worse() { Mood::Bad } else { Mood::Odd };
    Lead::new(capital(tail(of)), sentence, mood)
}

/// Describes the values of differing tails: `p99.9 101 to 900`.
pub(crate) fn tail_values(of: &Tail, number: impl Fn(f64) -> String) -> String {
    let percentile = format!("p{}", trimmed(of.percentile));
    let [baseline, candidate] = of.values.map(number);
    match of.is_shown {
        true => format!("{percentile} {baseline} to {candidate}"),
        false => format!(
            "{percentile} may differ by {}, with too few values to tell",
            percent(of.change_percent)
        ),
    }
}

/// Describes two groups of values: `70 % of the values near 100 ns, 30 % near 140 ns`.
pub(crate) fn two_modes(of: &TwoModes, unit: &str, number: impl Fn(f64) -> String) -> String {
    let [lower, upper] = of.centres.map(|centre| format!("{} {unit}", number(centre)));
    let percent = (100.0 * of.upper_share).round();
    let (lower, upper, rest) = (lower.trim_end(), upper.trim_end(), 100.0 - percent);
    match of.several {
        true => format!(
            "more than two groups: {rest} % of the values with median {lower}, {percent} % with \
             median {upper}"
        ),
        false => format!("{rest} % of the values near {lower}, {percent} % near {upper}"),
    }
}

/// Describes whether chasers run alone or together.
pub(crate) fn team(team: Team) -> &'static str {
    match team {
        Team::Serial => "one at a time",
        Team::Concurrent => "all at once",
    }
}

/// Describes a worker: `cpu 3 → node 1`.
pub(crate) fn worker(worker: WorkerPlan) -> String {
    format!("cpu {} → node {}", worker.cpu, worker.node)
}

/// Describes the parameters of a chase, without the worker: `random over 1G, 2m pages`.
pub(crate) fn chase(cell: &LatencyCell) -> String {
    format!("{} over {}, {} pages", cell.pattern, size(cell.size_bytes), cell.pages.name())
}

/// Summarises workers: `cpu 0 → node 0`, `8 cpus → node 1`, `8 cpus → 2 nodes`.
pub(crate) fn workers(workers: &[WorkerPlan]) -> String {
    let [first, ..] = workers else {
        return "no worker".to_owned();
    };
    let mut nodes: Vec<_> = workers.iter().map(|worker| worker.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    match (workers.len(), nodes.len()) {
        (1, _) => worker(*first),
        (cpus, 1) => format!("{cpus} cpus → node {}", first.node),
        (cpus, nodes) => format!("{cpus} cpus → {nodes} nodes"),
    }
}

/// Describes a cell in one line.
pub(crate) fn experiment(experiment: &Experiment) -> String {
    match experiment {
        Experiment::Latency(cell) => {
            format!("{}, {}, {}", worker(cell.worker), chase(cell), team(cell.team))
        }
        Experiment::Bandwidth(cell) => format!(
            "{} {}, {}, {} each, {} pages, {}",
            cell.kernel.name(),
            cell.pattern,
            workers(&cell.workers),
            size(cell.size_bytes),
            cell.pages.name(),
            cell.isa.0
        ),
        Experiment::Loaded(cell) => format!(
            "{} against {} {}, {}",
            worker(cell.chaser),
            workers(&cell.load),
            cell.kernel.name(),
            delay(cell.delay)
        ),
        Experiment::C2c(cell) => {
            format!("cpu {} ↔ cpu {}, line on node {}", cell.from, cell.to, cell.home)
        }
        Experiment::Core(CoreCell { cpu }) => format!("core of cpu {cpu}"),
        Experiment::Frames(cell) => match cell.size_bytes {
            0 => format!("{}, {}", cell.work, count(cell.cpus.len(), "cpu")),
            bytes => {
                let cpus = count(cell.cpus.len(), "cpu");
                format!("{}, {cpus}, {} each", cell.work, size(bytes))
            }
        },
    }
}

/// Describes the throttle of load workers.
pub(crate) fn delay(delay: Option<u32>) -> String {
    match delay {
        None => "no load".to_owned(),
        Some(0) => "full load".to_owned(),
        Some(pauses) => format!("delay {pauses}"),
    }
}

pub(crate) fn mood(verdict: Verdict) -> Mood {
    match verdict {
        Verdict::Better => Mood::Good,
        Verdict::Worse => Mood::Bad,
        Verdict::Equivalent => Mood::Fine,
        Verdict::Inconclusive { .. } => Mood::Odd,
    }
}

/// Returns a verdict's name, which is stable across versions.
pub(crate) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive { .. } => "inconclusive",
    }
}

pub(crate) fn answer_mood(answer: AnswerWord) -> Mood {
    match answer {
        AnswerWord::Better => Mood::Good,
        AnswerWord::Worse => Mood::Bad,
        AnswerWord::Equivalent => Mood::Fine,
        AnswerWord::Inconclusive | AnswerWord::SeenOnce => Mood::Odd,
        AnswerWord::NotJudged => Mood::Plain,
    }
}

pub(crate) fn compared(row: &ComparedCell) -> String {
    match &row.of {
        Compared::Cell(cell) => experiment(&cell.experiment),
        Compared::Kind { kind, cells } => {
            let metric = row.metric.name();
            let has_one = *kind == metric || row.metric == Metric::RoundTrip;
            let metric = if has_one { String::new() } else { format!(" {metric}") };
            format!("{kind}{metric}, {}", count(*cells, "cell"))
        }
    }
}

#[cfg(test)]
mod tests;
