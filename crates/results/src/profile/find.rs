//! What a profile of a program's memory shows: who uses which region from where, and in which
//! phases.

mod phases;

use std::collections::{BTreeMap, BTreeSet};

use numalab_record::profile::Profile;
use numalab_record::{ProgramThread, Region, RegionAccesses, Sharing};

pub use phases::{Phase, phases};

/// A region is worth a word where so much of all accesses are remote ones to it.
const NAMED_SHARE: f64 = 0.01;

/// Accesses by where they go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distance {
    /// To memory of the cpu's own node.
    pub local: u64,
    /// To memory of another node.
    pub remote: u64,
    /// Of which one of the two is not known.
    pub unplaced: u64,
}

impl Distance {
    /// All of them.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.local + self.remote + self.unplaced
    }

    /// Of those whose distance is known, the part that is remote.
    #[must_use]
    pub fn remote_share(&self) -> Option<f64> {
        let known = self.local + self.remote;
        (known > 0).then(|| self.remote as f64 / known as f64)
    }

    fn add(&mut self, accesses: &RegionAccesses) {
        let count = accesses.all();
        *(if accesses.is_remote() { &mut self.remote } else { &mut self.local }) += count;
    }
}

/// A region with its accesses summed up.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionUse<'a> {
    /// Its position in the program.
    pub position: usize,
    /// The region.
    pub region: &'a Region,
    /// All accesses to it.
    pub distance: Distance,
    /// By the thread.
    pub by_thread: BTreeMap<u32, Distance>,
    /// Its pages by node: all that are there, or else those that were seen.
    pub pages: BTreeMap<u32, u64>,
    /// Pages by who uses them, of those whose accesses were seen.
    pub sharing: BTreeMap<Sharing, u64>,
    /// Loads and stores, where they are told apart.
    pub loads_stores: Option<(u64, u64)>,
    /// What is waited for its memory and caches, in ns.
    pub waited_ns: u64,
}

/// What a profile shows.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileSummary<'a> {
    /// The regions, the most accessed first, then the largest.
    pub regions: Vec<RegionUse<'a>>,
    /// The threads with accesses, node by node.
    pub threads: Vec<&'a ProgramThread>,
    /// All accesses.
    pub distance: Distance,
    /// The nodes by number.
    pub nodes: Vec<u32>,
    /// The phases that it went through.
    pub phases: Vec<Phase>,
}

/// A region that other nodes use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FarRegion<'a, 'b> {
    /// The region.
    pub region: &'b RegionUse<'a>,
    /// Of all remote accesses, the part that goes to it.
    pub share: f64,
    /// The node from which most of these come.
    pub cpu_node: u32,
    /// The node that they go to.
    pub memory_node: u32,
}

impl<'a> ProfileSummary<'a> {
    /// Of a profile.
    #[must_use]
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

    /// Regions that other nodes use, the one with the most remote accesses first.
    #[must_use]
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

    /// The mean latency of local and of remote loads, in cycles, where samples tell.
    #[must_use]
    pub fn load_cycles(&self) -> (Option<f64>, Option<f64>) {
        let of = |remote| {
            let accesses = self.regions.iter().flat_map(|of| &of.region.accesses);
            let accesses = accesses.filter(|by| by.is_remote() == remote && by.latency_cycles > 0);
            let (cycles, loads) =
                accesses.fold((0, 0), |sum, by| (sum.0 + by.latency_cycles, sum.1 + by.loads));
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
    let sum = |of: fn(&RegionAccesses) -> u64| region.accesses.iter().map(of).sum::<u64>();
    let (loads, stores) = (sum(|by| by.loads), sum(|by| by.stores));
    RegionUse {
        position,
        region,
        distance,
        by_thread,
        pages: if resident.is_empty() { seen } else { resident },
        sharing,
        loads_stores: (loads + stores > 0).then_some((loads, stores)),
        waited_ns: sum(|by| by.waited_ns),
    }
}

#[cfg(test)]
mod tests;
