//! Processes with threads, memory, devices and pages away from each other.

use std::collections::BTreeMap;

use numalab_record::explore::{
    BytesByNode, DeviceUse, HugePageMode, HugeRoom, MappingKind, MappingView, NodeRoom, PageSizes,
    ProcessView, RoomByNode, ThreadView, View,
};
use numalab_results::explore::{
    Expectation, ExploreFinding, Explored, Obstacle, Problem, ProblemPlace, ProcessProblem, Remedy,
    Touched, Unmet, Weight, unmet,
};
use numalab_topology::{CpuId, CpuSet, DeviceKind, NodeId, NodeSet};

const MIB: u64 = 1 << 20;

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

fn bytes(of: &[(u32, u64)]) -> BytesByNode {
    of.iter().map(|&(node, bytes)| (NodeId(node), bytes)).collect()
}

/// Returns nodes of 1,000 MiB with this much left on each.
fn room(left_mib: &[u64]) -> RoomByNode {
    let node = |left: &u64| NodeRoom { total_bytes: 1000 * MIB, available_bytes: left * MIB };
    (0..).map(NodeId).zip(left_mib.iter().map(node)).collect()
}

fn thread(number: u32, node: u32, allowed: &str, remote_share: f64) -> ThreadView {
    ThreadView {
        thread: number,
        name: "t".to_owned(),
        state: 'R',
        cpu: CpuId(2 * node),
        node: Some(NodeId(node)),
        allowed: cpus(allowed),
        cpu_ticks: 1,
        touched_pages: BytesByNode::new(),
        remote_share: Some(remote_share),
    }
}

/// Returns a process on two nodes of two cpus, with all of its 8 MiB on node 0.
fn process(threads: Vec<ThreadView>) -> ProcessView {
    ProcessView {
        process: 42,
        command: "./solver".to_owned(),
        threads,
        mappings: Vec::new(),
        bytes_by_node: bytes(&[(0, 8 * MIB)]),
        own_bytes_by_node: bytes(&[(0, 8 * MIB)]),
        page_sizes: None,
        sampled: None,
        remote_share: None,
        devices: Vec::new(),
        cpus_by_node: BTreeMap::from([(NodeId(0), cpus("0-1")), (NodeId(1), cpus("2-3"))]),
        room_by_node: RoomByNode::new(),
        huge_rooms: Vec::new(),
        numa_balancing: Some(false),
        transparent_huge_pages: None,
        unseen: Vec::new(),
    }
}

fn found(view: ProcessView) -> Vec<ExploreFinding> {
    Explored::of(View::Process(view)).findings
}

fn apart(node: u32, home: u32, share: f64, touched: Touched) -> Problem {
    let (node, home) = (NodeId(node), NodeId(home));
    Problem::Process(ProcessProblem::ThreadsRemote { node, home, share, touched })
}

#[test]
fn shared_memory_that_fills_its_nodes_is_to_be_spread_alone() {
    let segment = |kind, policy: &str, mib: u64| MappingView {
        start: 0x7f00,
        size_bytes: None,
        policy: policy.to_owned(),
        kind,
        file: Some("/SYSV00000000 (deleted)".to_owned()),
        bytes_by_node: bytes(&[(0, mib * MIB)]),
        own: true,
        page_bytes: 4096,
        transparent_huge_bytes: None,
    };
    let crowds = |mapping: MappingView, left_mib: [u64; 2]| {
        let room_by_node = room(&left_mib);
        let threads = vec![thread(1, 0, "0-1", 0.0)];
        let view = ProcessView { mappings: vec![mapping], room_by_node, ..process(threads) };
        let is_so = |problem: &Problem| {
            matches!(problem, Problem::Process(ProcessProblem::SegmentCrowds { .. }))
        };
        found(view).into_iter().find(|finding| is_so(&finding.what.problem))
    };
    let found = crowds(segment(MappingKind::Shared, "default", 900), [2, 970]).unwrap();
    let (nodes, segment_name) = (NodeSet::from_iter([NodeId(0)]), "/SYSV00000000 (deleted)");
    let roomy = NodeSet::from_iter([NodeId(1)]);
    assert_eq!(
        found.what.problem,
        Problem::Process(ProcessProblem::SegmentCrowds {
            segment: segment_name.to_owned(),
            bytes: 900 * MIB,
            nodes,
            share: 0.002,
            roomy,
        })
    );
    let both = NodeSet::from_iter([NodeId(0), NodeId(1)]);
    let remedy = Remedy::InterleaveSegment {
        nodes: both,
        segment: segment_name.to_owned(),
        bytes: 900 * MIB,
    };
    assert_eq!(
        (found.what.remedy, found.evidence),
        (Some(remedy), vec![ProblemPlace::Mapping(0x7f00)])
    );
    for (kind, policy, mib, left) in [
        (MappingKind::Shared, "default", 900, [500, 970]),
        (MappingKind::Shared, "default", 900, [2, 10]),
        (MappingKind::Shared, "interleave:0-1", 900, [2, 970]),
        (MappingKind::Shared, "default", 1, [2, 970]),
        (MappingKind::Anonymous, "default", 900, [2, 970]),
    ] {
        assert_eq!(crowds(segment(kind, policy, mib), left), None, "{kind:?} {policy} {left:?}");
    }
}

#[test]
fn a_lone_thread_that_may_go_home_goes_home_and_one_that_is_tied_gets_its_memory() {
    let free = found(process(vec![thread(42, 1, "0-3", 1.0)]));
    assert_eq!(free[0].what.problem, apart(1, 0, 1.0, Touched::ByOnlyThread));
    let home = Remedy::MoveThreads { number: 42, all: true, cpus: cpus("0-1") };
    assert_eq!(free[0].what.remedy, Some(home));
    assert_eq!((free[0].what.weight, free[0].threshold), (Weight::Wrong, Some(0.5)));
    let tied = found(process(vec![thread(42, 1, "2-3", 1.0)]));
    let from = NodeSet::from_iter([NodeId(0)]);
    let moved = Remedy::MovePages { process: 42, from, to: Some(NodeId(1)) };
    assert_eq!(tied[0].what.remedy, Some(moved));
}

#[test]
fn memory_is_moved_only_to_where_it_fits() {
    let obstacle = |view| found(view).remove(0).what.obstacle;
    let no_room = |nodes: &str, needed, left| {
        let (needed_bytes, left_bytes) = (needed * MIB, left * MIB);
        Some(Obstacle::NoRoom { nodes: nodes.parse().unwrap(), needed_bytes, left_bytes })
    };
    let tied = process(vec![thread(42, 1, "2-3", 1.0)]);
    let full = ProcessView { room_by_node: room(&[900, 47]), ..tied.clone() };
    assert_eq!(obstacle(full), no_room("1", 8, 7));
    let fitting = ProcessView { room_by_node: room(&[900, 48]), ..tied };
    assert_eq!(obstacle(fitting), None);
    let threads = vec![thread(1, 0, "0-3", 0.0), thread(2, 1, "0-3", 1.0)];
    let spread = ProcessView { room_by_node: room(&[40, 40]), ..process(threads) };
    assert_eq!(obstacle(spread), no_room("0-1", 8, 8), "node 1 has no room for a half");
}

#[test]
fn huge_pages_are_moved_into_free_ones_or_ordinary_memory_and_gigantic_ones_only_into_free_ones() {
    let moved = |page_bytes: u64, pages: u64, free: u64, left_mib: u64| {
        let held = bytes(&[(0, pages * page_bytes)]);
        let mapping = MappingView {
            start: 0x7f00,
            size_bytes: None,
            policy: "default".to_owned(),
            kind: MappingKind::HugePool,
            file: Some("/anon_hugepage (deleted)".to_owned()),
            bytes_by_node: held.clone(),
            own: true,
            page_bytes,
            transparent_huge_bytes: None,
        };
        let pool = HugeRoom { node: NodeId(1), page_bytes, free };
        let view = ProcessView {
            mappings: vec![mapping],
            bytes_by_node: held.clone(),
            own_bytes_by_node: held,
            huge_rooms: vec![pool],
            room_by_node: room(&[900, left_mib]),
            ..process(vec![thread(42, 1, "2-3", 1.0)])
        };
        found(view).remove(0).what.obstacle
    };
    assert_eq!(moved(2 * MIB, 40, 40, 40), None, "the pool has room");
    assert_eq!(moved(2 * MIB, 40, 0, 400), None, "pages are made from ordinary memory");
    assert!(matches!(moved(2 * MIB, 40, 10, 90), Some(Obstacle::NoRoom { .. })));
    assert_eq!(moved(1 << 30, 2, 2, 40), None);
    let few = Obstacle::FewHugePages { node: NodeId(1), page_bytes: 1 << 30, needed: 2, free: 1 };
    assert_eq!(moved(1 << 30, 2, 1, 900), Some(few));
}

#[test]
fn memory_spread_evenly_or_that_cannot_be_local_is_in_no_wrong_place() {
    let over = |own: &[(u32, u64)]| ProcessView {
        own_bytes_by_node: bytes(own),
        ..process(vec![thread(42, 1, "2-3", 0.75)])
    };
    let even: Vec<(u32, u64)> = (0..4).map(|node| (node, 8 * MIB)).collect();
    assert_eq!(found(over(&even)), []);
    assert_eq!(found(over(&[(0, 54), (1, 46)].map(|(node, of)| (node, of * MIB)))), []);
    assert_eq!(found(over(&[(0, 55), (1, 45)].map(|(node, of)| (node, of * MIB)))).len(), 1);
    let mut room_by_node = room(&[900, 0]);
    room_by_node.insert(NodeId(1), NodeRoom::default());
    let without = ProcessView { room_by_node, ..process(vec![thread(42, 1, "2-3", 1.0)]) };
    assert_eq!(found(without), [], "node 1 has no memory");
}

#[test]
fn shared_memory_that_is_elsewhere_is_placed_by_itself_and_not_with_the_process() {
    let segment = MappingView {
        kind: MappingKind::Shared,
        file: Some("/dev/shm/db".to_owned()),
        ..mapping(0x7f00, "default", &[(0, 800 * MIB)])
    };
    let view = ProcessView {
        mappings: vec![segment, mapping(0x8000, "default", &[(0, 200 * MIB)])],
        own_bytes_by_node: bytes(&[(0, 1000 * MIB)]),
        ..process(vec![thread(42, 1, "2-3", 1.0)])
    };
    let with_room = |left: &[u64]| ProcessView { room_by_node: room(left), ..view.clone() };
    let only = found(with_room(&[100, 900]));
    let segment = "/dev/shm/db".to_owned();
    let both = NodeSet::from_iter([NodeId(0), NodeId(1)]);
    let remedy = Remedy::InterleaveSegment { nodes: both, segment, bytes: 800 * MIB };
    assert_eq!(only[0].what.remedy, Some(remedy.clone()));
    let crowded = found(with_room(&[2, 900]));
    assert_eq!(
        crowded[0].what.obstacle,
        Some(Obstacle::OfSegment { segment: "/dev/shm/db".into() })
    );
    assert_eq!(crowded[1].what.remedy, Some(remedy));
}

#[test]
fn a_large_file_away_from_all_threads_is_to_be_read_again_where_it_fits() {
    let file = |on: &[(u32, u64)]| MappingView {
        kind: MappingKind::File,
        file: Some("/data/model".to_owned()),
        own: false,
        ..mapping(0x7f00, "default", on)
    };
    let with = |mapping, left: &[u64]| {
        let mappings = vec![mapping];
        let threads = vec![thread(42, 0, "0-1", 0.0)];
        found(ProcessView { mappings, room_by_node: room(left), ..process(threads) })
    };
    let away = with(file(&[(1, 90 * MIB), (0, 10 * MIB)]), &[900, 900]);
    let (home, nodes) = (NodeId(1), NodeSet::from_iter([NodeId(0)]));
    let path = "/data/model".to_owned();
    let problem = ProcessProblem::FileRemote {
        file: path.clone(),
        bytes: 100 * MIB,
        home,
        share: 0.9,
        nodes: nodes.clone(),
    };
    assert_eq!(away[0].what.problem, Problem::Process(problem));
    let command = "./solver".to_owned();
    let remedy = Remedy::PlaceFile { nodes: nodes.clone(), file: path, command };
    assert_eq!((away[0].what.weight, &away[0].what.remedy), (Weight::Note, &Some(remedy)));
    let full = with(file(&[(1, 100 * MIB)]), &[139, 900]);
    let (needed_bytes, left_bytes) = (100 * MIB, 99 * MIB);
    let obstacle = Obstacle::NoRoom { nodes, needed_bytes, left_bytes };
    assert_eq!(full[0].what.obstacle, Some(obstacle));
    assert_eq!(with(file(&[(1, 40 * MIB), (0, 40 * MIB)]), &[900, 900]), [], "half is near");
    assert_eq!(with(file(&[(1, 63 * MIB)]), &[900, 900]), [], "less than 64 MiB");
    let gone = MappingView { file: Some("/data/model (deleted)".into()), ..file(&[(1, 90 * MIB)]) };
    assert_eq!(with(gone, &[900, 900]), []);
    let library =
        MappingView { file: Some("/usr/lib/libtorch.so.2".into()), ..file(&[(1, 90 * MIB)]) };
    assert_eq!(with(library, &[900, 900]), [], "other programs use it");
}

#[test]
fn threads_on_several_nodes_have_their_memory_spread_and_balancing_is_named_if_it_is_off() {
    let threads = vec![thread(1, 0, "0-3", 0.0), thread(2, 1, "0-3", 1.0), thread(3, 1, "2", 0.9)];
    let found_of =
        |numa_balancing| found(ProcessView { numa_balancing, ..process(threads.clone()) });
    let spread = |balancing_is_off| Remedy::Interleave {
        nodes: NodeSet::from_iter([NodeId(0), NodeId(1)]),
        command: "./solver".to_owned(),
        balancing_is_off,
    };
    let found = found_of(Some(false));
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(finding.what.problem, apart(1, 0, 1.0, Touched::ByProcess));
    assert_eq!(
        finding.evidence,
        [ProblemPlace::Thread(2), ProblemPlace::Thread(3)],
        "those on node 1"
    );
    assert_eq!(finding.what.remedy, Some(spread(true)));
    assert_eq!(found_of(Some(true))[0].what.remedy, Some(spread(false)));
    assert_eq!(found_of(None)[0].what.remedy, Some(spread(false)), "it cannot balance");
}

#[test]
fn the_observed_accesses_of_threads_come_before_the_memory_of_the_process() {
    let seen = ThreadView { touched_pages: bytes(&[(0, 1), (1, 3)]), ..thread(1, 0, "0-3", 0.75) };
    let found = found(process(vec![seen, thread(2, 1, "0-3", 1.0)]));
    let problems: Vec<&Problem> = found.iter().map(|of| &of.what.problem).collect();
    let expected = [apart(0, 1, 0.75, Touched::ByThese), apart(1, 0, 1.0, Touched::ByProcess)];
    assert_eq!(problems, expected.iter().collect::<Vec<_>>());
}

#[test]
fn a_thread_is_remote_from_half_on_and_a_small_process_never() {
    assert_eq!(found(process(vec![thread(1, 1, "0-3", 0.49)])), []);
    assert_eq!(found(process(vec![thread(1, 1, "0-3", 0.5)])).len(), 1);
    assert_eq!(found(process(vec![thread(1, 0, "0-3", 0.9)])), [], "its memory is at home");
    let small = |bytes_on_0| ProcessView {
        own_bytes_by_node: bytes(&[(0, bytes_on_0)]),
        ..process(vec![thread(1, 1, "0-3", 1.0)])
    };
    assert_eq!(found(small(MIB - 1)), []);
    assert_eq!(found(small(MIB)).len(), 1);
    let nowhere = ThreadView { node: None, ..thread(1, 1, "0-3", 1.0) };
    assert_eq!(found(process(vec![nowhere])), [], "its node is not known");
}

fn mapping(start: u64, policy: &str, on: &[(u32, u64)]) -> MappingView {
    MappingView {
        start,
        size_bytes: None,
        policy: policy.to_owned(),
        kind: MappingKind::Anonymous,
        file: None,
        bytes_by_node: bytes(on),
        own: true,
        page_bytes: 4096,
        transparent_huge_bytes: None,
    }
}

#[test]
fn memory_bound_to_nodes_where_no_thread_runs_is_summed_up_with_its_mappings() {
    let mappings = vec![
        mapping(0x1000, "bind:1", &[(1, MIB / 2)]),
        mapping(0x2000, "bind=static:1", &[(1, MIB / 2)]),
        mapping(0x3000, "bind:0-1", &[(1, 9 * MIB)]),
        mapping(0x4000, "interleave:1", &[(1, 9 * MIB)]),
        mapping(0x5000, "prefer:1", &[(1, 9 * MIB)]),
        mapping(0x6000, "bind:none", &[(1, 9 * MIB)]),
        MappingView { own: false, ..mapping(0x7000, "bind:1", &[(1, 9 * MIB)]) },
    ];
    let view = ProcessView { mappings, ..process(vec![thread(1, 0, "0-1", 0.0)]) };
    let found = found(view.clone());
    let [finding] = &found[..] else { panic!("{found:?}") };
    let nodes = NodeSet::from_iter([NodeId(1)]);
    let problem = ProcessProblem::BoundApart { nodes, bytes: MIB };
    assert_eq!(finding.what.problem, Problem::Process(problem));
    assert_eq!(finding.evidence, [ProblemPlace::Mapping(0x1000), ProblemPlace::Mapping(0x2000)]);
    assert_eq!((finding.what.weight, finding.threshold), (Weight::Note, None));
    let mut less = view;
    less.mappings.remove(0);
    assert_eq!(self::found(less.clone()), [], "less than 1 MiB");
    less.mappings[0].bytes_by_node = bytes(&[(1, 2 * MIB)]);
    less.threads.clear();
    assert_eq!(self::found(less), [], "nobody knows where threads run");
}

#[test]
fn an_open_device_near_another_node_is_a_note_with_every_placed_thread() {
    let device = |node: Option<u32>| DeviceUse {
        address: "0000:81:00.0".to_owned(),
        name: "nvme0".to_owned(),
        kind: DeviceKind::Storage,
        node: node.map(NodeId),
        files: vec!["/dev/nvme0n1".to_owned()],
    };
    let of = |node, threads| found(ProcessView { devices: vec![device(node)], ..process(threads) });
    let here =
        || vec![thread(1, 0, "0-1", 0.0), ThreadView { node: None, ..thread(2, 0, "0", 0.0) }];
    let found = of(Some(1), here());
    let [finding] = &found[..] else { panic!("{found:?}") };
    let problem = ProcessProblem::DeviceRemote {
        device: "nvme0".to_owned(),
        address: "0000:81:00.0".to_owned(),
        device_kind: DeviceKind::Storage,
        near: NodeId(1),
        nodes: NodeSet::from_iter([NodeId(0)]),
    };
    assert_eq!(finding.what.problem, Problem::Process(problem));
    assert_eq!(finding.evidence, [ProblemPlace::Thread(1)]);
    let near = Remedy::BindNear { device: "nvme0".to_owned(), command: "./solver".to_owned() };
    assert_eq!((finding.what.weight, &finding.what.remedy), (Weight::Note, &Some(near)));
    assert_eq!(of(Some(0), here()), []);
    assert_eq!(of(None, here()), [], "the firmware does not say where it is");
    assert_eq!(of(Some(1), Vec::new()), [], "nobody knows where threads run");
}

fn sized(anonymous: u64, huge: u64, mode: Option<HugePageMode>) -> ProcessView {
    let sizes = PageSizes { anonymous, transparent_huge: huge, ..PageSizes::default() };
    ProcessView {
        page_sizes: Some(sizes),
        transparent_huge_pages: mode,
        ..process(vec![thread(1, 0, "0-1", 0.0)])
    }
}

#[test]
fn a_large_process_has_few_huge_pages_below_a_tenth() {
    let large = 64 * MIB;
    let always = Some(HugePageMode::Always);
    assert_eq!(found(sized(large - 1, 0, always)), [], "less than 64 MiB");
    assert_eq!(found(sized(10 * large, large, always)), [], "a tenth");
    assert_eq!(found(sized(large, 0, None)), [], "the kernel has none");
    let command = "./solver".to_owned();
    for (mode, remedy) in [
        (HugePageMode::Always, Remedy::LookAtNodes),
        (HugePageMode::Never, Remedy::AllowHugePages),
        (HugePageMode::Madvise, Remedy::AskForHugePages { command }),
    ] {
        let found = found(sized(large, 0, Some(mode)));
        let problem = ProcessProblem::FewHugePages { anonymous_bytes: large, share: 0.0, mode };
        assert_eq!(found[0].what.problem, Problem::Process(problem));
        assert_eq!((found[0].threshold, &found[0].what.remedy), (Some(0.1), &Some(remedy)));
    }
}

#[test]
fn memory_on_nodes_that_the_machine_lacks_is_noted_and_nothing_else_is_advised() {
    let remote = || ProcessView {
        bytes_by_node: bytes(&[(0, MIB), (7, 8 * MIB)]),
        own_bytes_by_node: bytes(&[(0, MIB), (7, 8 * MIB)]),
        ..process(vec![thread(42, 1, "2-3", 1.0)])
    };
    let found_of = found(ProcessView { room_by_node: room(&[500, 500]), ..remote() });
    let problem =
        ProcessProblem::UnknownNodes { nodes: NodeSet::from_iter([NodeId(7)]), bytes: 8 * MIB };
    let problems: Vec<_> = found_of.iter().map(|of| (&of.what.problem, &of.what.remedy)).collect();
    assert_eq!(problems, [(&Problem::Process(problem), &None)]);
    assert_eq!(found(remote()).len(), 1, "the nodes of the machine are unknown");
}

#[test]
fn a_process_is_swapped_out_from_a_twentieth_and_1_mib_on() {
    let of = |swapped, resident| {
        let sizes = PageSizes { swapped, resident, ..PageSizes::default() };
        found(ProcessView { page_sizes: Some(sizes), ..sized(0, 0, None) })
    };
    let out = of(MIB, 19 * MIB);
    let problem = ProcessProblem::SwappedOut { bytes: MIB, share: 0.05 };
    assert_eq!(out[0].what.problem, Problem::Process(problem));
    assert_eq!(of(MIB, 20 * MIB), []);
    assert_eq!(of(MIB - 1, 0), [], "too little");
    assert_eq!(of(0, 0), []);
}

#[test]
fn expectations_of_a_process_concern_its_memory_and_its_accesses() {
    let view = ProcessView {
        own_bytes_by_node: bytes(&[(0, 75), (1, 25)]),
        remote_share: Some(0.25),
        ..process(Vec::new())
    };
    let view = View::Process(view);
    let on =
        |node, least| Expectation::OnNodes { nodes: NodeSet::from_iter([NodeId(node)]), least };
    assert_eq!(unmet(&view, &[on(0, 0.75), Expectation::Local { least: 0.75 }]), []);
    let found = unmet(&view, &[on(1, 0.5), Expectation::Local { least: 0.8 }, Expectation::Pinned]);
    let elsewhere = Unmet::Elsewhere {
        guest: None,
        nodes: NodeSet::from_iter([NodeId(1)]),
        share: Some(0.25),
        least: 0.5,
        most: Some((NodeId(0), 0.75)),
    };
    let remote = Unmet::Remote { guest: None, share: Some(0.75), least: 0.8 };
    assert_eq!(found, [elsewhere, remote, Unmet::NotOfThis]);
    let nothing =
        View::Process(ProcessView { own_bytes_by_node: BytesByNode::new(), ..process(Vec::new()) });
    let [Unmet::Elsewhere { share: None, most: None, .. }] = unmet(&nothing, &[on(0, 0.0)])[..]
    else {
        panic!("a process without memory has none anywhere");
    };
}
