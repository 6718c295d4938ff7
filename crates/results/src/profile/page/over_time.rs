//! Chart and table of a program's accesses over time.

use std::collections::BTreeMap;

use numalab_page::number::{figure, size};
use numalab_page::{MemoryOverTime, Moment, PhaseMark, Table, TimeRow};
use numalab_record::profile::Profile;
use numalab_record::{Stretch, StretchAccesses};

use super::words::{counted, percent};
use crate::profile::ProfileSummary;
use crate::program::page::program::{place, short};

/// Maximum number of regions with a separate row.
const MOST_ROWS: usize = 10;
/// Maximum number of columns of the chart.
const MOST_MOMENTS: usize = 120;
/// Maximum number of regions named per phase.
const NAMED: usize = 3;

/// Returns the chart; `None` if accesses were not recorded over time.
pub(super) fn over_time(profile: &Profile, summary: &ProfileSummary<'_>) -> Option<MemoryOverTime> {
    let mut stretches = profile.program.timeline.clone();
    while stretches.len() > MOST_MOMENTS {
        stretches = Stretch::joined(&stretches);
    }
    let used = stretches.iter().any(|of| !of.regions.is_empty() || of.busy_ns > 0);
    if stretches.len() < 2 || !used {
        return None;
    }
    let mut begin_ns = 0;
    let moment = |of: &Stretch| {
        let seconds = (of.end_ns - begin_ns).max(1) as f64 / 1e9;
        begin_ns = of.end_ns;
        let sum = |value: fn(&StretchAccesses) -> u64| {
            of.regions.iter().map(value).sum::<u64>() as f64 / seconds
        };
        Moment {
            end_s: of.end_ns as f64 / 1e9,
            local: sum(|of| of.local),
            remote: sum(|of| of.remote),
            unplaced: sum(|of| of.unplaced),
            running: of.busy_ns as f64 / 1e9 / seconds,
            waiting: of.waited_ns.unwrap_or(0) as f64 / 1e9 / seconds,
        }
    };
    let phase = |(at, phase): (usize, &crate::profile::Phase)| PhaseMark {
        begin_s: phase.begin_ns as f64 / 1e9,
        end_s: phase.end_ns as f64 / 1e9,
        label: (at + 1).to_string(),
    };
    Some(MemoryOverTime {
        moments: stretches.iter().map(moment).collect(),
        rows: rows(&stretches, summary),
        phases: summary.phases.iter().enumerate().map(phase).collect(),
        counted: counted(&profile.source).to_owned(),
        has_waits: stretches.iter().any(|of| of.waited_ns.is_some()),
    })
}

/// Returns the most used regions, and the others together.
fn rows(stretches: &[Stretch], summary: &ProfileSummary<'_>) -> Vec<TimeRow> {
    let mut sums: BTreeMap<usize, u64> = BTreeMap::new();
    for of in stretches.iter().flat_map(|of| &of.regions) {
        *sums.entry(of.region).or_default() += of.accesses();
    }
    let mut order: Vec<usize> = sums.keys().copied().collect();
    order.sort_by_key(|region| std::cmp::Reverse(sums[region]));
    let named = order.len().min(MOST_ROWS);
    let mut rows: Vec<TimeRow> = order[..named]
        .iter()
        .map(|region| TimeRow {
            name: name(summary, *region),
            cells: cells(stretches, |of| of.region == *region),
        })
        .collect();
    if order.len() > named {
        let others = &order[named..];
        rows.push(TimeRow {
            name: format!("{} others", others.len()),
            cells: cells(stretches, |of| others.contains(&of.region)),
        });
    }
    rows
}

/// Returns accesses per second and their remote share, for each span.
fn cells(stretches: &[Stretch], wanted: impl Fn(&StretchAccesses) -> bool) -> Vec<(f64, f64)> {
    let mut begin_ns = 0;
    let cell = |of: &Stretch| {
        let seconds = (of.end_ns - begin_ns).max(1) as f64 / 1e9;
        begin_ns = of.end_ns;
        let wanted = || of.regions.iter().filter(|of| wanted(of));
        let all: u64 = wanted().map(StretchAccesses::accesses).sum();
        let remote: u64 = wanted().map(|of| of.remote).sum();
        (all as f64 / seconds, remote as f64 / all.max(1) as f64)
    };
    stretches.iter().map(cell).collect()
}

fn name(summary: &ProfileSummary<'_>, position: usize) -> String {
    let of = summary.regions.iter().find(|of| of.position == position);
    of.map_or_else(String::new, |of| {
        let name = short(&of.region.name);
        // Several regions can have the same name.
        let first = of.region.first_touches.iter().max_by_key(|first| first.pages);
        let line = || place(&of.region.made_at).or_else(|| place(&first?.at));
        match name.as_str() {
            "[anonymous]" => match line() {
                Some(line) => format!("anon {} {line}", size(of.region.end - of.region.start)),
                None => format!("anon {:#x}", of.region.start),
            },
            _ => name,
        }
    })
}

pub(super) fn phases(profile: &Profile, summary: &ProfileSummary<'_>) -> Table {
    let table = Table::new("Phases: periods with the same use of regions")
        .words("phase")
        .figures(["from", "to", "threads"])
        .figures(counted(&profile.source))
        .figures(["remote", "waiting"])
        .words("mostly in");
    let row = |(at, phase): (usize, &crate::profile::Phase)| {
        let seconds = (phase.end_ns - phase.begin_ns).max(1) as f64 / 1e9;
        let all: u64 = phase.regions.values().sum();
        let most = phase.most_used();
        let regions = most.iter().take(NAMED).map(|(region, count)| {
            format!("{} {:.0} %", name(summary, *region), 100.0 * *count as f64 / all.max(1) as f64)
        });
        let remote = phase.distance.remote_share().filter(|_| summary.nodes.len() > 1);
        let remote = remote.map_or_else(|| "–".to_owned(), percent);
        let waiting = phase.waited_ns.map(|ns| ns as f64 / phase.busy_ns.max(1) as f64);
        vec![
            (at + 1).to_string(),
            super::words::time(phase.begin_ns),
            super::words::time(phase.end_ns),
            figure(phase.busy_ns as f64 / 1e9 / seconds),
            super::words::short_count(all),
            remote,
            waiting.map_or_else(|| "–".to_owned(), percent),
            regions.collect::<Vec<_>>().join(", "),
        ]
    };
    table.rows(summary.phases.iter().enumerate().map(row)).without_empty_columns()
}
