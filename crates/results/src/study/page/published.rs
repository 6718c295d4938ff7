//! Published figures next to a study's own.

use numalab_page::number::{figure, percent, trimmed};
use numalab_page::{IntervalRow, Lead, Mood, Panel, Table};

use crate::study::{
    Effect, PublishedChange, PublishedMetric, StudyFinding, StudyObservation, StudySummary, Subject,
};

/// Largest number of metrics with published figures for which each one gets a sentence.
const FEW: usize = 2;

/// Returns a sentence for each metric with published figures or, if there are many, for the one
/// that answers the question.
pub(super) fn leads(summary: &StudySummary<'_>, found: &[StudyFinding]) -> Vec<Lead> {
    let all = found.iter().filter_map(|finding| match &finding.what {
        StudyObservation::Published(metric) => Some(metric),
        _ => None,
    });
    let all: Vec<&PublishedMetric> = all.collect();
    let asked = summary.asked().map(|asked| (&asked.name, &asked.quantity.metric));
    let is_asked = |of: &PublishedMetric| asked == Some((&of.workload, &of.metric));
    let is_said = |of: &&&PublishedMetric| all.len() <= FEW || is_asked(of);
    all.iter().filter(is_said).map(|of| lead(of)).collect()
}

/// Describes the published changes: `chase latency (a lab, one machine): host=2m guest=4k -6.50 %,
/// here -4.10 %; host=2m guest=2m -14.7 %, here -9.20 %; the treatments have the same order.`
pub(super) fn lead(found: &PublishedMetric) -> Lead {
    let change = |of: &PublishedChange| {
        let [published, here] = [of.published_percent, of.percent].map(percent);
        format!("{} {published}, here {here}", of.treatment)
    };
    let changes: Vec<String> = found.changes.iter().map(change).collect();
    let which = found.tied_within_percent.map_or_else(String::new, |margin| {
        format!(" that differ here by more than {} %", trimmed(margin))
    });
    let order = match found.is_same_order {
        None => String::new(),
        Some(true) => format!("; the treatments{which} have the same order"),
        Some(false) => format!("; the treatments{which} have another order"),
    };
    let metric = format!("{} {}", found.workload, found.metric);
    let sentence = format!("{metric} ({}): {}{order}.", found.source, changes.join("; "));
    Lead::new("Published", sentence, Mood::Plain)
}

/// Returns the row of a chart for the published change of an effect.
pub(super) fn row(
    summary: &StudySummary<'_>,
    subject: &Subject,
    effect: &Effect,
) -> Option<IntervalRow> {
    let published = summary.published_percent(subject, effect.sides?)?;
    let source = &summary.published_figures(subject)?.source;
    Some(IntervalRow {
        name: "as published".to_owned(),
        percent: Some(published),
        interval: None,
        margin_percent: 0.0,
        mood: Mood::Plain,
        verdict: percent(published),
        detail: format!("{} as published\n{source}", subject.title()),
    })
}

/// Returns a table of every published figure; `None` if the chart shows all of them, or none were
/// published.
pub(super) fn panel(summary: &StudySummary<'_>) -> Option<Panel> {
    let run = &summary.document.run;
    let rows = summary.subjects.iter().filter_map(|subject| {
        let published = summary.published_figures(subject)?;
        let of = run.treatments.iter().enumerate().filter_map(move |(at, treatment)| {
            let value = published.values.get(&treatment.name)?;
            let own = subject.median(at).map_or_else(|| "–".to_owned(), figure);
            Some(vec![
                subject.title(),
                treatment.name.clone(),
                format!("{own} {}", subject.quantity.unit),
                format!("{} {}", figure(*value), published.unit),
            ])
        });
        Some(of)
    });
    let mut sources: Vec<&str> =
        run.published.iter().map(|published| published.source.as_str()).collect();
    sources.dedup();
    let table = Table::new(format!("medians here and published figures: {}", sources.join("; ")));
    let table = table.words("metric").words("treatment").figures("here").figures("published");
    (!run.published.is_empty()).then(|| Panel::table(table.rows(rows.flatten())).folded())
}
