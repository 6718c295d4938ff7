//! Page, JSON and rows of a program's memory profile.

mod lead;
mod map;
mod over_time;
mod parts;
mod words;

pub use words::{hindrance_words, remarks};

use std::collections::BTreeSet;

use numalab_page::number::{count, size};
use numalab_page::rows::{Field, Rows};
use numalab_page::{Format, Page, Private, Tile};
use numalab_record::profile::{Profile, SourceName, Target};
use numalab_record::{Region, RegionAccesses};

use crate::document::document_of;
use crate::profile::ProfileSummary;
use crate::program::page::callgrind::callgrind;
use crate::program::page::program::short;
use crate::report::Report;

impl Report for Profile {
    fn page(&self) -> Page {
        let summary = ProfileSummary::of(self);
        let words = self.target.words();
        Page {
            brand: "numalab profile".to_owned(),
            title: format!("Memory use of {}", self.name),
            meta: meta(self),
            lead: lead::lead(self, &summary),
            tiles: tiles(self, &summary),
            parts: parts::parts(self, &summary),
            private: private(words),
            ..Page::default()
        }
    }

    document_of!(Profile);

    /// Returns one row per region, thread and pair of nodes.
    fn rows(&self) -> Option<Rows> {
        let rows = self
            .program
            .regions
            .iter()
            .flat_map(|region| region.accesses.iter().map(move |by| row(self, region, by)));
        Some(columns().rows(rows))
    }

    fn exported(&self, format: Format) -> Option<String> {
        match format {
            Format::Callgrind => Some(callgrind(&self.program)),
            _ => self.rows().and_then(|rows| format.of_rows(&rows)),
        }
    }
}

pub(crate) fn columns() -> Rows {
    Rows::new("memory profile")
        .labels(["region", "start", "thread", "cpu_node", "memory_node"])
        .texts(["source"])
        .values(
            "accesses",
            [
                ("loads", "loads of the region, in the unit of the source"),
                ("stores", "stores to the region"),
                ("either", "accesses by a source that does not distinguish loads from stores"),
                ("misses", "accesses that reached memory"),
            ],
        )
        .values("ns", [("waited_ns", "the time that the thread waited for these accesses")])
}

fn row(profile: &Profile, region: &Region, by: &RegionAccesses) -> Vec<Field> {
    let start = format!("{:#x}", region.start);
    let numbers = [by.thread, by.cpu_node, by.memory_node].map(|of| of.to_string());
    let waited_ns = by.waits.map(|waits| waits.waited_ns);
    let either = by.loads.is_none().then_some(by.either);
    let figures = [by.loads, by.stores, either, by.misses, waited_ns].map(Field::from);
    let labels = [region.name.clone(), start].into_iter().chain(numbers);
    let labels = labels.chain([profile.source.name().name().to_owned()]);
    labels.map(Field::from).chain(figures).collect()
}

fn meta(profile: &Profile) -> String {
    let command = profile.target.words().join(" ");
    let target = match &profile.target {
        Target::Command(_) => command,
        Target::Process { process, .. } => format!("process {process}: {command}"),
    };
    let (time, ended) = (words::time(profile.watched_ns), words::ended(profile));
    match profile.source.name() {
        // All other times are those of the emulated machine.
        SourceName::Emulation => format!("{target}; {ended}, emulated in {time}"),
        _ => format!("{target}; {time}, {ended}"),
    }
}

/// Returns strings to hide from shared pages: arguments, and regions named after files.
fn private(words: &[String]) -> Vec<Private> {
    let arguments = words.iter().skip(1).flat_map(|word| [word.clone(), short(word)]);
    let arguments: BTreeSet<String> = arguments.filter(|word| word.len() > 3).collect();
    arguments.into_iter().map(|text| Private { what: "argument", text }).collect()
}

fn tiles(profile: &Profile, summary: &ProfileSummary<'_>) -> Vec<Tile> {
    let pages: u64 = summary.regions.iter().flat_map(|of| of.pages.values()).sum();
    let by_node = |node: &u32| {
        let of_node = summary.regions.iter().filter_map(|of| of.pages.get(node));
        let bytes = of_node.sum::<u64>() * PAGE_BYTES;
        (bytes > 0).then(|| format!("{} on node {node}", size(bytes)))
    };
    let nodes: Vec<String> = summary.nodes.iter().filter_map(by_node).collect();
    let counted = words::counted(&profile.source);
    let all = summary.distance.all();
    let remote = match summary.distance.remote_share() {
        Some(share) => format!("{} remote", words::percent(share)),
        None => "local or remote unknown".to_owned(),
    };
    let running = count(summary.threads.len(), "thread");
    let busy: u64 = profile.program.threads.iter().map(|of| of.busy_ns).sum();
    vec![
        Tile {
            name: "Source",
            value: words::source_name(&profile.source),
            detail: words::unit_is(&profile.source),
        },
        Tile {
            name: "Seen",
            value: words::short_count(all),
            detail: format!("{counted}, {remote}"),
        },
        Tile { name: "Memory", value: size(pages * PAGE_BYTES), detail: nodes.join(", ") },
        Tile { name: "Threads", value: running, detail: format!("{} on cpus", words::time(busy)) },
    ]
}

/// Size of a page in records, in bytes: the base page size of all supported processors.
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests;
