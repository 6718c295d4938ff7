use std::collections::BTreeMap;

use numalab_host::perf::{MemoryEvent, MemoryUnit, PerfRecord};
use numalab_record::profile::{Ended, Hindrance, PassedOver, SampledEvent, SamplingUnit};

use super::*;
use crate::follow::Follower;
use crate::nodes::Nodes;
use crate::program::Counted;
use crate::test_records::{CHILD, CODE, HEAP, PROCESS, fault, load, machine, map};

fn command() -> Target {
    Target::Command(vec!["prog".to_owned(), "x".to_owned()])
}

/// Observations by this source of a parent with 3 faults and a child with 1.
fn seen(source: Source) -> Seen {
    let mut follower = Follower::new(Nodes::of(&machine(1)), Counted::Access);
    follower.take(&[
        PerfRecord::Exec { time_ns: 1, process: PROCESS, name: "prog".to_owned() },
        map(PROCESS, CODE, 4, "/bin/prog"),
        map(PROCESS, HEAP, 64, "//anon"),
        PerfRecord::Forked { time_ns: 5, parent: PROCESS, process: CHILD, thread: CHILD },
        PerfRecord::Named { time_ns: 5, process: PROCESS, thread: 9, name: "io".to_owned() },
        fault(CHILD, CHILD, 0, 0),
        fault(PROCESS, 9, 0, 0),
        fault(PROCESS, 9, 1, 1),
        fault(PROCESS, 9, 1, 1),
    ]);
    follower.settle_all();
    Seen {
        follower,
        source,
        has_faults: true,
        passed_over: Vec::new(),
        ended: Ended::Exited(3),
        left: vec!["sleep (12)".to_owned()],
        times_ns: (1_000, 6_000),
        lost: (4, 2),
    }
}

fn unit() -> MemoryUnit {
    let event = |name: &str, least_latency_cycles| MemoryEvent {
        name: name.to_owned(),
        unit_type: 4,
        config: [0; 3],
        period: 1000,
        least_latency_cycles,
        precise: 2,
        helper: None,
        cpus: None,
        may_exclude_kernel: true,
    };
    let events = vec![event("cpu/mem-loads/", Some(30)), event("cpu/mem-stores/", None)];
    MemoryUnit { kind: SamplingUnit::Pebs, events }
}

#[test]
fn processes_are_one_program_named_by_the_one_with_the_most_accesses() {
    let profile = profile(command(), seen(Source::Faults { balancing: true }), Vec::new());
    assert_eq!((profile.name.as_str(), profile.program.process), ("prog", PROCESS));
    assert_eq!(profile.watched_ns, 5_000);
    assert_eq!((profile.ended, profile.left), (Ended::Exited(3), vec!["sleep (12)".to_owned()]));
    assert_eq!(profile.thread_names, BTreeMap::from([(9, "io".to_owned())]));
    let other = OtherProcess {
        process: CHILD,
        name: "prog".to_owned(),
        busy_ns: 0,
        accesses: 1,
        remote: 0,
        touched_pages: 1,
    };
    assert_eq!((profile.processes.len(), profile.others.len()), (2, 0));
    assert!(profile.processes.contains(&other), "{:?}", profile.processes);
    let accesses: u64 = profile.program.regions.iter().map(|of| of.all_accesses()).sum();
    assert_eq!(accesses, 4, "of both");
    assert_eq!(profile.target, command());
    assert_eq!(profile.nodes.len(), 1);
}

#[test]
fn faults_are_summed_over_all_programs_with_repeated_and_lost_ones() {
    let profile = profile(command(), seen(Source::Faults { balancing: true }), Vec::new());
    assert_eq!(profile.faults, Some(FaultsSeen { seen: 4, again: 1, lost: 4 }));
    assert_eq!(profile.source, ProfileSource::Faults { balancing: true });
}

#[test]
fn without_fault_events_first_touches_are_invisible() {
    let seen = Seen { has_faults: false, ..seen(Source::Faults { balancing: false }) };
    let profile = profile(command(), seen, Vec::new());
    assert_eq!(profile.faults, None);
    let expected = [
        CannotSee::LaterAccesses,
        CannotSee::LoadsFromStores,
        CannotSee::Waiting,
        CannotSee::HeapSites,
        CannotSee::FirstTouches,
    ];
    assert_eq!(profile.cannot_see, expected);
}

#[test]
fn pages_unmapped_by_balancing_are_seen_again_but_not_how_often_they_are_used() {
    let mut seen = seen(Source::Faults { balancing: true });
    seen.follower.cannot(CannotSee::Before);
    let profile = profile(command(), seen, Vec::new());
    let expected = [
        CannotSee::HowOften,
        CannotSee::LoadsFromStores,
        CannotSee::Waiting,
        CannotSee::HeapSites,
        CannotSee::CallsWithoutFramePointers,
        CannotSee::Before,
    ];
    assert_eq!(profile.cannot_see, expected);
}

#[test]
fn samples_have_their_unit_events_and_lost_records() {
    let mut seen = seen(Source::Samples(unit()));
    seen.follower.take(&[load(PROCESS, 0, 2, 100), load(PROCESS, 0, 2, 200)]);
    seen.follower.settle_all();
    let profile = profile(command(), seen, Vec::new());
    let event = |event: &str, least_latency_cycles| SampledEvent {
        event: event.to_owned(),
        period: 1000,
        least_latency_cycles,
    };
    let expected = ProfileSource::Samples {
        unit: SamplingUnit::Pebs,
        events: vec![event("cpu/mem-loads/", Some(30)), event("cpu/mem-stores/", None)],
        taken: 2,
        lost: 4,
        throttled: 2,
    };
    assert_eq!(profile.source, expected);
    assert_eq!(profile.faults.map(|faults| faults.lost), Some(0));
    assert_eq!(profile.cannot_see[0], CannotSee::FastLoads { cycles: 30 });
}

#[test]
fn pages_beyond_the_limit_are_reported() {
    let mut seen = seen(Source::Faults { balancing: true });
    seen.follower.living.values_mut().for_each(|program| program.pages.is_cut = true);
    let profile = profile(command(), seen, Vec::new());
    let cut = CannotSee::PagesBeyond { most: MOST_PAGES as u64 };
    assert!(profile.cannot_see.contains(&cut), "{:?}", profile.cannot_see);
}

#[test]
fn passed_over_sources_are_kept() {
    let passed = vec![PassedOver { source: SourceName::Samples, why: Hindrance::NoPmu }];
    let seen = seen(Source::Faults { balancing: true });
    let profile = profile(command(), seen, passed.clone());
    assert_eq!(profile.passed_over, passed);
}

#[test]
fn a_profile_of_nothing_is_empty() {
    let follower = Follower::new(Nodes::of(&machine(2)), Counted::Access);
    let seen = Seen { follower, ..seen(Source::Faults { balancing: false }) };
    let profile = profile(command(), seen, Vec::new());
    assert_eq!((profile.name.as_str(), profile.others.len()), ("", 0));
    assert_eq!(profile.program, ProgramMemory::default());
}
