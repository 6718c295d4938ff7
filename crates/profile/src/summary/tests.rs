use numalab_host::perf::{MapRecord, SampleRecord};

use super::*;
use crate::program::Counted;

const PAGE: u64 = 4096;
const START: u64 = 0x7f00_0000_0000;

fn program() -> Program {
    let mut program = Program::new(9, "test".to_owned(), 0, PAGE);
    for (start, pages, name) in [(0x40_0000, 4, "/bin/test"), (START, 128, "//anon")] {
        let end = start + pages * PAGE;
        let name = name.to_owned();
        program.space.take(&MapRecord { time_ns: 0, process: 9, start, end, offset: 0, name });
    }
    program
}

fn touch(program: &mut Program, thread: u32, cpu_node: u32, page: u64) {
    let sample = SampleRecord {
        time_ns: 1_000,
        process: 9,
        thread,
        cpu: 0,
        calls: vec![0x40_0010],
        address: START + page * PAGE,
        stack_pointer: None,
        access: None,
        latency_cycles: 0,
    };
    program.sample(&sample, cpu_node, Counted::Access);
    program.settle(|pages| vec![Some(0); pages.len()]);
}

#[test]
fn a_region_has_its_first_touches_its_users_and_its_hot_parts() {
    let mut program = program();
    for page in 0..100 {
        touch(&mut program, 1, 0, page);
    }
    for _ in 0..300 {
        touch(&mut program, 2, 1, 127);
    }
    let memory = program_memory(program, 5_000_000, PAGE);
    let [region] = &memory.regions[..] else { panic!("{:?}", memory.regions) };
    assert_eq!((region.start, region.end), (START, START + 128 * PAGE));
    assert_eq!(region.first_touches.iter().map(|of| of.pages).collect::<Vec<_>>(), [100, 1]);
    assert_eq!(region.first_touches[0].at[0].offset, 0x10);
    let by: Vec<_> = region.accesses.iter().map(|of| (of.thread, of.cpu_node, of.either)).collect();
    assert_eq!(by, [(1, 0, 100), (2, 1, 300)]);
    assert_eq!(region.parts.len(), 64);
    let (first, last) = (region.parts[0], region.parts[63]);
    assert_eq!((first.accesses, first.remote, first.memory_node), (2, 0, Some(0)));
    assert_eq!((last.accesses, last.remote, last.end), (300, 300, region.end));
    assert_eq!(region.hot_pages, 61, "the last page, and 60 of the others");
    let alike: Vec<_> = region.pages.iter().map(|of| (of.main_node, of.pages)).collect();
    assert_eq!(alike, [(0, 100), (1, 1)]);
    assert_eq!((region.accessed_at[0].accesses, region.accessed_at[0].remote), (400, 300));
    let of_time = &memory.timeline[0].regions[0];
    assert_eq!((of_time.region, of_time.local, of_time.remote), (0, 100, 300));
    assert_eq!(memory.threads.iter().map(|of| of.cpu_node).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn ranges_are_spread_over_the_parts_that_they_cover() {
    let mut program = program();
    let used = RangeUse { used: 64, written: Some(32) };
    program.used((START, START + 64 * PAGE), used, (0, 10));
    let memory = program_memory(program, 100, PAGE);
    let region = &memory.regions[0];
    let accesses: Vec<u64> = region.parts.iter().map(|part| part.accesses).collect();
    assert_eq!(accesses[..32], [2; 32]);
    assert_eq!(accesses[32..], [0; 32]);
    assert_eq!(region.parts[0].stores, Some(1));
    assert_eq!(region.all_accesses(), 64);
}

#[test]
fn unused_resident_memory_is_reported() {
    let mut program = program();
    program.resident.insert(1, BTreeMap::from([(0, 20), (1, 5)]));
    let memory = program_memory(program, 100, PAGE);
    let region = &memory.regions[0];
    assert_eq!(region.resident.iter().map(|of| of.pages).collect::<Vec<_>>(), [20, 5]);
    assert!(region.parts.is_empty() && region.all_accesses() == 0);
}

#[test]
fn memory_of_several_threads_is_not_named_after_the_stack_that_is_merged_with_it() {
    let named = |others: u64| {
        let mut program = program();
        program.space.stack(START, 1);
        for page in 0..20 {
            touch(&mut program, 1, 0, page);
        }
        for page in 20..20 + others {
            touch(&mut program, 2, 0, page);
        }
        program_memory(program, 5_000_000, PAGE).regions[0].name.clone()
    };
    assert_eq!([0, 2, 3].map(named), ["[stack:1]", "[stack:1]", "[anonymous]"]);
}
