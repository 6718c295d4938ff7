//! Profiles of programs from every source, on this machine and on an emulated one.

use std::collections::BTreeMap;

use numalab_page::Style;
use numalab_record::profile::{
    CannotSee, Ended, FaultsSeen, Hindrance, OtherProcess, PassedOver, Profile, ProfileSource,
    ProfiledNode, SampledEvent, SamplingUnit, SourceName, Target,
};
use numalab_record::{
    AccessWaits, AccessedAt, CodePlace, ContendedLine, FirstTouches, LineUser, NodePages,
    PagesAlike, ProgramMemory, ProgramThread, Region, RegionAccesses, RegionPart, Sharing, Stretch,
    StretchAccesses,
};
use numalab_results::Report;
use numalab_topology::NodeId;

use crate::whole;

const MS: u64 = 1_000_000;

fn code(function: &str, line: Option<&str>) -> Vec<CodePlace> {
    vec![CodePlace {
        object: "/scratch/bin/solver".to_owned(),
        offset: 0x40,
        function: Some(function.to_owned()),
        line: line.map(str::to_owned),
    }]
}

fn accesses(thread: u32, cpu_node: u32, memory_node: u32, loads: u64) -> RegionAccesses {
    RegionAccesses {
        thread,
        cpu_node,
        memory_node,
        loads: Some(loads),
        stores: Some(loads / 4),
        misses: Some(loads / 2),
        latency_cycles: loads * if cpu_node == memory_node { 200 } else { 500 },
        waits: Some(AccessWaits {
            waited_ns: loads * 1000,
            memory_ns: loads * 900,
            queue_ns: loads * 100,
            ..AccessWaits::default()
        }),
        ..RegionAccesses::default()
    }
}

/// Returns a table on node 0 that a thread of node 1 uses most, and a heap that only one thread
/// uses.
fn regions() -> Vec<Region> {
    let alike = |sharing, memory_node, pages| PagesAlike {
        memory_node,
        main_node: 1,
        bound: false,
        sharing,
        pages,
        accesses: 10 * pages,
        waits: Vec::new(),
    };
    let part = |end, accesses, remote, memory_node| RegionPart {
        end,
        accesses,
        remote,
        memory_node,
        stores: Some(accesses / 4),
    };
    let table = Region {
        start: 0x10_0000,
        end: 0x90_0000,
        name: "/scratch/data/table.bin".to_owned(),
        made_at: code("table_new", Some("/src/table.c:12")),
        first_touches: vec![FirstTouches {
            thread: 7,
            cpu_node: 0,
            pages: 2048,
            at: code("fill", Some("/src/solver.c:42")),
        }],
        hot_pages: 512,
        pages: vec![alike(Sharing::Written, 0, 1500), alike(Sharing::Read, 0, 548)],
        accesses: vec![accesses(7, 0, 0, 2000), accesses(8, 1, 0, 6000)],
        resident: vec![NodePages { memory_node: 0, pages: 2048 }],
        parts: vec![part(0x50_0000, 100, 0, Some(0)), part(0x90_0000, 9900, 7500, None)],
        accessed_at: vec![AccessedAt { at: code("sum", None), accesses: 7500, remote: 7000 }],
        shared: false,
    };
    let heap = Region {
        start: 0x90_0000,
        end: 0xa0_0000,
        name: "[heap]".to_owned(),
        hot_pages: 16,
        pages: vec![alike(Sharing::Private, 1, 256)],
        accesses: vec![accesses(8, 1, 1, 400)],
        resident: vec![NodePages { memory_node: 1, pages: 256 }],
        ..Region::default()
    };
    vec![table, heap]
}

/// Returns two phases: the table is filled, then the heap is read.
fn timeline() -> Vec<Stretch> {
    let stretch = |at: u64, region, local, remote| Stretch {
        end_ns: at * 100 * MS,
        busy_ns: 150 * MS,
        waited_ns: Some(30 * MS),
        misses: None,
        regions: vec![StretchAccesses { region, local, remote, unplaced: 0 }],
    };
    let fills = (1..=10).map(|at| stretch(at, 0, 200, 700));
    fills.chain((11..=20).map(|at| stretch(at, 1, 500, 0))).collect()
}

fn contended(stored_bytes: [u64; 2]) -> ContendedLine {
    let user = |thread, cpu_node, stored_bytes, function| LineUser {
        thread,
        cpu_node,
        loads: 10,
        stores: 100,
        loaded_bytes: 0,
        stored_bytes,
        waited_ns: 200 * MS,
        at: code(function, Some(&format!("/src/{function}.c:7"))),
    };
    ContendedLine {
        address: 0x20_0040,
        region: "/scratch/data/table.bin".to_owned(),
        changes: 12_345,
        threads: vec![user(7, 0, stored_bytes[0], "push"), user(8, 1, stored_bytes[1], "pop")],
    }
}

fn program() -> ProgramMemory {
    let thread = |thread, cpu_node| ProgramThread {
        thread,
        cpu_node,
        busy_ns: 1500 * MS,
        elsewhere: vec![],
    };
    ProgramMemory {
        process: 7,
        program: None,
        became: Some("/usr/bin/gzip".to_owned()),
        elapsed_ns: 2000 * MS,
        threads: vec![thread(7, 0), thread(8, 1)],
        regions: regions(),
        contended_lines: vec![contended([0xff, 0xff00])],
        unplaced: 17,
        page_faults: None,
        system_calls: None,
        timeline: timeline(),
    }
}

fn samples() -> ProfileSource {
    let event = |event: &str, period| SampledEvent {
        event: event.to_owned(),
        period,
        least_latency_cycles: Some(30),
    };
    ProfileSource::Samples {
        unit: SamplingUnit::Pebs,
        events: vec![event("cpu/mem-loads/", 2000), event("cpu/mem-stores/", 10_000)],
        taken: 8400,
        lost: 2,
        throttled: 5,
    }
}

fn profile(source: ProfileSource) -> Profile {
    let node = |node: u32| ProfiledNode {
        node: NodeId(node),
        cpus: format!("{}-{}", 2 * node, 2 * node + 1).parse().expect("cpus"),
    };
    Profile {
        target: Target::Command(vec!["./solver".to_owned(), "-n".to_owned(), "8".to_owned()]),
        watched_ns: 2000 * MS,
        ended: Ended::Exited(0),
        left: Vec::new(),
        source,
        faults: None,
        cannot_see: Vec::new(),
        passed_over: Vec::new(),
        nodes: vec![node(0), node(1)],
        latency_ns: Vec::new(),
        name: "solver".to_owned(),
        program: program(),
        thread_names: BTreeMap::from([(8, "reader".to_owned())]),
        processes: Vec::new(),
        others: vec![OtherProcess {
            process: 9,
            name: "helper".to_owned(),
            busy_ns: 12 * MS,
            accesses: 200,
            remote: 50,
            touched_pages: 512,
        }],
    }
}

fn sentences(profile: &Profile) -> Vec<String> {
    profile.page().lead.into_iter().map(|of| format!("{}: {}", of.name, of.sentence)).collect()
}

#[test]
fn a_profile_of_samples_is_as_it_was_in_every_format() {
    whole::compare("profile-samples", &profile(samples()));
}

#[test]
fn a_profile_of_a_machine_that_is_emulated_is_as_it_was_in_every_format() {
    let emulated = Profile {
        latency_ns: vec![vec![80.0, 140.0], vec![140.0, 80.0]],
        ..profile(ProfileSource::Emulation { one_in: 16 })
    };
    whole::compare("profile-emulated", &emulated);
}

#[test]
fn each_source_describes_its_method_and_the_unit_of_its_figures() {
    let sources = [
        ProfileSource::Samples {
            unit: SamplingUnit::Ibs,
            events: Vec::new(),
            taken: 1,
            lost: 0,
            throttled: 0,
        },
        ProfileSource::Emulation { one_in: 1 },
        ProfileSource::Faults { balancing: false },
        ProfileSource::Faults { balancing: true },
        ProfileSource::Damon { sample_us: 5000, rounds: 20 },
        ProfileSource::Referenced { rounds: 8, interval_ns: 250 * MS, soft_dirty: true },
        ProfileSource::Referenced { rounds: 8, interval_ns: 1250 * MS, soft_dirty: false },
    ];
    let of = |source: ProfileSource| {
        let faults = Some(FaultsSeen { seen: 100, again: 40, lost: 3 });
        let page = Profile { faults, ..profile(source) }.page();
        let tiles = page.tiles.iter().map(|of| format!("{} ({})", of.value, of.detail));
        let lead = page.lead.iter().map(|of| format!("{}: {}", of.name, of.sentence));
        tiles.chain(lead).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!("profile-sources", sources.map(of).join("\n\n"));
}

#[test]
fn every_blind_spot_and_every_obstacle_has_words() {
    let text = || "as the system said".to_owned();
    let cannot_see = vec![
        CannotSee::LaterAccesses,
        CannotSee::HowOften,
        CannotSee::LoadsFromStores,
        CannotSee::Threads,
        CannotSee::FastLoads { cycles: 30 },
        CannotSee::Waiting,
        CannotSee::HeapSites,
        CannotSee::CallsWithoutFramePointers,
        CannotSee::FirstTouches,
        CannotSee::FaultsInKernel,
        CannotSee::Before,
        CannotSee::PageNodes { reason: text() },
        CannotSee::PagesBeyond { most: 1_000_000 },
        CannotSee::ThisMachine,
    ];
    let why = [
        Hindrance::NoPmu,
        Hindrance::NoMemoryEvents { units: vec!["cpu".to_owned(), "uncore".to_owned()] },
        Hindrance::UnreadForm { unit: "arm_spe_0".to_owned() },
        Hindrance::PerfParanoid { level: 3 },
        Hindrance::PerfRefused { reason: text() },
        Hindrance::TooFewFiles { limit: 1024 },
        Hindrance::OneNode,
        Hindrance::BalancingOff,
        Hindrance::NoBalancing,
        Hindrance::RunsAlready,
        Hindrance::HasToEnd,
        Hindrance::NoEmulation { reason: text() },
        Hindrance::NoDamon,
        Hindrance::DamonWithoutProcesses { operations: vec!["paddr".to_owned()] },
        Hindrance::DamonUnavailable { reason: text() },
        Hindrance::NoReferencedBits { reason: text() },
    ];
    let passed_over = why.map(|why| PassedOver { source: SourceName::Samples, why }).to_vec();
    let seen = Profile { cannot_see, passed_over, ..profile(samples()) };
    let page = seen.page();
    let last = page.parts.last().expect("the source comes last");
    let table = last.panels[0].table.rows.iter().map(|row| row.join(": "));
    let lines: Vec<String> = last.notes.iter().cloned().chain(table).collect();
    insta::assert_snapshot!("profile-unseen", lines.join("\n"));
}

#[test]
fn the_end_of_a_command_or_process_is_reported_and_an_odd_one_first() {
    let process = Target::Process { process: 42, command: vec!["solver".to_owned()] };
    let command = profile(samples()).target;
    let ends = [
        (&command, Ended::Exited(0), "./solver -n 8; 2.00 s, exited", ""),
        (&command, Ended::Exited(3), "; 2.00 s, exited with 3", "The command failed: exit code 3."),
        (&command, Ended::Signalled(9), "ended by signal 9", "was ended by signal 9."),
        (&command, Ended::TimeOver, "2.00 s, then ended", ""),
        (&process, Ended::TimeOver, "process 42: solver; 2.00 s, and it still ran", ""),
        (&process, Ended::ProcessEnded, "2.00 s, until the process ended", ""),
        (&process, Ended::Interrupted, "2.00 s, interrupted", "Interrupted: this covers the time"),
    ];
    for (target, ended, meta, first) in ends {
        let profile = Profile { target: target.clone(), ended, ..profile(samples()) };
        let page = profile.page();
        assert!(page.meta.contains(meta), "{}: {meta}", page.meta);
        let odd = page.lead.iter().find(|of| of.name == "Command");
        match (odd, first) {
            (odd, "") => assert_eq!(odd, None),
            (odd, first) => assert!(odd.is_some_and(|of| of.sentence.contains(first)), "{odd:?}"),
        }
    }
    let left = Profile { left: vec!["sleep (9)".to_owned()], ..profile(samples()) };
    assert!(sentences(&left)[0].starts_with("Command: The command left sleep (9) running"));
}

#[test]
fn a_short_profile_and_few_counts_are_reported_at_their_thresholds() {
    let little = |watched_ns, loads| {
        let mut of = Profile { watched_ns, ..profile(samples()) };
        of.program.regions.truncate(1);
        of.program.regions[0].parts.clear();
        of.program.unplaced = 0;
        of.program.regions[0].accesses =
            vec![RegionAccesses { loads: Some(loads), ..RegionAccesses::default() }];
        sentences(&of).into_iter().find(|text| text.starts_with("Little was seen"))
    };
    let said = |text: &str| Some(format!("Little was seen: {text}"));
    assert_eq!(
        little(99 * MS, 50),
        said("It ended after 99.0 ms, so this shows little more than its start.")
    );
    assert_eq!(little(100 * MS, 50), None);
    assert_eq!(little(100 * MS, 49), said("Only 49 samples were seen: profile for longer."));
}

#[test]
fn remote_memory_is_odd_from_one_access_in_twenty_on() {
    let placed = |remote| {
        let mut of = profile(samples());
        of.program.regions.truncate(1);
        of.program.regions[0].parts.clear();
        of.program.unplaced = 0;
        of.program.regions[0].accesses = [(0, 1000 - remote), (1, remote)]
            .map(|(cpu_node, either)| RegionAccesses {
                cpu_node,
                either,
                ..RegionAccesses::default()
            })
            .to_vec();
        sentences(&of)
    };
    assert!(placed(50)[0].starts_with("Placement: 5.0 % of the samples are remote: to memory"));
    assert!(placed(50)[1].starts_with("Region: table.bin at 0x100000 (8M) takes 100 % of these"));
    let fine = placed(49);
    assert!(fine[0].ends_with("95 % of the samples are local: to memory on the cpu's own node."));
    assert!(!fine.iter().any(|text| text.starts_with("Region")), "{fine:?}");
}

#[test]
fn lines_are_shared_falsely_only_where_no_thread_uses_what_another_stores() {
    let shared = |stored| {
        let mut of = profile(ProfileSource::Emulation { one_in: 1 });
        of.latency_ns = vec![vec![80.0, 140.0], vec![140.0, 80.0]];
        of.program.contended_lines = vec![contended(stored)];
        let text = of.page().terminal(Style::Plain);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = shared([0xff, 0xff00]);
    assert!(text.contains("False sharing: threads store to different bytes of one cache line, at pop.c:7 and push.c:7; waiting for such lines takes 13.33 % of the time."), "{text}");
    assert!(text.contains("False sharing: no thread uses a byte"), "{text}");
    let text = shared([0xff, 0x80]);
    assert!(text.contains("Threads contend for a cache line, at pop.c:7"), "{text}");
    assert!(!text.contains("False sharing"), "there is none to explain: {text}");
}
