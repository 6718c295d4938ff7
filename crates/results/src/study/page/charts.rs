//! Charts of a study.

use numalab_page::number::figure;
use numalab_page::{BlockChanges, Dot, IntervalRow, RunOrder};
use numalab_record::study::{Arm, SampleEntry};
use numalab_stats::{Scale, percent_change};

use super::{notices, published, words};
use crate::label;
use crate::study::{Effect, StudySummary, Subject};

/// Returns one interval per answer, with the published change below it.
pub(super) fn intervals(
    summary: &StudySummary<'_>,
    answers: &[(&Subject, &Effect)],
) -> Vec<IntervalRow> {
    let several = answers.iter().any(|(_, effect)| effect.change != answers[0].1.change);
    let row = |(subject, effect): &(&Subject, &Effect)| {
        let verdict = words::verdict(&effect.found, subject.margin_percent);
        let verdict = words::with_tail(verdict, effect);
        let short = verdict.split(':').next().unwrap_or(&verdict);
        IntervalRow {
            name: match several {
                true => format!("{}: {}", subject.title(), words::label(effect)),
                false => subject.title(),
            },
            percent: effect.found.percent(),
            interval: effect.found.percent_interval(),
            margin_percent: subject.margin_percent,
            mood: label::mood(effect.found.verdict),
            verdict: format!("{} {short}", words::change(subject, &effect.found)),
            detail: format!(
                "{}: {}\n{}\n{verdict}",
                subject.title(),
                words::label(effect),
                words::change_with_interval(subject, &effect.found)
            ),
        }
    };
    let rows = answers
        .iter()
        .flat_map(|of| std::iter::once(row(of)).chain(published::row(summary, of.0, of.1)));
    rows.collect()
}

pub(super) fn blocks(subject: &Subject, effect: &Effect) -> BlockChanges {
    let ratios = effect.found.scale == Scale::LogRatio;
    let shown = |value: f64| if ratios { percent_change(value) } else { value };
    BlockChanges {
        changes: effect.differences.iter().map(|value| shown(*value)).collect(),
        effect: shown(effect.found.effect),
        interval: effect.found.interval.map(|interval| numalab_stats::Interval {
            lo: shown(interval.lo),
            hi: shown(interval.hi),
        }),
        unit: (!ratios).then(|| subject.quantity.unit.clone()),
        described: format!(
            "{} {}: {} over {} blocks",
            subject.title(),
            words::label(effect),
            words::change_with_interval(subject, &effect.found),
            effect.differences.len()
        ),
    }
}

/// Returns every sample of a metric, coloured by treatment.
pub(super) fn order(summary: &StudySummary<'_>, subject: &Subject) -> RunOrder {
    let of = |sample: &SampleEntry| {
        let mut readings = sample.observation.readings.iter();
        let reading = readings.find(|r| r.quantity.metric == subject.quantity.metric)?;
        Some(dot(summary, subject, sample, reading.value))
    };
    let samples = summary.document.samples();
    let dots: Vec<Dot> =
        samples.filter(|sample| sample.workload == subject.workload).filter_map(of).collect();
    let values = dots.iter().map(|dot| dot.value);
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let names = summary.document.run.treatments.iter();
    RunOrder {
        described: format!(
            "{} samples of {} from {} to {} {}",
            dots.len(),
            subject.title(),
            figure(low),
            figure(high),
            subject.quantity.unit
        ),
        dots,
        names: names.map(|treatment| treatment.name.clone()).collect(),
        unit: subject.quantity.unit.clone(),
    }
}

fn dot(summary: &StudySummary<'_>, subject: &Subject, sample: &SampleEntry, value: f64) -> Dot {
    let run = &summary.document.run;
    let name = run.treatments.get(sample.treatment).map_or("", |t| t.name.as_str());
    let again = if sample.arm == Arm::Again { ", again" } else { "" };
    let block = match sample.block.checked_sub(run.rules.warm_ups) {
        Some(block) => format!("block {}", block + 1),
        None => "warm-up".to_owned(),
    };
    let mut detail = format!("{name}{again}\n{} {}, {block}", figure(value), subject.quantity.unit);
    for disturbance in &sample.observation.disturbances {
        detail.push_str(&format!("\n{}", notices::disturbance(disturbance)));
    }
    let disturbed = !sample.observation.disturbances.is_empty();
    Dot { value, kind: sample.treatment, disturbed, detail }
}
