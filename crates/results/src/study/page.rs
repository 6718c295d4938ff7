//! Page, JSON and rows of a study: the answer first, then its explanation, then the evidence.

mod against;
mod cells;
mod charts;
mod command_times;
mod findings;
mod levels;
mod method;
mod notices;
mod opening;
mod pair;
mod placeholder;
mod places;
mod published;
mod rows;
mod tables;
mod tiers;
mod walks;
pub(in crate::study) mod words;

pub use command_times::command_times;
pub use notices::{accelerator_reason, notice as notice_words};
pub(crate) use pair::columns as pair_columns;
pub use rows::value_rows;
pub(crate) use rows::{effect_columns, value_columns};

use numalab_page::number::count;
use numalab_page::rows::{Rows, openmetrics};
use numalab_page::{Chart, Format, Page, Panel, Part, Private, Table};
use numalab_record::Civil;
use numalab_record::shell::command_line;
use numalab_record::study::{StudyRun, Workload};

use super::document::StudyResults;
use crate::report::Report;
use crate::samples::page::tails;
use crate::study::{Effect, EffectKind, StudyFinding, StudyObservation, StudySummary, Subject};

/// Maximum number of metrics with charts of run order and pairs; the tables have all metrics.
const DRAWN_SUBJECTS: usize = 24;

impl Report for StudySummary<'_> {
    fn page(&self) -> Page {
        let run = &self.document.run;
        let workloads = run.workloads.iter().enumerate();
        let workloads =
            workloads.filter_map(|(index, workload)| workload_part(self, index, workload));
        let facts = Part::of("Facts", vec![Panel::table(tables::facts(self))]);
        let blocks = self.subjects.iter().map(Subject::blocks).min().unwrap_or(0);
        let meta = [
            run.backend.clone(),
            count(run.treatments.len(), "treatment"),
            count(blocks, "block"),
            Civil::of(run.started_unix_ms).minute(),
        ];
        Page {
            brand: format!("numalab {} study {}", run.version, run.name),
            title: run.question.clone(),
            meta: meta.join(" · "),
            lead: opening::lead(self),
            picture: opening::picture(self),
            note: run.note.clone(),
            parts: opening::from_first_cell(self)
                .and_then(|panel| Part::of("Each change", vec![panel]))
                .into_iter()
                .chain(walks::part(self))
                .chain(opening::answers(self).and_then(|of| Part::of("Every metric", vec![of])))
                .chain(
                    published::panel(self).and_then(|of| Part::of("Published figures", vec![of])),
                )
                .chain(facts)
                .chain(workloads)
                .chain(grounds(self))
                .collect(),
            private: private(run),
            ..Page::default()
        }
    }

    /// Returns the definition, the whole journal with every raw sample, and all effects.
    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&StudyResults::of(self))
    }

    /// Returns one row per value as taken, including warm-ups and disturbed samples.
    fn rows(&self) -> Option<Rows> {
        Some(value_rows(self.document))
    }

    /// Returns the values; gauges have the effects too.
    fn exported(&self, format: Format) -> Option<String> {
        let values = value_rows(self.document);
        match format {
            Format::OpenMetrics => openmetrics(&[&rows::effect_rows(self), &values]),
            _ => format.of_rows(&values),
        }
    }
}

/// Returns strings to hide from shared pages: commands, and the commands and paths that treatments
/// insert into them.
fn private(run: &StudyRun) -> Vec<Private> {
    let private = |text: String| Private { what: "workload commands", text };
    let commands = run.workloads.iter().map(|workload| command_line(&workload.command));
    let settings = run.treatments.iter().flat_map(|treatment| treatment.settings.values());
    let settings = settings.map(ToString::to_string).filter(|text| text.contains([' ', '/']));
    commands.chain(settings).map(private).collect()
}

fn workload_part(summary: &StudySummary<'_>, index: usize, workload: &Workload) -> Option<Part> {
    let tested = summary.subjects.iter().filter(|subject| !subject.is_fact);
    let subjects = tested.filter(|subject| subject.workload == index);
    // Courses over time are read first; the rest is folded.
    let mut panels = tiers::panels(summary, index);
    panels.extend(subjects.flat_map(|subject| metric_panels(summary, subject)));
    panels.extend(tables::counters(summary, index).map(|table| Panel::table(table).folded()));
    let part = Part::of(&workload.name, panels)?;
    let command = Some(command_line(&workload.command));
    let notes = placeholder::sentences(&summary.document.run, workload);
    Some(Part { command, notes, ..part }.background())
}

fn metric_panels(summary: &StudySummary<'_>, subject: &Subject) -> Vec<Panel> {
    let cells = cells::table(summary, subject);
    // The page's picture already shows the cells of the metric that answers the question.
    let is_asked = summary.asked().is_some_and(|asked| std::ptr::eq(asked, subject));
    let mut panels: Vec<Panel> =
        cells.filter(|_| !is_asked).map(Panel::table).into_iter().collect();
    panels.push(Panel::table(tables::treatments(summary, subject)).folded());
    if summary.subjects.len() > DRAWN_SUBJECTS {
        return panels;
    }
    let is_answer =
        |effect: &&Effect| summary.answers().any(|(_, answer)| std::ptr::eq(answer, *effect));
    for effect in subject.effects.iter().filter(is_answer) {
        if !effect.extremes.is_empty() {
            panels.push(Panel::table(tails(&effect.extremes)).folded());
        }
        let caption = format!(
            "{}: the change in each block, {}",
            subject.quantity.metric,
            words::label(effect)
        );
        let chart = Chart::Blocks(charts::blocks(subject, effect));
        panels.push(Panel::drawn(chart, tables::blocks(subject, effect, caption)).folded());
    }
    let caption = format!(
        "{} in the order of the run: drift shows here; hollow: disturbed, repeated",
        subject.quantity.metric
    );
    let order = charts::order(summary, subject);
    let table = tables::order(&order, caption);
    panels.push(Panel::drawn(Chart::Order(order), table).folded());
    panels
}

/// Returns the grounds of the answers: sentences and all tables.
fn grounds(summary: &StudySummary<'_>) -> Vec<Part> {
    let run = &summary.document.run;
    let began = format!(
        "Begun {}, seed {}, plan {}, numalab {}.",
        Civil::of(run.started_unix_ms).minute(),
        run.seed,
        run.plan,
        run.version
    );
    // Reasons to doubt the answer are in the lead already.
    let found = summary.findings();
    let is_ground = |finding: &&StudyFinding| match finding.what {
        StudyObservation::NoPrimary
        | StudyObservation::BaselineAgainstItself { .. }
        | StudyObservation::Files { .. } => true,
        _ => opening::is_of_disturbance(finding) && !opening::is_in_doubt(finding),
    };
    let said = found.iter().filter(is_ground).map(|finding| {
        let said = findings::said(finding, summary);
        format!("{}: {}", said.name, said.sentence)
    });
    let notices = summary.notices().into_iter().filter(|notice| !opening::is_doubt(notice));
    let notices = notices.map(|notice| format!("Before it started: {}.", notice_words(notice)));
    let notes = said.chain(notices).chain([began]).collect();
    let rests = Part { title: "Basis of the verdicts".to_owned(), notes, ..Part::default() };
    let effects = EffectKind::ALL.map(|kind| tables::effects(summary, kind));
    let maps = summary.guest_maps();
    let rest = [
        places::memory(summary, &maps),
        places::cpus(summary, &maps),
        tables::aa(summary),
        tables::disturbed(summary),
        tables::evidence(summary),
        tables::environment(summary),
    ];
    let folded = |table: Table| Panel::table(table).folded();
    let tables = effects.into_iter().chain(rest).map(folded);
    let platform = Panel::table(tables::platform(summary));
    let tables = std::iter::once(platform).chain(tables).collect();
    let method = Part::of("Method, platform and every table", tables);
    let method = method.map(|part| part.noted(method::sentences(summary)).background());
    std::iter::once(rests).chain(method).collect()
}
