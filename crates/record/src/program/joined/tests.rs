use super::super::{Elsewhere, FirstTouches};

use super::*;

/// Returns a process with one thread on a node, which loads from parts of a mapping of 4 parts on
/// node 0.
fn process(number: u32, node: u32, loads: [u64; 4]) -> ProgramMemory {
    let parts = (1..).zip(loads).map(|(end, accesses)| RegionPart {
        end: end * 0x1000,
        accesses,
        ..RegionPart::default()
    });
    let region = Region {
        start: 0,
        end: 0x4000,
        name: "[anonymous]".to_owned(),
        shared: true,
        hot_pages: 4,
        parts: parts.collect(),
        pages: vec![PagesAlike {
            memory_node: 0,
            main_node: node,
            bound: false,
            sharing: Sharing::Private,
            pages: 4,
            accesses: loads.iter().sum(),
            waits: vec![NodeWaits { cpu_node: node, memory_ns: 10 * u64::from(node + 1) }],
        }],
        accesses: vec![RegionAccesses {
            cpu_node: node,
            loads: Some(loads.iter().sum()),
            stores: Some(0),
            ..RegionAccesses::default()
        }],
        ..Region::default()
    };
    let elsewhere =
        [Placed::Packed, Placed::Users].map(|placed| Elsewhere { placed, longer_ns: 1 });
    let stretch = StretchAccesses { region: 0, local: 5, ..StretchAccesses::default() };
    ProgramMemory {
        process: number,
        elapsed_ns: u64::from(number),
        threads: vec![ProgramThread {
            thread: 0,
            cpu_node: node,
            busy_ns: 100,
            elsewhere: elsewhere.to_vec(),
        }],
        regions: vec![region],
        timeline: vec![Stretch {
            end_ns: u64::from(number),
            busy_ns: 100,
            regions: vec![stretch],
            ..Stretch::default()
        }],
        ..ProgramMemory::default()
    }
}

#[test]
fn a_program_of_one_process_stays_as_it_is() {
    let one = process(9, 1, [1; 4]);
    assert_eq!(ProgramMemory::joined(vec![one.clone()]), one);
}

#[test]
fn threads_are_numbered_through_and_times_and_accesses_add_up() {
    let whole = ProgramMemory::joined(
        [10, 12, 11].map(|number| process(number, number % 2, [3; 4])).to_vec(),
    );
    let threads: Vec<u32> = whole.threads.iter().map(|of| of.thread).collect();
    assert_eq!((threads, whole.elapsed_ns, whole.process), (vec![0, 1, 2], 12, 10));
    assert_eq!(whole.regions.len(), 1);
    let by: Vec<u32> = whole.regions[0].accesses.iter().map(|of| of.thread).collect();
    assert_eq!(by, [0, 1, 2]);
    let busy: u64 = whole.timeline.iter().map(|of| of.busy_ns).sum();
    let local: u64 = whole.timeline.iter().flat_map(|of| &of.regions).map(|of| of.local).sum();
    assert_eq!((busy, local), (300, 15));
    assert!(whole.timeline.is_sorted_by_key(|of| of.end_ns));
    let kept = whole.threads.iter().flat_map(|of| &of.elsewhere);
    assert!(kept.map(|of| &of.placed).all(|placed| *placed == Placed::Users));
}

#[test]
fn pages_that_processes_on_several_nodes_read_are_the_same_ones_and_shared() {
    let whole = ProgramMemory::joined(vec![process(1, 0, [9; 4]), process(2, 1, [9; 4])]);
    let region = &whole.regions[0];
    assert_eq!(region.pages.len(), 1);
    let pages = &region.pages[0];
    assert_eq!((pages.sharing, pages.pages, pages.accesses), (Sharing::Read, 4, 72));
    assert_eq!((pages.main_node, pages.waits.len(), region.hot_pages), (1, 2, 4));
}

#[test]
fn stores_of_threads_other_than_the_first_make_pages_written_shared() {
    let stores = |first: u32| {
        let mut processes = vec![process(1, 0, [9; 4]), process(2, 1, [9; 4])];
        let made = FirstTouches { thread: 0, cpu_node: 0, pages: 4, at: Vec::new() };
        processes[0].regions[0].first_touches.push(made);
        processes[first as usize].regions[0].accesses[0].stores = Some(30);
        ProgramMemory::joined(processes).regions[0].pages[0].sharing
    };
    assert_eq!((stores(0), stores(1)), (Sharing::Read, Sharing::Written));
}

#[test]
fn parts_of_a_shared_mapping_that_one_process_uses_each_are_not_shared() {
    let whole =
        ProgramMemory::joined(vec![process(1, 0, [9, 9, 0, 0]), process(2, 1, [0, 0, 9, 9])]);
    let sharing = whole.regions[0].pages.iter().map(|of| of.sharing);
    assert_eq!(sharing.collect::<Vec<_>>(), [Sharing::Private; 2]);
    assert_eq!(whole.regions[0].parts.iter().map(|of| of.accesses).sum::<u64>(), 36);
}

#[test]
fn private_mappings_of_each_process_add_their_pages() {
    let own = |node: u32| {
        let mut process = process(node + 1, node, [9; 4]);
        process.regions[0].shared = false;
        process
    };
    let region = &ProgramMemory::joined(vec![own(0), own(1)]).regions[0];
    assert_eq!((region.hot_pages, region.pages.len()), (8, 2));
    assert!(region.pages.iter().all(|of| of.sharing == Sharing::Private));
}

#[test]
fn page_faults_of_processes_are_added() {
    let with = |page_faults| ProgramMemory { page_faults, ..ProgramMemory::default() };
    let of = |count| Some(KernelTime { count, time_ns: 10 * count });
    assert_eq!(
        ProgramMemory::joined(vec![with(of(1)), with(None), with(of(2))]).page_faults,
        of(3)
    );
    assert_eq!(ProgramMemory::joined(vec![with(None), with(None)]).page_faults, None);
}
