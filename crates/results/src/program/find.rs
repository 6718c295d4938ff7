//! The cost of remote memory to a program, by region.

mod runtimes;

use std::collections::{BTreeMap, BTreeSet};

use numalab_record::{
    CodePlace, ContendedLine, FirstTouches, MemoryReport, ProgramMemory, Region, RegionAccesses,
};

pub use runtimes::is_runtimes_own;

/// Minimum share of the program's time spent on a region's remote accesses for the region to be
/// named.
const NAMED_SHARE: f64 = 0.01;

/// Minimum share of its pages on a node for a region to count as on that node.
const WHOLE_SHARE: f64 = 0.95;
/// Maximum ratio of pages between nodes for a region to count as spread evenly, which interleaving
/// ensures.
const EVEN: f64 = 1.5;

/// The location of a region with pages on one node that are remote to their users.
#[derive(Clone, Debug, PartialEq)]
pub enum Location {
    /// The whole region is on that node.
    Whole,
    /// This share of its pages is on that node.
    Part(f64),
    /// The region is spread evenly over these nodes.
    Spread(Vec<u32>),
}

impl Location {
    /// Returns the location of a region with remote pages on a node.
    pub fn of(region: &Region, memory_node: u32) -> Self {
        let mut pages: BTreeMap<u32, u64> = BTreeMap::new();
        for of in &region.pages {
            *pages.entry(of.memory_node).or_default() += of.pages;
        }
        let all = pages.values().sum::<u64>() as f64;
        let share = |node: u32| pages.get(&node).map_or(0.0, |pages| *pages as f64 / all);
        let here = share(memory_node);
        if pages.is_empty() || here >= WHOLE_SHARE {
            return Self::Whole;
        }
        let least = 1.0 - WHOLE_SHARE;
        let nodes: Vec<u32> = pages.keys().copied().filter(|node| share(*node) >= least).collect();
        let shares = || nodes.iter().map(|node| share(*node));
        let (most, fewest) = (shares().fold(0.0, f64::max), shares().fold(1.0, f64::min));
        let is_even = nodes.contains(&memory_node) && most <= EVEN * fewest;
        if is_even { Self::Spread(nodes) } else { Self::Part(here) }
    }

    /// Returns the thread and code that, by touching them first, placed most of a region's remote
    /// pages on a node; `None` if no first touch there is known.
    pub fn toucher<'r>(&self, region: &'r Region, memory_node: u32) -> Option<&'r FirstTouches> {
        let is_spread = matches!(self, Self::Spread(_));
        let there = |of: &&FirstTouches| is_spread || of.cpu_node == memory_node;
        region.first_touches.iter().filter(there).max_by_key(|touches| touches.pages)
    }
}

/// The cost of remote memory to a program.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteCost {
    /// The time of all its threads, in ns.
    pub time_ns: f64,
    /// The part of that time spent on memory and caches, in ns.
    pub memory_ns: f64,
    /// The time that would be saved if every access to memory were local, in ns; lines that threads pass
    /// to each other are not counted.
    pub remote_ns: f64,
    /// The thread with most of it, and its part in ns.
    pub slowest: Option<(u32, f64)>,
    /// The regions that cost most of it, most costly first.
    pub regions: Vec<RemoteRegion>,
}

/// A region with pages away from the cpus that use them.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteRegion {
    pub region: Region,
    /// The extra cost of its remote accesses over local ones, in ns.
    pub remote_ns: f64,
    /// The cpu node with the highest cost.
    pub cpu_node: u32,
    /// The memory node that this cost concerns.
    pub memory_node: u32,
}

/// Returns the innermost place of the user's code with a known source line, else the innermost
/// function with a name. Allocators and runtimes are skipped, because nothing can be changed there.
pub fn user_code(places: &[CodePlace]) -> Option<&CodePlace> {
    let own = || places.iter().filter(|place| !runtimes::is_of_runtime(place));
    let with_line = own().find(|place| place.line.is_some());
    with_line.or_else(|| own().find(|place| place.function.is_some()))
}

/// Returns the data files on disk that a program maps. Their pages stay on the node that read them
/// first, possibly for another program.
pub fn mapped_files(program: &ProgramMemory) -> BTreeSet<&str> {
    let places = program.regions.iter().flat_map(|region| {
        let touched = region.first_touches.iter().flat_map(|touches| &touches.at);
        region.made_at.iter().chain(touched)
    });
    let code: BTreeSet<&str> = places.map(|place| place.object.as_str()).collect();
    let names = program.regions.iter().map(|region| region.name.as_str());
    let is_on_disk = |name: &str| name.starts_with('/') && !is_in_memory(name);
    names.filter(|name| is_on_disk(name) && !name.contains(".so") && !code.contains(name)).collect()
}

/// Returns `true` for the name of shared memory: a segment, or a file in memory. Policies apply to
/// its pages as to those of the program itself.
fn is_in_memory(name: &str) -> bool {
    let beginnings = ["/dev/", "/SYSV", "/memfd:", "/anon_hugepage"];
    name.ends_with(" (deleted)") || beginnings.iter().any(|begin| name.starts_with(begin))
}

/// Returns the waiting of all threads for contended lines, in ns.
pub fn contended_ns(program: &ProgramMemory) -> u64 {
    program.contended_lines.iter().map(ContendedLine::waited_ns).sum()
}

/// Returns the part of that waiting for lines that threads on different nodes use, in ns.
pub(crate) fn passed_between_nodes_ns(program: &ProgramMemory) -> u64 {
    let crosses = |line: &&ContendedLine| {
        line.threads.windows(2).any(|users| users[0].cpu_node != users[1].cpu_node)
    };
    program.contended_lines.iter().filter(crosses).map(ContendedLine::waited_ns).sum()
}

impl RemoteCost {
    /// Computes the cost for the program of a memory emulator's report.
    pub fn of_report(report: &MemoryReport, program: &ProgramMemory) -> Self {
        let id = |node: u64| u32::try_from(node).unwrap_or(u32::MAX);
        let nodes: Vec<u32> = report.machine.nodes.iter().map(|node| id(node.id)).collect();
        Self::of(program, report.time_ns() as f64, &nodes, &report.machine.latency_ns)
    }

    /// Computes the cost for a program that took `time_ns` over all threads, on a machine with
    /// these nodes and latencies; rows are the cpu's node.
    pub fn of(
        program: &ProgramMemory,
        time_ns: f64,
        nodes: &[u32],
        latency_ns: &[Vec<f64>],
    ) -> Self {
        let at = |node: u32| nodes.iter().position(|id| *id == node);
        // Only the cost beyond that of a local access.
        let beyond = |cpu_node: u32, memory_node: u32| -> f64 {
            let latency = |to: u32| latency_ns.get(at(cpu_node)?)?.get(at(to)?).copied();
            let (Some(local), Some(remote)) = (latency(cpu_node), latency(memory_node)) else {
                return 0.0;
            };
            if remote > local { 1.0 - local / remote } else { 0.0 }
        };
        let (mut memory_ns, mut remote_ns) = (0.0, 0.0);
        let mut by_thread: BTreeMap<u32, f64> = BTreeMap::new();
        let mut regions = Vec::new();
        for region in &program.regions {
            let mut of_region_ns = 0.0;
            let mut worst: Option<(f64, &RegionAccesses)> = None;
            for accesses in &region.accesses {
                let waited_ns = accesses.waits().waited_ns as f64;
                let extra_ns = waited_ns * beyond(accesses.cpu_node, accesses.memory_node);
                memory_ns += waited_ns;
                of_region_ns += extra_ns;
                *by_thread.entry(accesses.thread).or_default() += extra_ns;
                if worst.is_none_or(|(most_ns, _)| extra_ns >= most_ns) {
                    worst = Some((extra_ns, accesses));
                }
            }
            remote_ns += of_region_ns;
            let is_named = of_region_ns >= NAMED_SHARE * time_ns.max(1.0);
            if let Some((_, RegionAccesses { cpu_node, memory_node, .. })) =
                worst.filter(|_| is_named)
            {
                regions.push(RemoteRegion {
                    region: region.clone(),
                    remote_ns: of_region_ns,
                    cpu_node: *cpu_node,
                    memory_node: *memory_node,
                });
            }
        }
        regions.sort_by(|one, other| other.remote_ns.total_cmp(&one.remote_ns));
        let slowest = by_thread.into_iter().max_by(|one, other| one.1.total_cmp(&other.1));
        Self { time_ns, memory_ns, remote_ns, slowest, regions }
    }
}

#[cfg(test)]
mod tests {
    use numalab_record::{AccessWaits, PagesAlike, Sharing};

    use super::*;

    fn region(name: &str, accesses: &[(u32, u32, u64)]) -> Region {
        let of = |&(cpu_node, memory_node, waited_ns): &(u32, u32, u64)| RegionAccesses {
            cpu_node,
            memory_node,
            loads: Some(1),
            waits: Some(AccessWaits { waited_ns, ..AccessWaits::default() }),
            ..RegionAccesses::default()
        };
        let accesses = accesses.iter().map(of).collect();
        Region { end: 4096, name: name.to_owned(), accesses, ..Region::default() }
    }

    #[test]
    fn a_region_costs_the_extra_time_of_its_remote_accesses() {
        let program = ProgramMemory {
            regions: vec![
                region("local", &[(0, 0, 500)]),
                region("shared", &[(0, 4, 300), (4, 4, 100), (0, 0, 7)]),
                region("small", &[(4, 0, 3)]),
            ],
            ..ProgramMemory::default()
        };
        let latency = [vec![100.0, 300.0], vec![200.0, 100.0]];
        let cost = RemoteCost::of(&program, 1000.0, &[0, 4], &latency);
        assert!((cost.remote_ns - (200.0 + 1.5)).abs() < 1e-9, "{cost:?}");
        assert!((cost.memory_ns - 910.0).abs() < 1e-9);
        let (thread, ns) = cost.slowest.unwrap();
        assert!(thread == 0 && (ns - cost.remote_ns).abs() < 1e-9, "{cost:?}");
        let [shared] = &cost.regions[..] else { panic!("{cost:?}") };
        assert_eq!(
            (shared.region.name.as_str(), shared.cpu_node, shared.memory_node),
            ("shared", 0, 4)
        );
    }

    #[test]
    fn a_region_is_on_a_node_or_partly_or_spread_evenly_with_the_first_touch_of_its_remote_pages() {
        let of = |pages: &[(u32, u64)]| {
            let alike = |&(memory_node, pages): &(u32, u64)| PagesAlike {
                memory_node,
                main_node: 1,
                bound: false,
                sharing: Sharing::Private,
                pages,
                accesses: 9,
                waits: Vec::new(),
            };
            let touch =
                |thread, cpu_node, pages| FirstTouches { thread, cpu_node, pages, at: Vec::new() };
            let region = Region {
                pages: pages.iter().map(alike).collect(),
                first_touches: vec![touch(0, 0, 256), touch(3, 1, 512)],
                ..region("[anonymous]", &[])
            };
            let found = Location::of(&region, 0);
            let thread = found.toucher(&region, 0).map(|touches| touches.thread);
            (found, thread)
        };
        assert_eq!(of(&[]), (Location::Whole, Some(0)));
        assert_eq!(of(&[(0, 98), (1, 2)]), (Location::Whole, Some(0)));
        assert_eq!(of(&[(0, 256), (1, 768)]), (Location::Part(0.25), Some(0)));
        let four = [(0, 256), (1, 256), (2, 250), (3, 256), (5, 4)];
        assert_eq!(of(&four), (Location::Spread(vec![0, 1, 2, 3]), Some(3)));
    }

    #[test]
    fn a_place_with_a_line_comes_before_one_with_only_a_name() {
        let place = |function: Option<&str>, line: Option<&str>| CodePlace {
            object: "a".to_owned(),
            offset: 1,
            function: function.map(str::to_owned),
            line: line.map(str::to_owned),
        };
        let places =
            [place(None, None), place(Some("memset"), None), place(Some("f"), Some("f.c:3"))];
        assert_eq!(user_code(&places), Some(&places[2]));
        assert_eq!(user_code(&places[..2]), Some(&places[1]));
        assert_eq!(user_code(&places[..1]), None);
    }

    #[test]
    fn data_files_are_distinguished_from_programs_and_libraries() {
        let pages = |name: &str, object: &str| {
            let place =
                CodePlace { object: object.to_owned(), offset: 0, function: None, line: None };
            let pages = PagesAlike {
                memory_node: 0,
                main_node: 1,
                bound: false,
                sharing: Sharing::Read,
                pages: 7,
                accesses: 9,
                waits: Vec::new(),
            };
            Region { made_at: vec![place], pages: vec![pages], ..region(name, &[]) }
        };
        let names = ["/data/model.bin", "/bin/app", "/lib/libc.so.6", "[heap]", "/data/model.bin"];
        let names = [&names[..], &["/dev/shm/ring", "/SYSV00000000 (deleted)"]].concat();
        let regions = names.iter().map(|name| pages(name, "/bin/app")).collect();
        let program = ProgramMemory { regions, ..ProgramMemory::default() };
        assert_eq!(mapped_files(&program), ["/data/model.bin"].into());
    }

    #[test]
    fn memory_as_near_as_local_memory_costs_nothing_more() {
        let program = ProgramMemory {
            regions: vec![region("flat", &[(0, 1, 900), (2, 0, 5)])],
            ..ProgramMemory::default()
        };
        let cost = RemoteCost::of(&program, 1000.0, &[0, 1], &[vec![100.0; 2], vec![100.0; 2]]);
        assert_eq!(cost.remote_ns, 0.0);
        assert!(cost.regions.is_empty());
    }
}
