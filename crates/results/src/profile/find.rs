//! Profiles of a program's memory accesses: regions, their users, and phases.

mod phases;

use std::collections::{BTreeMap, BTreeSet};

use numalab_record::profile::Profile;
use numalab_record::{ProgramThread, Region, RegionAccesses, Sharing};

pub use phases::{Phase, phases};

/// Minimum share of all accesses that must be remote accesses to a region for the region to be
/// named.
const NAMED_SHARE: f64 = 0.01;

/// Access counts by distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distance {
    /// Accesses to memory of the cpu's own node.
    pub local: u64,
    /// Accesses to memory of another node.
    pub remote: u64,
    /// Accesses of unknown distance.
    pub unplaced: u64,
}

impl Distance {
    /// Returns the total number of accesses.
    pub const fn all(&self) -> u64 {
        self.local + self.remote + self.unplaced
    }

    /// Returns the remote share of accesses of known distance, 0 to 1.
    pub fn remote_share(&self) -> Option<f64> {
        let known = self.local + self.remote;
        (known > 0).then(|| self.remote as f64 / known as f64)
    }

    fn add(&mut self, accesses: &RegionAccesses) {
        let count = accesses.all();
        *(if accesses.is_remote() { &mut self.remote } else { &mut self.local }) += count;
    }
}

/// A region with its accesses added up.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionUse<'a> {
    /// The region's index in the program.
    pub position: usize,
    pub region: &'a Region,
    /// All accesses to it by distance.
    pub distance: Distance,
    pub by_thread: BTreeMap<u32, Distance>,
    /// Pages by node: all that are present, or else those seen in use.
    pub pages: BTreeMap<u32, u64>,
    /// Pages by the number of their users, over pages with observed accesses.
    pub sharing: BTreeMap<Sharing, u64>,
    /// Loads and stores, if the source distinguishes them.
    pub loads_stores: Option<(u64, u64)>,
}

/// Everything that a profile shows.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileSummary<'a> {
    /// All regions by number of accesses, then by size, largest first.
    pub regions: Vec<RegionUse<'a>>,
    /// Threads with accesses, node by node.
    pub threads: Vec<&'a ProgramThread>,
    pub distance: Distance,
    /// Node numbers, ascending.
    pub nodes: Vec<u32>,
    /// The program's phases in time order.
    pub phases: Vec<Phase>,
}

/// A region used from other nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FarRegion<'a, 'b> {
    pub region: &'b RegionUse<'a>,
    /// Share of all remote accesses, 0 to 1.
    pub share: f64,
    /// The node from which most of the region's remote accesses come.
    pub cpu_node: u32,
    /// The node to which most of the region's remote accesses go.
    pub memory_node: u32,
}

impl<'a> ProfileSummary<'a> {
    pub fn of(profile: &'a Profile) -> Self {
        let program = &profile.program;
        let mut regions: Vec<RegionUse<'a>> =
            program.regions.iter().enumerate().map(|(at, region)| of_region(at, region)).collect();
        let size = |of: &RegionUse<'_>| of.pages.values().sum::<u64>();
        regions.sort_by_key(|of| std::cmp::Reverse((of.distance.all(), size(of))));
        let mut distance = Distance::default();
        for of in &regions {
            distance.local += of.distance.local;
            distance.remote += of.distance.remote;
            distance.unplaced += of.distance.unplaced;
        }
        distance.unplaced = distance.unplaced.max(program.unplaced);
        let active: BTreeSet<u32> =
            regions.iter().flat_map(|of| of.by_thread.keys().copied()).collect();
        let is_active = |of: &&ProgramThread| active.contains(&of.thread) || of.busy_ns > 0;
        let mut threads: Vec<_> = program.threads.iter().filter(is_active).collect();
        threads.sort_by_key(|of| (of.cpu_node, of.thread));
        let nodes = profile.nodes.iter().map(|node| node.node.0);
        let used = regions.iter().flat_map(|of| of.pages.keys().copied());
        let nodes: BTreeSet<u32> = nodes.chain(used).collect();
        Self {
            regions,
            threads,
            distance,
            nodes: nodes.into_iter().collect(),
            phases: phases(&program.timeline),
        }
    }

    /// Returns the regions used from other nodes, most remote accesses first.
    pub fn far_regions(&self) -> Vec<FarRegion<'a, '_>> {
        let all = self.distance.all().max(1) as f64;
        let is_named = |of: &&RegionUse<'_>| of.distance.remote as f64 >= NAMED_SHARE * all;
        let named = self.regions.iter().filter(is_named);
        let mut found: Vec<_> = named.filter_map(|of| self.far(of)).collect();
        found.sort_by(|one, other| other.share.total_cmp(&one.share));
        found
    }

    fn far<'b>(&self, region: &'b RegionUse<'a>) -> Option<FarRegion<'a, 'b>> {
        let remote = region.region.accesses.iter().filter(|by| by.is_remote());
        let worst = remote.max_by_key(|by| by.all())?;
        Some(FarRegion {
            region,
            share: region.distance.remote as f64 / self.distance.remote.max(1) as f64,
            cpu_node: worst.cpu_node,
            memory_node: worst.memory_node,
        })
    }

    /// Returns the mean latencies of local and of remote loads in cycles, if samples have them.
    pub fn load_cycles(&self) -> (Option<f64>, Option<f64>) {
        let of = |remote| {
            let accesses = self.regions.iter().flat_map(|of| &of.region.accesses);
            let accesses = accesses.filter(|by| by.is_remote() == remote && by.latency_cycles > 0);
            let (cycles, loads) = accesses
                .fold((0, 0), |sum, by| (sum.0 + by.latency_cycles, sum.1 + by.loads.unwrap_or(0)));
            (loads > 0).then(|| cycles as f64 / loads as f64)
        };
        (of(false), of(true))
    }
}

fn of_region(position: usize, region: &Region) -> RegionUse<'_> {
    let mut distance = Distance::default();
    let mut by_thread: BTreeMap<u32, Distance> = BTreeMap::new();
    for accesses in &region.accesses {
        distance.add(accesses);
        by_thread.entry(accesses.thread).or_default().add(accesses);
    }
    distance.unplaced = region.all_accesses().saturating_sub(distance.all());
    let mut sharing = BTreeMap::new();
    let mut seen = BTreeMap::new();
    for alike in &region.pages {
        *sharing.entry(alike.sharing).or_default() += alike.pages;
        *seen.entry(alike.memory_node).or_default() += alike.pages;
    }
    let resident: BTreeMap<u32, u64> =
        region.resident.iter().map(|of| (of.memory_node, of.pages)).collect();
    let sum = |of: fn(&RegionAccesses) -> Option<u64>| region.accesses.iter().map(of).sum();
    let (loads, stores): (Option<u64>, Option<u64>) = (sum(|by| by.loads), sum(|by| by.stores));
    RegionUse {
        position,
        region,
        distance,
        by_thread,
        pages: if resident.is_empty() { seen } else { resident },
        sharing,
        loads_stores: loads.zip(stores).filter(|_| !region.accesses.is_empty()),
    }
}

#[cfg(test)]
mod tests;
