use std::collections::BTreeMap;

use numalab_page::Style;
use numalab_record::profile::{
    CannotSee, Ended, FaultsSeen, Hindrance, PassedOver, ProfileSource, ProfiledNode, SourceName,
    Target,
};
use numalab_record::{
    CodePlace, FirstTouches, NodePages, ProgramMemory, ProgramThread, RegionPart, Stretch,
    StretchAccesses,
};
use numalab_topology::{CpuSet, NodeId};

use super::*;

fn accesses(thread: u32, cpu_node: u32, memory_node: u32, either: u64) -> RegionAccesses {
    RegionAccesses { thread, cpu_node, memory_node, either, ..RegionAccesses::default() }
}

/// Returns a program with a table on node 0 that thread 8 of node 1 uses most, and with local
/// memory.
fn program() -> ProgramMemory {
    let line = CodePlace {
        object: "/bin/solver".to_owned(),
        offset: 1,
        function: Some("fill".to_owned()),
        line: Some("src/solver.c:42".to_owned()),
    };
    let touches = vec![FirstTouches { thread: 7, cpu_node: 0, pages: 2048, at: vec![line] }];
    let part = |end, accesses, remote| RegionPart { end, accesses, remote, ..Default::default() };
    let table = Region {
        start: 0x10_0000,
        end: 0x90_0000,
        name: "[anonymous]".to_owned(),
        first_touches: touches,
        accesses: vec![accesses(7, 0, 0, 2048), accesses(8, 1, 0, 6000)],
        resident: vec![NodePages { memory_node: 0, pages: 2048 }],
        parts: vec![part(0x50_0000, 1024, 0), part(0x90_0000, 7024, 6000)],
        ..Region::default()
    };
    let own = Region {
        start: 0x90_0000,
        end: 0xa0_0000,
        name: "[heap]".to_owned(),
        accesses: vec![accesses(8, 1, 1, 500)],
        resident: vec![NodePages { memory_node: 1, pages: 256 }],
        ..Region::default()
    };
    let thread = |thread, cpu_node| ProgramThread {
        thread,
        cpu_node,
        busy_ns: 1_500_000_000,
        elsewhere: Vec::new(),
    };
    let stretch = |at: u64, region, local, remote| Stretch {
        end_ns: at * 100_000_000,
        busy_ns: 100_000_000,
        waited_ns: None,
        misses: None,
        regions: vec![StretchAccesses { region, local, remote, unplaced: 0 }],
    };
    let fills = (1..=10).map(|at| stretch(at, 0, 200, 0));
    let reads = (11..=20).map(|at| stretch(at, 1, 50, 600));
    ProgramMemory {
        threads: vec![thread(7, 0), thread(8, 1)],
        regions: vec![table, own],
        timeline: fills.chain(reads).collect(),
        ..ProgramMemory::default()
    }
}

fn profile() -> Profile {
    let node = |node| ProfiledNode { node: NodeId(node), cpus: CpuSet::new() };
    Profile {
        target: Target::Command(vec!["./solver".to_owned(), "secret-input".to_owned()]),
        watched_ns: 2_000_000_000,
        ended: Ended::Exited(0),
        left: Vec::new(),
        source: ProfileSource::Faults { balancing: true },
        faults: Some(FaultsSeen { seen: 8548, again: 6500, lost: 3 }),
        cannot_see: vec![CannotSee::HowOften],
        passed_over: vec![PassedOver { source: SourceName::Samples, why: Hindrance::NoPmu }],
        nodes: vec![node(0), node(1)],
        latency_ns: Vec::new(),
        name: "solver".to_owned(),
        program: program(),
        thread_names: BTreeMap::from([(8, "worker".to_owned())]),
        others: Vec::new(),
        processes: Vec::new(),
    }
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_lead_names_the_remote_region_its_first_toucher_and_the_source() {
    let text = joined(&profile().page().terminal(Style::Plain));
    for expected in [
        "70 % of the page faults are remote: to memory on a node other than the cpu's.",
        "[anonymous] at 0x100000 (8M) takes 100 % of these: it is on node 0, but threads on node 1",
        "touched first by thread 7 on node 0 at solver.c:42.",
        "Page faults: 2048 first touches, and 6500 on present pages, most of them unmapped by NUMA \
         balancing",
        "3 more were lost.",
        "It cannot see: how often a page is used",
        "samples the kernel reports no performance monitoring unit",
        "8 worker",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn the_page_has_the_map_with_remote_cells_and_the_time_line_with_phases() {
    let html = profile().page().html();
    assert!(html.contains("used from node 1") && html.contains("8 worker"), "{html}");
    assert!(html.contains("mostly to memory of other nodes"));
    assert!(html.contains("0x500000 to 0x900000"), "the strip's parts");
    assert!(html.contains("Phases: periods with the same use"));
    assert!(html.contains("anon 8M solver.c:42"), "a region is named by who touched it");
    let private = profile().page().redacted().html();
    assert!(!private.contains("secret-input"), "arguments are private");
}

#[test]
fn a_machine_of_one_node_has_no_columns_of_nodes_and_nothing_remote() {
    let mut profile = profile();
    profile.nodes.truncate(1);
    profile.program.regions.truncate(1);
    profile.program.regions[0].accesses = vec![accesses(7, 0, 0, 5)];
    let html = profile.page().html();
    assert!(html.contains("The machine has one node: no memory is remote."));
    assert!(!html.contains("is on node") && !html.contains("remote</th>"), "{html}");
}

#[test]
fn accesses_of_unknown_threads_have_a_separate_column() {
    let mut profile = profile();
    profile.source =
        ProfileSource::Referenced { rounds: 4, interval_ns: 250_000_000, soft_dirty: true };
    profile.program.regions.iter_mut().for_each(|region| region.accesses.clear());
    let html = profile.page().html();
    assert!(html.contains(">used</th>"), "{html}");
    let text = joined(&profile.page().terminal(Style::Plain));
    assert!(
        text.contains("4 scans, one every 250 ms") && text.contains("for those written"),
        "{text}"
    );
    assert!(text.contains("Which nodes use it is unknown."), "{text}");
}

#[test]
fn the_failure_of_a_command_and_its_leftovers_come_first() {
    let profile =
        Profile { ended: Ended::Signalled(11), left: vec!["sleep (12)".to_owned()], ..profile() };
    let text = joined(&profile.page().terminal(Style::Plain));
    assert!(text.contains("The command was ended by signal 11."), "{text}");
    assert!(text.contains("The command left sleep (12) running, now terminated"), "{text}");
}

#[test]
fn rows_have_the_source_and_each_pair_of_nodes() {
    let csv = profile().rows().unwrap().csv();
    let expected = "[anonymous],0x100000,8,1,0,faults,,,6000,,";
    assert!(csv.lines().any(|line| line == expected), "{csv}");
}

#[test]
fn arguments_are_private_in_pictures_and_as_names_of_files_too() {
    let mut profile = profile();
    let Target::Command(words) = &mut profile.target else { panic!("a command") };
    words.push("--in=/scratch/of-anna.dat".to_owned());
    profile.program.regions[0].name = "/scratch/of-anna.dat".to_owned();
    profile.program.regions[1].name = "secret-input".to_owned();
    profile.thread_names.insert(7, "secret-input".to_owned());
    let html = profile.page().html();
    assert!(html.contains("of-anna.dat") && html.contains("secret-input"));
    let private = profile.page().redacted();
    for text in [private.html(), private.markdown(), private.terminal(Style::Plain)] {
        for left_in in ["anna", "secret-input"] {
            assert!(!text.contains(left_in), "{left_in}: {text}");
        }
    }
}

#[test]
fn rows_have_only_what_the_source_sees() {
    let seen = |by: RegionAccesses| {
        let region = Region { accesses: vec![by], ..Region::default() };
        let program = ProgramMemory { regions: vec![region], ..ProgramMemory::default() };
        let rows = Profile { program, ..profile() }.rows().expect("rows");
        rows.rows[0][6..].iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    };
    assert_eq!(seen(accesses(7, 0, 0, 5)), ",,5,,");
    let known = RegionAccesses { misses: Some(0), ..accesses(7, 0, 0, 0) };
    let known = RegionAccesses { loads: Some(3), stores: Some(0), ..known };
    assert_eq!(seen(known.clone()), "3,0,,0,");
    let waits = Some(numalab_record::AccessWaits { waited_ns: 9, ..Default::default() });
    assert_eq!(seen(RegionAccesses { waits, ..known }), "3,0,,0,9");
}
