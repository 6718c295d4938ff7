//! The opening of a study's page: the answer, its chart, and the explanation.

use numalab_page::{Chart, Lead, Mood, Panel, Table, Terminal};
use numalab_record::study::Notice;

use super::{against, cells, charts, findings, levels, notice_words, published, tables, words};
use crate::label::whole_sentence;
use crate::study::{Effect, EffectKind, StudyFinding, StudyObservation, StudySummary, Subject};

/// Number of treatments above which the best one comes before the comparison of all.
const FEW_TREATMENTS: usize = 4;

/// Returns the answer and its explanation, then the reasons to doubt it.
pub(super) fn lead(summary: &StudySummary<'_>) -> Vec<Lead> {
    let found = summary.findings();
    let said = |wanted: fn(&StudyObservation) -> bool| -> Vec<Lead> {
        let found = found.iter().filter(|finding| wanted(&finding.what));
        found.map(|finding| findings::said(finding, summary)).collect()
    };
    let unanswered = said(|what| {
        matches!(what, StudyObservation::Unfinished | StudyObservation::PrimaryWithoutValues { .. })
    });
    let cannot_show = said(|what| matches!(what, StudyObservation::CannotShow { .. }));
    let cannot = !cannot_show.is_empty();
    let unmentioned = said(|what| matches!(what, StudyObservation::Unmentioned { .. }));
    let answer = levels::answer(summary)
        .or_else(|| against::answer(summary))
        .or_else(|| words::answer(summary));
    // An effect of a factor that should have none must be shown, but not as a second answer.
    let answer = match cannot {
        false => answer,
        true => answer
            .filter(|_| pictured(summary).iter().any(words::is_decided))
            .map(|found| Lead { name: "Unexpected".to_owned(), mood: Mood::Odd, ..found }),
    };
    let published = published::leads(summary, &found);
    let walks = said(|what| matches!(what, StudyObservation::PageWalks(_)));
    let best = said(|what| matches!(what, StudyObservation::Best(_)));
    let best = best.into_iter().filter(|_| !cannot);
    let is_first = |_: &Lead| summary.document.run.treatments.len() > FEW_TREATMENTS;
    let (best_of_many, best): (Vec<Lead>, Vec<Lead>) = best.partition(is_first);
    // Without a metric that answers the question, all metrics together are the answer.
    let is_explained_first = !said(|what| matches!(what, StudyObservation::NoPrimary)).is_empty();
    let (first, explained): (Vec<Lead>, Vec<Lead>) =
        words::explained(summary, cannot).into_iter().partition(|_| is_explained_first);
    let shapes = said(|what| {
        matches!(what, StudyObservation::Tails { .. } | StudyObservation::TwoModes { .. })
    });
    let incomplete = said(|what| matches!(what, StudyObservation::Incomplete { .. }));
    let translated = summary.notices().into_iter().filter(|notice| is_doubt(notice));
    let translated = translated
        .map(|notice| Lead::new("Under TCG", whole_sentence(&notice_words(notice)), Mood::Odd));
    let in_doubt = found.iter().filter(|finding| is_in_doubt(finding));
    unanswered
        .into_iter()
        .chain(cannot_show)
        .chain(unmentioned)
        .chain(best_of_many)
        .chain(answer)
        .chain(first)
        .chain(translated)
        .chain(words::undecidable(summary).filter(|_| !cannot))
        .chain(levels::trends(summary))
        .chain(walks)
        .chain(published)
        .chain(best)
        .chain(explained)
        .chain(shapes)
        .chain(incomplete)
        .chain(in_doubt.map(|finding| findings::said(finding, summary)))
        .collect()
}

/// Returns `true` if a notice says that the figures are those of another machine.
pub(super) fn is_doubt(notice: &Notice) -> bool {
    matches!(notice, Notice::SoftwareTlb)
}

/// Returns `true` if first samples lead to a different answer.
pub(super) fn is_in_doubt(finding: &StudyFinding) -> bool {
    is_of_disturbance(finding) && !finding.evidence.is_empty()
}

pub(super) fn is_of_disturbance(finding: &StudyFinding) -> bool {
    let StudyFinding { what, .. } = finding;
    matches!(what, StudyObservation::Disturbed { .. } | StudyObservation::SharedMachine { .. })
}

/// Returns the effects that answer the question: at each level of a number, otherwise on the metric
/// that answers it, otherwise on every metric.
fn pictured<'s>(summary: &'s StudySummary<'_>) -> Vec<(&'s Subject, &'s Effect)> {
    let by_level = levels::effects(summary);
    if !by_level.is_empty() {
        return by_level;
    }
    let asked = summary.asked();
    let is_asked = |subject: &Subject| asked.is_none_or(|asked| std::ptr::eq(asked, subject));
    summary.answers().filter(|(subject, _)| is_asked(subject)).collect()
}

/// Returns the picture of the answer: the cells of two factors, else a chart of the effects.
pub(super) fn picture(summary: &StudySummary<'_>) -> Option<Panel> {
    let shown = pictured(summary);
    if shown.is_empty() {
        return None;
    }
    if let Some(cells) = asked_cells(summary) {
        return Some(Panel::table(cells.clone()).on_terminal(Terminal::Instead(vec![cells])));
    }
    let chart = Chart::Intervals(charts::intervals(summary, &shown));
    let short = match levels::effects(summary).is_empty() {
        true => tables::short(shown.iter().copied()),
        false => tables::by_change(&shown),
    };
    let panel = Panel::drawn(chart, tables::answers(summary, &shown));
    Some(panel.on_terminal(Terminal::Instead(short)).folded())
}

/// Returns the cells of two factors on the metric that answers the question.
fn asked_cells(summary: &StudySummary<'_>) -> Option<Table> {
    summary.asked().and_then(|subject| cells::table(summary, subject))
}

/// Returns a chart of the changes from the first cell, for a study of two factors.
pub(super) fn from_first_cell(summary: &StudySummary<'_>) -> Option<Panel> {
    let effects = cells::effects(summary, summary.asked()?);
    let chart = Chart::Intervals(charts::intervals(summary, &effects));
    let panel = Panel::drawn(chart, tables::answers(summary, &effects));
    (!effects.is_empty()).then(|| panel.on_terminal(Terminal::Nothing))
}

/// Returns a table of all metrics if the chart does not show all of them.
pub(super) fn answers(summary: &StudySummary<'_>) -> Option<Panel> {
    let all: Vec<(&Subject, &Effect)> = summary.answers().collect();
    let answered = all.first().map(|(_, effect)| effect.kind);
    let further = [EffectKind::Interaction, EffectKind::Trend];
    let further = further.into_iter().filter(|kind| Some(*kind) != answered);
    let effects: Vec<(&Subject, &Effect)> =
        all.iter().copied().chain(further.flat_map(|kind| summary.effects(kind))).collect();
    let pictured = if asked_cells(summary).is_some() { Vec::new() } else { pictured(summary) };
    let is_new = |(_, effect): &(&Subject, &Effect)| {
        !pictured.iter().any(|(_, shown)| std::ptr::eq(*shown, *effect))
    };
    if !effects.iter().any(is_new) {
        return None;
    }
    let short = Terminal::Instead(tables::short(effects.iter().copied()));
    let chart = Chart::Intervals(charts::intervals(summary, &all));
    Some(Panel::drawn(chart, tables::answers(summary, &all)).on_terminal(short).folded())
}
