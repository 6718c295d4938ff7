//! The tables of a study, before they have a format.

use std::collections::BTreeMap;

use numalab_record::study::{Arm, Entry, Evidence};
use numalab_stats::Test;

use super::analysis::{Effect, StudySummary, Subject};
use super::contrasts::EffectKind;
use super::words;
use crate::number::{figure, percent};
use crate::table::Table;

/// What answers the question, a row a metric and change.
pub(super) fn answers(summary: &StudySummary<'_>) -> Table {
    let rows = summary.answers().map(|(subject, effect)| {
        let [baseline, candidate] = sides(subject, effect);
        vec![
            subject.title(),
            effect.label.clone(),
            baseline,
            candidate,
            subject.quantity.unit.clone(),
            words::change(&effect.found),
            interval(effect),
            words::verdict(&effect.found, subject.margin_percent),
        ]
    });
    Table::new("Medians over blocks; change and 95 % interval from pairs within blocks")
        .words("metric")
        .words("change of")
        .figures("baseline")
        .figures("changed")
        .words("unit")
        .figures("change")
        .figures("95 % interval")
        .words("verdict")
        .rows(rows)
}

/// The answers as a terminal has room for.
pub(super) fn short_answers(summary: &StudySummary<'_>) -> Vec<Table> {
    let mut labels: Vec<&str> = Vec::new();
    for (_, effect) in summary.answers() {
        if !labels.contains(&effect.label.as_str()) {
            labels.push(&effect.label);
        }
    }
    let table = |label: &&str| {
        let rows = summary.answers().filter(|(_, effect)| effect.label == **label);
        let rows = rows.map(|(subject, effect)| {
            vec![
                subject.title(),
                words::change(&effect.found),
                interval(effect),
                words::verdict(&effect.found, subject.margin_percent),
            ]
        });
        Table::new(*label)
            .words("metric")
            .figures("change")
            .figures("95 % interval")
            .words("verdict")
            .rows(rows)
    };
    labels.iter().map(table).collect()
}

/// All effects of a kind, with every test.
pub(super) fn effects(summary: &StudySummary<'_>, kind: EffectKind) -> Table {
    let rows = summary.effects(kind).map(|(subject, effect)| {
        let mean = match (effect.found.percent(), effect.found.scale) {
            (Some(_), numalab_stats::Scale::LogRatio) => {
                let interval = effect.bootstrap.interval;
                let change = numalab_stats::percent_change;
                format!(
                    "{} ({} to {})",
                    percent(change(effect.bootstrap.value)),
                    percent(change(interval.lo)),
                    percent(change(interval.hi))
                )
            }
            _ => "–".to_owned(),
        };
        vec![
            subject.title(),
            effect.label.clone(),
            subject.blocks().to_string(),
            words::change(&effect.found),
            interval(effect),
            mean,
            p(&effect.found.difference),
            p(&effect.permutation),
            p_value(effect.found.equivalence.p()),
            words::verdict(&effect.found, subject.margin_percent),
        ]
    });
    Table::new(kind.title())
        .words("metric")
        .words("change of")
        .figures("blocks")
        .figures("change")
        .figures("95 % interval")
        .figures("geometric mean (BCa)")
        .figures("p, signed rank")
        .figures("p, permutation")
        .figures("p, equivalence")
        .words("verdict")
        .rows(rows)
}

/// The medians of every treatment of one metric, and how each differs from the baseline.
pub(super) fn treatments(summary: &StudySummary<'_>, subject: &Subject) -> Table {
    let run = &summary.document.run;
    let rows = run.treatments.iter().enumerate().map(|(index, treatment)| {
        let median = subject.median(index).map_or_else(|| "–".to_owned(), figure);
        let mut row = vec![treatment.name.clone(), median];
        let against = subject.effects.iter().find(|effect| effect.sides == Some((0, index)));
        match against.filter(|_| index > 0) {
            Some(effect) => row.extend([
                words::change(&effect.found),
                interval(effect),
                marked_verdict(subject, effect),
            ]),
            None if index == 0 => {
                row.extend(["–".to_owned(), "–".to_owned(), "baseline".to_owned()]);
            }
            None => row.extend(["–".to_owned(), "–".to_owned(), "–".to_owned()]),
        }
        row
    });
    Table::new(format!(
        "{} in {}, {}",
        subject.quantity.metric,
        subject.quantity.unit,
        match subject.quantity.better {
            numalab_record::study::Better::Lower => "lower is better",
            numalab_record::study::Better::Higher => "higher is better",
        }
    ))
    .words("treatment")
    .figures(format!("median ({})", subject.quantity.unit))
    .figures("change")
    .figures("95 % interval")
    .words("verdict")
    .rows(rows)
}

/// A verdict with a mark whose colour every reader of Markdown shows.
fn marked_verdict(subject: &Subject, effect: &Effect) -> String {
    use numalab_stats::Verdict;
    let mark = match effect.found.verdict {
        Verdict::Better => "🟢",
        Verdict::Worse => "🔴",
        Verdict::Equivalent => "⚪",
        Verdict::Inconclusive { .. } => "🟡",
    };
    format!("{mark} {}", words::verdict(&effect.found, subject.margin_percent))
}

/// The baseline against itself.
pub(super) fn aa(summary: &StudySummary<'_>) -> Table {
    let rows = summary.subjects.iter().filter_map(|subject| {
        let found = &subject.aa.as_ref()?.found;
        let least = found.least_detectable_percent();
        Some(vec![
            subject.title(),
            words::change(found),
            found.percent_interval().map_or_else(
                || "–".to_owned(),
                |interval| format!("{} to {}", percent(interval.lo), percent(interval.hi)),
            ),
            p(&found.difference),
            least.map_or_else(|| "–".to_owned(), |l| percent(l).trim_start_matches('+').to_owned()),
        ])
    });
    Table::new("The baseline against itself, twice in every block: nothing was changed")
        .words("metric")
        .figures("difference")
        .figures("95 % interval")
        .figures("p, signed rank")
        .figures("least effect seen with 80 % power")
        .rows(rows)
}

/// What was counted while a workload ran; `None` if nothing was.
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

/// Samples taken and disturbed, by treatment.
pub(super) fn disturbed(summary: &StudySummary<'_>) -> Table {
    let names = summary.document.run.treatments.iter().map(|treatment| treatment.name.clone());
    let rows = names.zip(summary.disturbed()).map(|(name, (taken, disturbed))| {
        vec![name, taken.to_string(), disturbed.to_string(), crate::number::share(disturbed, taken)]
    });
    Table::new("Samples by treatment; a treatment that disturbs its own samples shows here")
        .words("treatment")
        .figures("samples")
        .figures("disturbed")
        .figures("share")
        .rows(rows)
}

/// What shows that each treatment held, with how often it was found so.
pub(super) fn evidence(summary: &StudySummary<'_>) -> Table {
    let mut found: BTreeMap<(usize, String, String, String), usize> = BTreeMap::new();
    let mut add = |treatment: usize, evidence: &Evidence| {
        let Evidence { what, wanted, found: read } = evidence.clone();
        *found.entry((treatment, what, wanted, read)).or_default() += 1;
    };
    for entry in &summary.document.journal {
        match entry {
            Entry::Applied(applied) if applied.arm == Arm::Main => {
                applied.evidence.iter().for_each(|evidence| add(applied.treatment, evidence));
            }
            Entry::Sample(sample) if sample.arm == Arm::Main => {
                sample.taken.evidence.iter().for_each(|evidence| add(sample.treatment, evidence));
            }
            _ => {}
        }
    }
    let treatments = &summary.document.run.treatments;
    let name = |treatment: usize| treatments.get(treatment).map_or("", |t| t.name.as_str());
    let rows = found.into_iter().map(|((treatment, what, wanted, read), times)| {
        vec![name(treatment).to_owned(), what, wanted, read, times.to_string()]
    });
    Table::new("What was read back while each treatment held")
        .words("treatment")
        .words("setting or fact")
        .words("wanted")
        .words("found")
        .figures("times")
        .rows(rows)
}

/// The platform, as the first session found it.
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
    let facts = first_facts(summary);
    let known = ROWS.iter().filter_map(|(name, fact)| Some((*name, facts.get(*fact)?)));
    let rows = known.map(|(name, value)| vec![name.to_owned(), value.clone()]);
    let place = ["Where".to_owned(), summary.document.run.world.clone()].to_vec();
    Table::new("Platform").words("system").words("information").rows([place]).rows(rows)
}

/// Every fact of the environment, and those in which sessions differ.
pub(super) fn environment(summary: &StudySummary<'_>) -> Table {
    let changed = words::changed_facts(summary);
    let rows = first_facts(summary).into_iter().map(|(name, value)| {
        let value = changed.get(&name).map_or(value, |values| values.join("; then "));
        vec![name, value]
    });
    Table::new("The environment of the first session; where a later one differs, both")
        .words("fact")
        .words("value")
        .rows(rows)
}

fn first_facts(summary: &StudySummary<'_>) -> BTreeMap<String, String> {
    let mut began = summary.document.journal.iter().filter_map(|entry| match entry {
        Entry::Began { environment, .. } => Some(environment.facts.clone()),
        _ => None,
    });
    began.next().unwrap_or_default()
}

fn sides(subject: &Subject, effect: &Effect) -> [String; 2] {
    let Some((baseline, candidate)) = effect.sides else {
        return ["–".to_owned(), "–".to_owned()];
    };
    [baseline, candidate].map(|at| subject.median(at).map_or_else(|| "–".to_owned(), figure))
}

fn interval(effect: &Effect) -> String {
    effect.found.percent_interval().map_or_else(
        || "–".to_owned(),
        |interval| format!("{} to {}", percent(interval.lo), percent(interval.hi)),
    )
}

fn p(test: &Test) -> String {
    p_value(test.p)
}

fn p_value(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}
