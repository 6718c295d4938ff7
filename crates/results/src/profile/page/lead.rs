//! The key findings of a profile.

use numalab_page::number::{figure, size};
use numalab_page::{Lead, Mood};
use numalab_record::profile::{Ended, Profile, ProfileSource};

use super::PAGE_BYTES;
use super::words::{counted, percent, source_sentence};
use crate::profile::ProfileSummary;
use crate::program::page::failed;
use crate::program::page::program::{lead_of, located, place, short, touches_first};
use crate::program::{Location, RemoteCost};

/// Minimum share of remote accesses that makes a change worthwhile.
const WORTH_SHARE: f64 = 0.05;
/// Shortest observation in ns that shows more than a program's start.
const SHORT_NS: u64 = 100_000_000;
/// Minimum number of events for any statement.
const FEW: u64 = 50;

pub(super) fn lead(profile: &Profile, summary: &ProfileSummary<'_>) -> Vec<Lead> {
    let mut lead = odd_end(profile);
    lead.extend(too_little(profile, summary));
    match cost(profile) {
        // Times say more than counts, if they are known.
        Some(cost) => lead.extend(lead_of(&profile.program, &cost)),
        None => {
            lead.push(placement(profile, summary));
            lead.extend(region(profile, summary));
            lead.extend(latencies(summary));
        }
    }
    lead.extend(heat(profile, summary));
    lead.push(Lead::new("Source", source_sentence(profile), Mood::Plain));
    lead
}

/// Returns the cost of remote memory on an emulated machine.
fn cost(profile: &Profile) -> Option<RemoteCost> {
    if !matches!(profile.source, ProfileSource::Emulation { .. }) {
        return None;
    }
    let program = &profile.program;
    let time_ns: u64 = program.threads.iter().map(|thread| thread.busy_ns).sum();
    let nodes: Vec<u32> = profile.nodes.iter().map(|node| node.node.0).collect();
    Some(RemoteCost::of(program, time_ns as f64, &nodes, &profile.latency_ns))
}

/// Warns of a command that failed.
fn odd_end(profile: &Profile) -> Vec<Lead> {
    let how = match profile.ended {
        Ended::Interrupted => "Interrupted: this covers the time until then.".to_owned(),
        ended => failed(ended).unwrap_or_default(),
    };
    let left = match &profile.left[..] {
        [] => String::new(),
        left => format!(
            "The command left {} running, now terminated: profile a daemon in the foreground, or \
             by --pid.",
            left.join(", ")
        ),
    };
    let said = [how, left].into_iter().filter(|text| !text.is_empty());
    said.map(|text| Lead::new("Command", text, Mood::Odd)).collect()
}

fn too_little(profile: &Profile, summary: &ProfileSummary<'_>) -> Option<Lead> {
    let seen = summary.distance.all();
    let text = match profile.watched_ns {
        short if short < SHORT_NS => {
            format!(
                "It ended after {} ms, so this shows little more than its start.",
                figure(short as f64 / 1e6)
            )
        }
        _ if seen < FEW => {
            format!("Only {seen} {} were seen: profile for longer.", counted(&profile.source))
        }
        _ => return None,
    };
    Some(Lead::new("Little was seen", text, Mood::Odd))
}

fn placement(profile: &Profile, summary: &ProfileSummary<'_>) -> Lead {
    let counted = counted(&profile.source);
    let (text, mood) = match summary.distance.remote_share() {
        _ if profile.nodes.len() < 2 => {
            ("The machine has one node: no memory is remote.".to_owned(), Mood::Fine)
        }
        None => {
            let pages = summary.nodes.iter().filter_map(|node| {
                let of_node = summary.regions.iter().filter_map(|of| of.pages.get(node));
                let bytes = of_node.sum::<u64>() * PAGE_BYTES;
                (bytes > 0).then(|| format!("{} on node {node}", size(bytes)))
            });
            let pages: Vec<String> = pages.collect();
            (
                format!("Its memory: {}. Which nodes use it is unknown.", pages.join(", ")),
                Mood::Plain,
            )
        }
        Some(share) if share >= WORTH_SHARE => (
            format!(
                "{} of the {counted} are remote: to memory on a node other than the cpu's.",
                percent(share)
            ),
            Mood::Odd,
        ),
        Some(share) => (
            format!(
                "{} of the {counted} are local: to memory on the cpu's own node.",
                percent(1.0 - share)
            ),
            Mood::Fine,
        ),
    };
    Lead::new("Placement", text, mood)
}

/// Names the region that other nodes use most, and the line that touches it first.
fn region(profile: &Profile, summary: &ProfileSummary<'_>) -> Option<Lead> {
    let worth = summary.distance.remote_share()? >= WORTH_SHARE;
    let far = summary.far_regions().into_iter().next().filter(|_| worth)?;
    let region = far.region.region;
    let location = Location::of(region, far.memory_node);
    let first = location.toucher(region, far.memory_node);
    let what = touches_first(&location);
    let touched = first.map_or_else(String::new, |first| {
        let at = place(&first.at).map_or_else(String::new, |at| format!(" at {at}"));
        let name = profile.thread_names.get(&first.thread);
        let name = name.map_or_else(String::new, |name| format!(" ({name})"));
        format!(
            " {what} touched first by thread {}{name} on node {}{at}.",
            first.thread, first.cpu_node
        )
    });
    let text = format!(
        "{} at {:#x} ({}) takes {} of these: {}.{touched}",
        short(&region.name),
        region.start,
        size(region.end - region.start),
        percent(far.share),
        located(&location, far.memory_node, &format!("threads on node {}", far.cpu_node))
    );
    Some(Lead::new("Region", text, Mood::Odd))
}

fn latencies(summary: &ProfileSummary<'_>) -> Option<Lead> {
    let (local, remote) = summary.load_cycles();
    let text = match (local, remote) {
        (Some(local), Some(remote)) => format!(
            "A sampled load takes {} cycles on average for local memory and {} for remote memory, \
             caches included.",
            figure(local),
            figure(remote)
        ),
        (Some(all), None) | (None, Some(all)) => {
            format!("A sampled load takes {} cycles on average.", figure(all))
        }
        (None, None) => return None,
    };
    Some(Lead::new("Latency", text, Mood::Plain))
}

/// Describes the share of hot memory, if accesses were counted by page.
fn heat(profile: &Profile, summary: &ProfileSummary<'_>) -> Option<Lead> {
    // Other sources do not count accesses per page.
    if !matches!(profile.source, ProfileSource::Samples { .. } | ProfileSource::Emulation { .. }) {
        return None;
    }
    let hot: u64 = profile.program.regions.iter().map(|region| region.hot_pages).sum();
    let all: u64 = summary.regions.iter().flat_map(|of| of.pages.values()).sum();
    (hot > 0 && all >= hot).then(|| {
        let text = format!(
            "{} of {} take 90 % of the {}.",
            size(hot * PAGE_BYTES),
            size(all * PAGE_BYTES),
            counted(&profile.source)
        );
        Lead::new("Hot pages", text, Mood::Plain)
    })
}
