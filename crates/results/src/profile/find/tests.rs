use numalab_record::profile::{Ended, ProfileSource, ProfiledNode, Target};
use numalab_record::{NodePages, PagesAlike, ProgramMemory, RegionPart};
use numalab_topology::{CpuSet, NodeId};

use super::*;

fn accesses(thread: u32, cpu_node: u32, memory_node: u32, either: u64) -> RegionAccesses {
    RegionAccesses { thread, cpu_node, memory_node, either, ..RegionAccesses::default() }
}

fn profile(regions: Vec<Region>, threads: &[(u32, u32)]) -> Profile {
    let thread = |(thread, cpu_node): &(u32, u32)| ProgramThread {
        thread: *thread,
        cpu_node: *cpu_node,
        busy_ns: 0,
        elsewhere: Vec::new(),
    };
    let threads = threads.iter().map(thread).collect();
    let node = |node| ProfiledNode { node: NodeId(node), cpus: CpuSet::new() };
    Profile {
        target: Target::Command(vec!["test".to_owned()]),
        watched_ns: 1,
        ended: Ended::Exited(0),
        left: Vec::new(),
        source: ProfileSource::Faults { balancing: true },
        faults: None,
        cannot_see: Vec::new(),
        passed_over: Vec::new(),
        nodes: vec![node(0), node(1)],
        latency_ns: Vec::new(),
        name: "test".to_owned(),
        program: ProgramMemory { regions, threads, ..ProgramMemory::default() },
        thread_names: BTreeMap::new(),
        others: Vec::new(),
        processes: Vec::new(),
    }
}

fn region(name: &str, accesses: Vec<RegionAccesses>) -> Region {
    Region { name: name.to_owned(), end: 4096, accesses, ..Region::default() }
}

#[test]
fn the_region_that_other_nodes_use_most_is_found_with_both_nodes() {
    let regions = vec![
        region("local", vec![accesses(1, 0, 0, 500)]),
        region("shared", vec![accesses(1, 0, 0, 50), accesses(2, 1, 0, 300), accesses(3, 1, 1, 9)]),
        region("small", vec![accesses(1, 0, 1, 2)]),
    ];
    let profile = profile(regions, &[(2, 1), (1, 0), (3, 1), (9, 0)]);
    let summary = ProfileSummary::of(&profile);
    assert_eq!(summary.distance, Distance { local: 559, remote: 302, unplaced: 0 });
    let far = summary.far_regions();
    let [shared] = &far[..] else { panic!("{far:?}") };
    assert_eq!(shared.region.region.name, "shared");
    assert_eq!((shared.cpu_node, shared.memory_node), (1, 0));
    assert!((shared.share - 300.0 / 302.0).abs() < 1e-9);
    let threads: Vec<u32> = summary.threads.iter().map(|of| of.thread).collect();
    assert_eq!(threads, [1, 2, 3], "node by node, without the idle one");
    let order: Vec<&str> = summary.regions.iter().map(|of| &*of.region.name).collect();
    assert_eq!(order, ["local", "shared", "small"]);
    assert_eq!(summary.regions[1].by_thread[&2], Distance { remote: 300, ..Distance::default() });
}

#[test]
fn accesses_without_a_thread_count_with_unknown_distance() {
    let part = RegionPart { end: 4096, accesses: 70, ..RegionPart::default() };
    let used = Region { parts: vec![part], ..region("used", Vec::new()) };
    let profile = profile(vec![used], &[]);
    let summary = ProfileSummary::of(&profile);
    assert_eq!(summary.distance, Distance { unplaced: 70, ..Distance::default() });
    assert_eq!(summary.distance.remote_share(), None);
}

#[test]
fn pages_are_those_that_are_there_or_else_those_that_were_seen() {
    let alike = PagesAlike {
        memory_node: 1,
        main_node: 0,
        bound: false,
        sharing: Sharing::Read,
        pages: 7,
        accesses: 70,
        waits: Vec::new(),
    };
    let seen = Region { pages: vec![alike], ..region("seen", Vec::new()) };
    let resident = vec![NodePages { memory_node: 0, pages: 9 }];
    let there = Region { resident, ..seen.clone() };
    let profile = profile(vec![seen, there], &[]);
    let summary = ProfileSummary::of(&profile);
    let pages = |at: usize| {
        let found = summary.regions.iter().find(|of| of.position == at).unwrap();
        found.pages.clone()
    };
    assert_eq!((pages(0), pages(1)), (BTreeMap::from([(1, 7)]), BTreeMap::from([(0, 9)])));
    assert_eq!(summary.regions[0].sharing[&Sharing::Read], 7);
}

#[test]
fn load_latencies_are_reported_by_distance() {
    let load = |memory_node, loads, latency_cycles| RegionAccesses {
        loads: Some(loads),
        stores: Some(0),
        latency_cycles,
        ..accesses(1, 0, memory_node, 0)
    };
    let regions = vec![region("a", vec![load(0, 10, 2000), load(1, 4, 1600)])];
    let profile = profile(regions, &[(1, 0)]);
    let summary = ProfileSummary::of(&profile);
    assert_eq!(summary.load_cycles(), (Some(200.0), Some(400.0)));
    assert_eq!(summary.regions[0].loads_stores, Some((14, 0)));
}
