//! The parts of a profile's page.

use numalab_page::number::{figure, size};
use numalab_page::{Chart, Panel, Part, Table, Terminal};
use numalab_record::profile::{OtherProcess, Profile, ProfileSource};
use numalab_record::{ProgramThread, Sharing};

use super::PAGE_BYTES;
use super::map::{label, map};
use super::over_time::{over_time, phases};
use super::words::{
    cannot_words, counted, hindrance_words, percent, short_count, source_sentence, time,
};
use crate::profile::{ProfileSummary, RegionUse};
use crate::program::page::program::{place, sharing, short};

/// Maximum number of rows of a table.
const MOST_REGIONS: usize = 20;
const MOST_PLACES: usize = 12;
const MOST_THREADS: usize = 32;

pub(super) fn parts(profile: &Profile, summary: &ProfileSummary<'_>) -> Vec<Part> {
    let parts = [
        map_part(profile, summary),
        time_part(profile, summary),
        sharing(&profile.program),
        Part::of("Regions", vec![Panel::table(regions(profile, summary))])
            .map(|part| part.noted(region_notes(profile, summary))),
        Part::of(
            "Code",
            vec![Panel::table(touches(profile)), Panel::table(users(profile, summary))],
        ),
        Part::of("Threads", vec![Panel::table(threads(profile, summary))]),
        Part::of(
            "Processes",
            vec![
                Panel::table(processes(
                    profile,
                    "Processes combined into one program above",
                    &profile.processes,
                )),
                Panel::table(processes(profile, "Processes not included above", &profile.others)),
            ],
        ),
        Some(source(profile)),
    ];
    parts.into_iter().flatten().collect()
}

fn map_part(profile: &Profile, summary: &ProfileSummary<'_>) -> Option<Part> {
    let map = map(profile, summary)?;
    let caption = match map.threads.is_empty() {
        true => "Regions of memory: the part used, and the nodes that hold it".to_owned(),
        false => {
            "Regions of memory: the nodes that hold them, and the threads that use them".to_owned()
        }
    };
    let table = Table::new(caption).words("region");
    let panel = Panel { chart: Some(Chart::Map(map)), table, ..Panel::default() };
    Some(Part {
        title: "Who uses what".to_owned(),
        panels: vec![panel.on_terminal(Terminal::Nothing)],
        ..Part::default()
    })
}

fn time_part(profile: &Profile, summary: &ProfileSummary<'_>) -> Option<Part> {
    let over_time = over_time(profile, summary)?;
    let mut panels = vec![Panel {
        chart: Some(Chart::OverTime(over_time)),
        table: Table::new("Accesses, threads and regions over time: darker is more"),
        terminal: Terminal::Chart,
        ..Panel::default()
    }];
    if summary.phases.len() > 1 {
        panels.push(Panel::table(phases(profile, summary)));
    }
    Some(Part { title: "Over time".to_owned(), panels, ..Part::default() })
}

fn regions(profile: &Profile, summary: &ProfileSummary<'_>) -> Table {
    let all = summary.distance.all().max(1) as f64;
    let counted = counted(&profile.source);
    let several = summary.nodes.len() > 1;
    let is_counted =
        matches!(profile.source, ProfileSource::Samples { .. } | ProfileSource::Emulation { .. });
    let table = Table::new(format!("Regions by their part of the {counted}"))
        .words("region")
        .figures("in memory")
        .figures(format!("% of {counted}"))
        .figures(["remote", "stores", "hot"])
        .words("used by")
        .words(if several { "on nodes" } else { "address" });
    let row = |of: &RegionUse<'_>| {
        let stores = of
            .loads_stores
            .map(|(loads, stores)| percent(stores as f64 / (loads + stores).max(1) as f64));
        let none = || "–".to_owned();
        vec![
            short(&of.region.name),
            size(of.pages.values().sum::<u64>() * PAGE_BYTES),
            figure(100.0 * of.distance.all() as f64 / all),
            remote(summary, of.distance.remote_share()),
            stores.unwrap_or_else(none),
            match of.region.hot_pages {
                0 => none(),
                _ if !is_counted => none(),
                pages => size(pages * PAGE_BYTES),
            },
            used_by(of),
            if several { lies_on(of) } else { format!("{:#x}", of.region.start) },
        ]
    };
    let seen = |of: &&RegionUse<'_>| of.distance.all() > 0 || !of.pages.is_empty();
    table
        .rows(summary.regions.iter().filter(seen).take(MOST_REGIONS).map(row))
        .without_empty_columns()
}

/// Formats the remote share, if any access can be remote.
fn remote(summary: &ProfileSummary<'_>, share: Option<f64>) -> String {
    share.filter(|_| summary.nodes.len() > 1).map_or_else(|| "–".to_owned(), percent)
}

/// Describes pages by number of users: `one thread 90 %, several nodes 10 %`.
fn used_by(of: &RegionUse<'_>) -> String {
    let all: u64 = of.sharing.values().sum();
    let users = of.by_thread.len();
    if users > 1 && of.sharing.keys().eq([&Sharing::Private]) {
        return format!("{users} threads, own pages");
    }
    let name = |sharing: &Sharing| match sharing {
        Sharing::Private if users > 1 => "one thread each",
        Sharing::Private => "one thread",
        Sharing::OneNode => "one node",
        Sharing::Read => "several nodes, read",
        Sharing::Written => "several nodes, written",
        Sharing::Shared => "several nodes",
    };
    let mut parts: Vec<(u64, &Sharing)> =
        of.sharing.iter().map(|(sharing, pages)| (*pages, sharing)).collect();
    parts.sort_by_key(|(pages, _)| std::cmp::Reverse(*pages));
    // Shares that round to 0 are noise.
    parts.retain(|(pages, _)| *pages * 200 >= all);
    let words = parts.iter().take(2).map(|(pages, sharing)| match parts.len() {
        1 => name(sharing).to_owned(),
        _ => format!("{} {:.0} %", name(sharing), 100.0 * *pages as f64 / all.max(1) as f64),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Describes pages by node: `0 75 %, 1 25 %`.
fn lies_on(of: &RegionUse<'_>) -> String {
    let all: u64 = of.pages.values().sum();
    let node = |(node, pages): (&u32, &u64)| match of.pages.len() {
        1 => format!("node {node}"),
        _ => format!("{node}: {:.0} %", 100.0 * *pages as f64 / all.max(1) as f64),
    };
    of.pages.iter().map(node).collect::<Vec<_>>().join(", ")
}

fn region_notes(profile: &Profile, summary: &ProfileSummary<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if matches!(profile.source, ProfileSource::Samples { .. } | ProfileSource::Emulation { .. }) {
        notes.push("Hot: the fewest pages that take 90 % of a region's accesses.".to_owned());
    }
    let more = summary.regions.len().saturating_sub(MOST_REGIONS);
    if more > 0 {
        notes.push(format!("{more} others are used less; JSON and CSV list all of them."));
    }
    if summary.distance.unplaced > 0 && summary.distance.remote_share().is_some() {
        notes.push(format!(
            "{} {} are neither local nor remote: their pages were gone before they were looked up.",
            summary.distance.unplaced,
            counted(&profile.source)
        ));
    }
    if let Some(became) = &profile.program.became {
        notes.push(format!("It then executed {became}, which this report does not cover."));
    }
    notes
}

/// Tabulates the code that touches pages first.
fn touches(profile: &Profile) -> Table {
    let table = Table::new("Code that touches memory first, in pages (a huge one counts as one)")
        .words("region")
        .figures("pages")
        .words("at")
        .words("thread");
    let touches = profile
        .program
        .regions
        .iter()
        .flat_map(|region| region.first_touches.iter().map(move |touches| (region, touches)));
    let mut touches: Vec<_> = touches.filter(|(_, of)| of.pages > 0).collect();
    let all: u64 = touches.iter().map(|(_, of)| of.pages).sum();
    // Few pages are worth a row only if their line is known.
    touches.retain(|(_, of)| of.pages * 100 >= all || place(&of.at).is_some());
    touches.sort_by_key(|(_, of)| std::cmp::Reverse(of.pages));
    let row = |(region, of): &(&numalab_record::Region, &numalab_record::FirstTouches)| {
        vec![
            short(&region.name),
            of.pages.to_string(),
            place(&of.at).unwrap_or_default(),
            format!("{} on node {}", label(profile, of.thread), of.cpu_node),
        ]
    };
    table.rows(touches.iter().take(MOST_PLACES).map(row))
}

/// Tabulates the code that uses memory.
fn users(profile: &Profile, summary: &ProfileSummary<'_>) -> Table {
    let all = summary.distance.all().max(1) as f64;
    let table = Table::new(format!("Code that uses memory, by {}", counted(&profile.source)))
        .words(["at", "region"])
        .figures("%")
        .figures("remote");
    let regions = profile.program.regions.iter();
    let users = regions.flat_map(|region| region.accessed_at.iter().map(move |at| (region, at)));
    let mut users: Vec<_> = users.collect();
    users.sort_by_key(|(_, at)| std::cmp::Reverse(at.accesses));
    let row = |(region, at): &(&numalab_record::Region, &numalab_record::AccessedAt)| {
        let place = place(&at.at)?;
        Some(vec![
            place,
            short(&region.name),
            figure(100.0 * at.accesses as f64 / all),
            remote(summary, Some(at.remote as f64 / at.accesses.max(1) as f64)),
        ])
    };
    table.rows(users.iter().filter_map(row).take(MOST_PLACES)).without_empty_columns()
}

fn threads(profile: &Profile, summary: &ProfileSummary<'_>) -> Table {
    let table = Table::new("Threads: their main node, and what they use")
        .words("thread")
        .figures(["node", "on cpus"])
        .figures(counted(&profile.source))
        .figures("remote");
    let sums = |thread: u32| {
        let mut sum = crate::profile::Distance::default();
        for distance in summary.regions.iter().filter_map(|of| of.by_thread.get(&thread)) {
            sum.local += distance.local;
            sum.remote += distance.remote;
        }
        sum
    };
    let mut rows: Vec<(&&ProgramThread, _)> =
        summary.threads.iter().map(|thread| (thread, sums(thread.thread))).collect();
    rows.sort_by_key(|(thread, sum)| std::cmp::Reverse((sum.all(), thread.busy_ns)));
    rows.truncate(MOST_THREADS);
    table
        .rows(rows.into_iter().map(|(thread, sum)| {
            vec![
                label(profile, thread.thread),
                thread.cpu_node.to_string(),
                time(thread.busy_ns),
                if sum.all() > 0 { short_count(sum.all()) } else { "–".to_owned() },
                remote(summary, sum.remote_share()),
            ]
        }))
        .without_empty_columns()
}

fn processes(profile: &Profile, caption: &str, processes: &[OtherProcess]) -> Table {
    let counted = counted(&profile.source);
    let table = Table::new(caption)
        .words("process")
        .figures("on cpus")
        .figures(counted)
        .figures("remote")
        .figures("touched first");
    let row = |of: &OtherProcess| {
        let remote = (of.accesses > 0).then(|| percent(of.remote as f64 / of.accesses as f64));
        vec![
            format!("{} ({})", of.name, of.process),
            time(of.busy_ns),
            short_count(of.accesses),
            remote.unwrap_or_else(|| "–".to_owned()),
            size(of.touched_pages * PAGE_BYTES),
        ]
    };
    table.rows(processes.iter().map(row))
}

/// Names the source of the figures and its limits.
fn source(profile: &Profile) -> Part {
    let unseen: Vec<String> = profile.cannot_see.iter().map(cannot_words).collect();
    let unseen = (!unseen.is_empty()).then(|| format!("It cannot see: {}.", unseen.join("; ")));
    let over = Table::new("Preferred sources, and why they were not available")
        .words("source")
        .words("why not");
    let over = over.rows(
        profile.passed_over.iter().map(|of| vec![of.source.to_string(), hindrance_words(&of.why)]),
    );
    let panels = [over].into_iter().filter(|table| !table.rows.is_empty());
    let followed = profile.faults.map(|faults| {
        let lost = match faults.lost {
            0 => String::new(),
            lost => format!(" {lost} records were lost: they came faster than they could be read."),
        };
        format!("First touches are from {} page faults.{lost}", faults.seen)
    });
    Part {
        title: "Scope and limits".to_owned(),
        notes: [Some(source_sentence(profile)), unseen, followed].into_iter().flatten().collect(),
        panels: panels.map(Panel::table).collect(),
        ..Part::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use numalab_record::Region;

    use super::*;
    use crate::profile::find::Distance;

    #[test]
    fn threads_with_own_pages_of_a_region_are_not_one_thread() {
        let region = Region::default();
        let words = |threads: u32, sharing: &[(Sharing, u64)]| {
            used_by(&RegionUse {
                position: 0,
                region: &region,
                distance: Distance::default(),
                by_thread: (0..threads).map(|thread| (thread, Distance::default())).collect(),
                pages: BTreeMap::new(),
                sharing: sharing.iter().copied().collect(),
                loads_stores: None,
            })
        };
        assert_eq!(words(1, &[(Sharing::Private, 9)]), "one thread");
        assert_eq!(words(4, &[(Sharing::Private, 9)]), "4 threads, own pages");
        let mixed = words(4, &[(Sharing::Private, 9), (Sharing::Read, 1)]);
        assert_eq!(mixed, "one thread each 90 %, several nodes, read 10 %");
    }
}
