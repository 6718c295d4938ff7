//! Tables of a study, independent of format.

use std::collections::BTreeMap;

use numalab_page::number::{figure, percent};
use numalab_page::{Dot, Mood, RunOrder, Table};
use numalab_record::study::{Arm, Evidence, FactorKind, JournalEntry};
use numalab_stats::{Interval, Test};

use super::words;
use crate::label;
use crate::study::EffectKind;
use crate::study::{Effect, StudySummary, Subject};

/// Returns one row per effect, with the medians of both sides if all effects are between two
/// treatments.
pub(super) fn answers(summary: &StudySummary<'_>, effects: &[(&Subject, &Effect)]) -> Table {
    let paired = effects.iter().all(|(_, effect)| effect.sides.is_some());
    let rows = effects.iter().map(|(subject, effect)| {
        let mut row = vec![subject.title(), words::label(effect)];
        if let Some((baseline, candidate)) = effect.sides.filter(|_| paired) {
            row.extend([baseline, candidate].map(|at| median(subject, at)));
            row.push(subject.quantity.unit.clone());
        }
        row.extend([
            words::change(subject, &effect.found),
            interval(effect),
            plain(subject, effect),
        ]);
        row
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut table = Table::new(format!(
        "Change and {} interval from pairs within blocks; shaded in the drawing: the margin within \
         which a change counts as none",
        words::level(summary)
    ))
    .words("metric")
    .words("change of");
    if paired {
        table = table.figures("baseline").figures("changed").words("unit");
    }
    table.figures("change").figures("interval").words("verdict").rows(rows)
}

/// Returns effects at the width of a terminal, one table per change.
pub(super) fn short<'a>(effects: impl Iterator<Item = (&'a Subject, &'a Effect)>) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for (subject, effect) in effects {
        let change = words::label(effect);
        let row = vec![
            subject.title(),
            words::change(subject, &effect.found),
            interval(effect),
            words::with_tail(words::short_verdict(&effect.found), effect),
        ];
        match tables.iter_mut().find(|table| table.caption == change) {
            Some(table) => table.rows.push(row),
            None => tables.push(
                Table::new(change)
                    .words("metric")
                    .figures(["change", "interval"])
                    .words("verdict")
                    .rows([row]),
            ),
        }
    }
    tables
}

/// Returns effects on one metric at the width of a terminal.
pub(super) fn by_change(effects: &[(&Subject, &Effect)]) -> Vec<Table> {
    let Some((subject, _)) = effects.first() else { return Vec::new() };
    let rows = effects.iter().map(|(_, effect)| {
        vec![
            words::label(effect),
            words::change(subject, &effect.found),
            interval(effect),
            words::with_tail(words::short_verdict(&effect.found), effect),
        ]
    });
    let table = Table::new(subject.title()).words("change of").figures("change");
    vec![table.figures("interval").words("verdict").rows(rows)]
}

/// Minimum number of blocks for a bootstrap interval: with fewer, its coverage is only 75 to 94 %.
const BOOTSTRAP_BLOCKS: usize = 20;

/// Returns all effects of a kind, with every test.
pub(super) fn effects(summary: &StudySummary<'_>, kind: EffectKind) -> Table {
    let rows = summary.effects(kind).map(|(subject, effect)| {
        let mean = match (effect.found.percent(), effect.found.scale) {
            (Some(_), numalab_stats::Scale::LogRatio) => {
                let change = numalab_stats::percent_change;
                let value = percent(change(effect.bootstrap.value));
                let Interval { lo, hi } = effect.bootstrap.interval;
                let range = words::range(&Interval { lo: change(lo), hi: change(hi) });
                if subject.blocks() < BOOTSTRAP_BLOCKS {
                    value
                } else {
                    format!("{value} ({range})")
                }
            }
            _ => "–".to_owned(),
        };
        vec![
            subject.title(),
            words::label(effect),
            subject.blocks().to_string(),
            words::change(subject, &effect.found),
            interval(effect),
            mean,
            p(&effect.found.difference),
            p(&effect.permutation),
            p_value(effect.found.equivalence.p()),
            plain(subject, effect),
        ]
    });
    Table::new(words::title(kind))
        .words(["metric", "change of"])
        .figures(["blocks", "change", "interval", "geometric mean", "p, signed rank"])
        .figures(["p, permutation", "p, equivalence"])
        .words("verdict")
        .rows(rows)
}

/// Returns the median of every treatment on one metric, and its difference from the baseline.
pub(super) fn treatments(summary: &StudySummary<'_>, subject: &Subject) -> Table {
    let run = &summary.document.run;
    let rows = run.treatments.iter().enumerate().map(|(index, treatment)| {
        let mut row = vec![treatment.name.clone(), median(subject, index)];
        match against(subject, index) {
            Some(effect) => {
                row.extend([
                    words::change(subject, &effect.found),
                    interval(effect),
                    plain(subject, effect),
                ]);
            }
            None if index == 0 => {
                row.extend(["–".to_owned(), "–".to_owned(), "baseline".to_owned()]);
            }
            None => row.extend(["–".to_owned(), "–".to_owned(), "–".to_owned()]),
        }
        row
    });
    let mood = |index| against(subject, index).map(|effect| label::mood(effect.found.verdict));
    let moods = (0..run.treatments.len()).map(|index| mood(index).unwrap_or(Mood::Plain));
    let scaled = run.factors.iter().any(|factor| factor.kind == FactorKind::Scale);
    Table::new(format!(
        "{} in {}, {}; change against {}",
        subject.quantity.metric,
        subject.quantity.unit,
        subject.quantity.better,
        if scaled { "the baseline at the same number" } else { "the baseline" }
    ))
    .words("treatment")
    .figures(format!("median ({})", subject.quantity.unit))
    .figures(["change", "interval"])
    .words("verdict")
    .rows(rows)
    .moods(moods)
}

/// Returns the medians of metrics that are shown but not tested, one column per treatment.
pub(super) fn facts(summary: &StudySummary<'_>) -> Table {
    let treatments = &summary.document.run.treatments;
    let rows = summary.subjects.iter().filter(|subject| subject.is_fact).map(|subject| {
        let medians = (0..treatments.len()).map(|treatment| median(subject, treatment));
        [subject.title(), subject.quantity.unit.clone()].into_iter().chain(medians).collect()
    });
    let table = Table::new(
        "Medians; they follow from the treatments' definitions and are not \
         tested",
    );
    let table = table.words("fact").words("unit");
    let named = treatments.iter().fold(table, |table, treatment| table.figures(&*treatment.name));
    named.rows(rows)
}

/// Returns the effect of a treatment against the baseline, or else against the same treatment with
/// one factor at its first level.
fn against(subject: &Subject, treatment: usize) -> Option<&Effect> {
    let mut effects = subject.effects.iter();
    let of = |effect: &&Effect| effect.sides == Some((0, treatment));
    let within = |effect: &&Effect| effect.sides.is_some_and(|sides| sides.1 == treatment);
    effects.clone().find(of).or_else(|| effects.find(within))
}

/// Returns a verdict as words without a mark.
pub(super) fn plain(subject: &Subject, effect: &Effect) -> String {
    words::with_tail(words::verdict(&effect.found, subject.margin_percent), effect)
}

pub(super) fn blocks(subject: &Subject, effect: &Effect, caption: String) -> Table {
    let of = super::charts::blocks(subject, effect);
    let rows = of.changes.iter().enumerate().map(|(block, change)| {
        let change = match of.unit {
            None => percent(*change),
            Some(_) => format!("{change:+.4}"),
        };
        vec![(block + 1).to_string(), change]
    });
    Table::new(caption).figures("block").figures("change").rows(rows)
}

/// Returns the course of each treatment's samples over the run.
pub(super) fn order(of: &RunOrder, caption: String) -> Table {
    let rows = of.names.iter().enumerate().map(|(kind, name)| {
        let dots: Vec<&Dot> = of.dots.iter().filter(|dot| dot.kind == kind).collect();
        let end = |dot: Option<&&Dot>| dot.map_or_else(|| "–".to_owned(), |dot| figure(dot.value));
        let disturbed = dots.iter().filter(|dot| dot.disturbed).count();
        vec![
            name.clone(),
            dots.len().to_string(),
            disturbed.to_string(),
            end(dots.first()),
            end(dots.last()),
        ]
    });
    Table::new(caption)
        .words("treatment")
        .figures(["samples", "disturbed", "first", "last"])
        .rows(rows)
}

pub(super) fn aa(summary: &StudySummary<'_>) -> Table {
    let rows = summary.subjects.iter().filter_map(|subject| {
        let found = &subject.aa.as_ref()?.found;
        let least = found.least_detectable_percent();
        Some(vec![
            subject.title(),
            words::change(subject, found),
            found.percent_interval().as_ref().map_or_else(|| "–".to_owned(), words::range),
            p(&found.difference),
            least.map_or_else(|| "–".to_owned(), |l| percent(l).trim_start_matches('+').to_owned()),
        ])
    });
    Table::new(
        "The baseline compared with itself: it ran twice in every block, and nothing was \
        changed",
    )
    .words("metric")
    .figures(["difference", "interval", "p, signed rank"])
    .figures("least effect detectable with 80 % power")
    .rows(rows)
}

/// Returns the counters read while a workload ran; `None` if there were none.
pub(super) fn counters(summary: &StudySummary<'_>, workload: usize) -> Option<Table> {
    let counters = summary.counters(workload);
    if counters.is_empty() {
        return None;
    }
    let name = summary.document.run.workloads.get(workload)?.name.clone();
    let mut table = Table::new(format!("Counted while {name} ran, medians")).words("counter");
    for treatment in &summary.document.run.treatments {
        table = table.figures(treatment.name.clone());
    }
    let text = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figure);
    let rows = counters.into_iter().map(|(name, medians)| {
        std::iter::once(name).chain(medians.into_iter().map(text)).collect()
    });
    Some(table.rows(rows))
}

/// Returns the number of samples taken and disturbed, by treatment.
pub(super) fn disturbed(summary: &StudySummary<'_>) -> Table {
    let names = summary.document.run.treatments.iter().map(|treatment| treatment.name.clone());
    let rows = names.zip(summary.disturbed()).map(|(name, (taken, disturbed))| {
        vec![
            name,
            taken.to_string(),
            disturbed.to_string(),
            numalab_page::number::share(disturbed, taken),
        ]
    });
    Table::new("Samples by treatment; a treatment that disturbs its own samples shows here")
        .words("treatment")
        .figures(["samples", "disturbed", "share"])
        .rows(rows)
}

/// Returns the evidence that each treatment took effect, with counts.
pub(super) fn evidence(summary: &StudySummary<'_>) -> Table {
    let mut found: BTreeMap<(usize, String, String, String), usize> = BTreeMap::new();
    let mut add = |treatment: usize, evidence: &Evidence| {
        let Evidence { what, wanted, found: read } = evidence.clone();
        *found.entry((treatment, what, wanted.unwrap_or_default(), read)).or_default() += 1;
    };
    for entry in &summary.document.journal {
        match entry {
            JournalEntry::Applied(applied) if applied.arm == Arm::Main => {
                applied.evidence.iter().for_each(|evidence| add(applied.treatment, evidence));
            }
            JournalEntry::Sample(sample) if sample.arm == Arm::Main => {
                sample
                    .observation
                    .evidence
                    .iter()
                    .for_each(|evidence| add(sample.treatment, evidence));
            }
            _ => {}
        }
    }
    let treatments = &summary.document.run.treatments;
    let name = |treatment: usize| treatments.get(treatment).map_or("", |t| t.name.as_str());
    let rows = found.into_iter().map(|((treatment, what, wanted, read), times)| {
        vec![name(treatment).to_owned(), what, wanted, read, times.to_string()]
    });
    Table::new("Settings and facts read back during each treatment")
        .words(["treatment", "setting or fact", "wanted", "found"])
        .figures("times")
        .rows(rows)
}

/// Returns the platform as the first session found it.
pub(super) fn platform(summary: &StudySummary<'_>) -> Table {
    const ROWS: [(&str, &str); 9] = [
        ("Architecture", "architecture"),
        ("Processor", "cpu_model"),
        ("CPUs", "cpus"),
        ("NUMA nodes", "nodes"),
        ("Memory in kB", "memory_total_kb"),
        ("Kernel release", "kernel"),
        ("Distribution", "distribution"),
        ("Hypervisor", "hypervisor"),
        ("Machine", "machine"),
    ];
    let facts = summary.first_facts();
    let known = ROWS.iter().filter_map(|(name, fact)| Some((*name, facts.get(*fact)?)));
    let rows = known.map(|(name, value)| vec![name.to_owned(), value.to_string()]);
    let place = ["Where".to_owned(), summary.document.run.backend.clone()].to_vec();
    Table::new("Where it ran").words("system").words("information").rows([place]).rows(rows)
}

/// Returns every fact of the environment, and those that differ between sessions.
pub(super) fn environment(summary: &StudySummary<'_>) -> Table {
    let changed = summary.changed_facts();
    let rows = summary.first_facts().into_iter().map(|(name, value)| {
        let value =
            changed.get(&name).map_or_else(|| value.to_string(), |values| values.join("; then "));
        vec![name, value]
    });
    Table::new("The environment of the first session; where a later one differs, both")
        .words(["fact", "value"])
        .rows(rows)
}

fn median(subject: &Subject, treatment: usize) -> String {
    subject.median(treatment).map_or_else(|| "–".to_owned(), figure)
}

fn interval(effect: &Effect) -> String {
    effect.found.percent_interval().as_ref().map_or_else(|| "–".to_owned(), words::range)
}

fn p(test: &Test) -> String {
    p_value(test.p)
}

fn p_value(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}
