//! Charts of workloads that probe memory tiers: pages by tier and access time over time.

use numalab_page::number::figure;
use numalab_page::{Chart, Panel, Series, Table};
use numalab_record::study::{Arm, Counted, SampleEntry};
use numalab_record::tiering::TierLook;
use numalab_stats::Sample;

use crate::over_time::{curves, rows, seconds};
use crate::study::StudySummary;

/// The course of one treatment: the median over its samples at each look.
struct Course {
    treatment: String,
    looks: Vec<TierReading>,
}

struct TierReading {
    at_s: f64,
    fast_percent: f64,
    latency_ns: f64,
}

/// Returns the fast tier's share and the access time, one curve per treatment; empty for other
/// workloads.
pub(super) fn panels(summary: &StudySummary<'_>, workload: usize) -> Vec<Panel> {
    let treatments = summary.document.run.treatments.iter().enumerate();
    let courses: Vec<Course> = treatments
        .map(|(index, treatment)| Course {
            treatment: treatment.name.clone(),
            looks: course(summary, workload, index),
        })
        .filter(|course| !course.looks.is_empty())
        .collect();
    if courses.is_empty() {
        return Vec::new();
    }
    vec![
        panel(&courses, "pages on the fast tier over time: medians of the samples", "%", |look| {
            look.fast_percent
        }),
        panel(&courses, "an access over time: medians of the samples", "ns", |look| {
            look.latency_ns
        }),
    ]
}

fn course(summary: &StudySummary<'_>, workload: usize, treatment: usize) -> Vec<TierReading> {
    let is_judged = |sample: &&SampleEntry| {
        sample.workload == workload
            && sample.treatment == treatment
            && sample.arm == Arm::Main
            && sample.block >= summary.document.run.rules.warm_ups
    };
    let samples = summary.document.counted(Counted::Undisturbed);
    let seen: Vec<&[TierLook]> = samples
        .into_values()
        .filter(is_judged)
        .map(|sample| &*sample.observation.looks)
        .filter(|looks| !looks.is_empty())
        .collect();
    let shortest = seen.iter().map(|looks| looks.len()).min().unwrap_or(0);
    (0..shortest).filter_map(|at| medians(seen.iter().map(|looks| &looks[at]))).collect()
}

fn medians<'a>(looks: impl Iterator<Item = &'a TierLook> + Clone) -> Option<TierReading> {
    let median = |value: &dyn Fn(&TierLook) -> f64| {
        Some(Sample::new(looks.clone().map(value).collect::<Vec<_>>()).ok()?.median())
    };
    Some(TierReading {
        at_s: median(&|look| seconds(look.at_ns as f64))?,
        fast_percent: median(&|look| {
            let pages = look.fast_pages + look.slow_pages;
            if pages == 0 { 0.0 } else { 100.0 * look.fast_pages as f64 / pages as f64 }
        })?,
        latency_ns: median(&|look| look.latency_ns)?,
    })
}

fn panel(courses: &[Course], caption: &str, unit: &str, value: fn(&TierReading) -> f64) -> Panel {
    let series = |course: &Course| Series {
        name: course.treatment.clone(),
        points: course.looks.iter().map(|look| (look.at_s, value(look))).collect(),
    };
    let curves = curves(unit, courses.iter().map(series).collect());
    let names = courses.iter().map(|course| course.treatment.clone());
    let table = names.fold(Table::new(format!("{caption} ({unit})")).figures("s"), Table::figures);
    let shortest = courses.iter().map(|course| course.looks.len()).min().unwrap_or(0);
    let row = |at: usize| {
        let at_s = format!("{:.1}", courses[0].looks[at].at_s);
        let values = courses.iter().map(|course| figure(value(&course.looks[at])));
        std::iter::once(at_s).chain(values).collect()
    };
    Panel::drawn(Chart::Curves(curves), table.rows(rows(0..shortest).map(row)))
}
