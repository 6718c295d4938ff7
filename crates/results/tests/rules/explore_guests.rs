//! Guests that run away from their memory, and the remedy for each hypervisor.

use std::collections::BTreeMap;

use numalab_record::explore::{
    BytesByNode, GuestMemory, GuestView, GuestsView, HeapSource, HeapView, Hypervisor, NodeRoom,
    VcpuView, View,
};
use numalab_results::explore::{
    Expectation, ExploreFinding, Explored, GuestProblem, Obstacle, Problem, ProblemPlace, Remedy,
    Unmet, unmet,
};
use numalab_topology::{CpuSet, NodeId, NodeSet};

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

fn bytes(of: &[(u32, u64)]) -> BytesByNode {
    of.iter().map(|&(node, bytes)| (NodeId(node), bytes)).collect()
}

/// Returns a vCPU on node 1.
fn vcpu(index: u32, remote_share: f64) -> VcpuView {
    VcpuView {
        index,
        thread: Some(100 + index),
        node: Some(NodeId(1)),
        remote_share: Some(remote_share),
        ..VcpuView::default()
    }
}

/// Returns a guest with most of its memory on node 0.
fn guest(hypervisor: Hypervisor, number: u32, vcpus: Vec<VcpuView>) -> GuestView {
    GuestView {
        hypervisor,
        name: "vm".to_owned(),
        number,
        vcpus,
        memory: Vec::new(),
        bytes_by_node: bytes(&[(0, 90), (1, 10)]),
        remote_share: None,
        control: None,
    }
}

fn view(guests: Vec<GuestView>) -> GuestsView {
    let cpus_by_node = BTreeMap::from([(NodeId(0), cpus("0-1")), (NodeId(1), cpus("2-3"))]);
    GuestsView { guests, cpus_by_node, ..GuestsView::default() }
}

fn found(guest: GuestView) -> Vec<ExploreFinding> {
    Explored::of(View::Guests(view(vec![guest]))).findings
}

fn remedy(guest: GuestView) -> Option<Remedy> {
    found(guest).pop().and_then(|finding| finding.what.remedy)
}

fn problem(vcpus: usize, home: Option<u32>, share: f64, cpus_as_string: bool) -> Problem {
    Problem::Guest(GuestProblem::VcpusRemote {
        guest: "vm".to_owned(),
        vcpus,
        nodes: NodeSet::from_iter([NodeId(1)]),
        home: home.map(NodeId),
        share,
        cpus_as_string,
    })
}

#[test]
fn virtual_cpus_are_apart_from_half_of_their_memory_on() {
    let found_of = |share| found(guest(Hypervisor::Qemu, 7, vec![vcpu(0, share), vcpu(1, 0.0)]));
    assert_eq!(found_of(0.49), []);
    let found = found_of(0.5);
    assert_eq!(found[0].what.problem, problem(2, Some(0), 0.9, false));
    assert_eq!(
        (found[0].threshold, &found[0].evidence[..]),
        (Some(0.5), &[ProblemPlace::Vcpu(0)][..])
    );
    let unknown = VcpuView { remote_share: None, ..vcpu(0, 0.0) };
    assert_eq!(self::found(guest(Hypervisor::Qemu, 7, vec![unknown])), []);
}

#[test]
fn one_thread_apart_goes_home_alone_and_several_with_all_of_the_guest() {
    let one = remedy(guest(Hypervisor::Qemu, 7, vec![vcpu(0, 0.9), vcpu(1, 0.1)]));
    let home = cpus("0-1");
    assert_eq!(one, Some(Remedy::MoveThreads { number: 100, all: false, cpus: home.clone() }));
    let all = remedy(guest(Hypervisor::Qemu, 7, vec![vcpu(0, 0.9), vcpu(1, 0.9)]));
    assert_eq!(all, Some(Remedy::MoveThreads { number: 7, all: true, cpus: home.clone() }));
    let unknown = VcpuView { thread: None, ..vcpu(0, 0.9) };
    let of_guest = remedy(guest(Hypervisor::Qemu, 7, vec![unknown]));
    assert_eq!(of_guest, Some(Remedy::MoveThreads { number: 7, all: true, cpus: home }));
}

#[test]
fn guests_are_not_sent_to_nodes_with_fewer_cpus_or_too_little_room() {
    let large: Vec<VcpuView> = (0..3).map(|index| vcpu(index, 0.9)).collect();
    let obstacle = |guest| found(guest).pop().and_then(|finding| finding.what.obstacle);
    let few = Some(Obstacle::FewCpus { node: NodeId(0), cpus: 2, vcpus: 3 });
    assert_eq!(obstacle(guest(Hypervisor::Qemu, 7, large.clone())), few);
    assert_eq!(obstacle(guest(Hypervisor::Xen, 7, large.clone())), few);
    let control = Some("/run/vm.sock".to_owned());
    assert_eq!(obstacle(GuestView { control, ..guest(Hypervisor::Qemu, 7, large) }), few);
    let slow = GuestView {
        bytes_by_node: bytes(&[(4, 90), (1, 10)]),
        ..guest(Hypervisor::Qemu, 7, vec![vcpu(0, 0.9)])
    };
    let room = NodeRoom { total_bytes: 1000, available_bytes: 100 };
    let of = GuestsView { room_by_node: [(NodeId(1), room)].into(), ..view(vec![slow]) };
    let nodes = NodeSet::from_iter([NodeId(1)]);
    let obstacle = Obstacle::NoRoom { nodes, needed_bytes: 90, left_bytes: 60 };
    assert_eq!(Explored::of(View::Guests(of)).findings[0].what.obstacle, Some(obstacle));
}

#[test]
fn a_guest_with_memory_spread_evenly_is_in_no_wrong_place() {
    let spread = GuestView {
        bytes_by_node: bytes(&[(0, 50), (1, 50), (2, 50), (3, 50)]),
        ..guest(Hypervisor::Qemu, 7, vec![vcpu(0, 0.75)])
    };
    assert_eq!(found(spread), []);
}

#[test]
fn memory_on_a_node_without_cpus_is_moved_to_the_guest() {
    let slow = GuestView {
        bytes_by_node: bytes(&[(4, 90), (1, 10)]),
        ..guest(Hypervisor::Qemu, 7, vec![vcpu(0, 0.9)])
    };
    let from = NodeSet::from_iter([NodeId(4)]);
    assert_eq!(remedy(slow), Some(Remedy::MovePages { process: 7, from, to: Some(NodeId(1)) }));
}

#[test]
fn a_guest_that_takes_commands_has_each_vcpu_pinned_near_the_memory_of_its_node() {
    let memory = |guest_node, on: u32| GuestMemory {
        guest_node: Some(guest_node),
        bytes_by_node: bytes(&[(on, 50)]),
        ..GuestMemory::default()
    };
    let of_node =
        |index, guest_node| VcpuView { guest_node: Some(guest_node), ..vcpu(index, 0.75) };
    let two = GuestView {
        memory: vec![memory(0, 1), memory(1, 0)],
        control: Some("/run/vm.sock".to_owned()),
        ..guest(Hypervisor::Qemu, 7, vec![of_node(0, 0), of_node(1, 1), vcpu(2, 0.1)])
    };
    let found = found(two);
    let map = vec![(0, cpus("2-3")), (1, cpus("0-1"))];
    let socket = "/run/vm.sock".to_owned();
    assert_eq!(found[0].what.remedy, Some(Remedy::PinVcpus { socket, map }));
    assert_eq!(found[0].what.problem, problem(3, None, 0.75, false), "by its own guest node");
    assert_eq!(found[0].evidence, [ProblemPlace::Vcpu(0), ProblemPlace::Vcpu(1)]);
}

#[test]
fn a_guest_of_xen_with_its_cpus_as_a_string_shows_it_by_two_affinities_that_do_not_meet() {
    let apart =
        VcpuView { allowed: Some(cpus("2-3")), preferred: Some(cpus("0-1")), ..vcpu(0, 0.9) };
    let found = found(guest(Hypervisor::Xen, 3, vec![apart.clone()]));
    assert_eq!(found[0].what.problem, problem(1, Some(0), 0.9, true));
    let list = Remedy::ListCpus { guest: "vm".to_owned(), cpus: cpus("2-3") };
    assert_eq!(found[0].what.remedy, Some(list));
    let pinned = |vcpu| remedy(guest(Hypervisor::Xen, 3, vec![vcpu]));
    let pin = |is_pinned| Remedy::PinDomain { guest: "vm".to_owned(), node: NodeId(0), is_pinned };
    let meeting = VcpuView { preferred: Some(cpus("1-2")), ..apart.clone() };
    assert_eq!(pinned(meeting), Some(pin(true)));
    assert_eq!(pinned(vcpu(0, 0.9)), Some(pin(false)), "it may run anywhere");
    let of_qemu = self::found(guest(Hypervisor::Qemu, 3, vec![apart]));
    assert_eq!(of_qemu[0].what.problem, problem(1, Some(0), 0.9, false), "libxl is Xen's");
}

#[test]
fn the_first_domain_of_xen_serves_all_others_from_everywhere() {
    assert_eq!(found(guest(Hypervisor::Xen, 0, vec![vcpu(0, 1.0)])), []);
    assert_eq!(found(guest(Hypervisor::Qemu, 0, vec![vcpu(0, 1.0)])).len(), 1);
}

#[test]
fn a_guest_without_memory_or_vcpus_has_no_finding() {
    let nothing = GuestView {
        bytes_by_node: BytesByNode::new(),
        ..guest(Hypervisor::Qemu, 1, vec![vcpu(0, 1.0)])
    };
    assert_eq!(found(nothing), []);
    assert_eq!(found(guest(Hypervisor::Qemu, 1, Vec::new())), []);
}

#[test]
fn expectations_of_guests_hold_for_each_of_them_and_unknown_is_unmet() {
    let with = |remote_share| GuestView { remote_share, ..guest(Hypervisor::Qemu, 1, Vec::new()) };
    let view = View::Guests(view(vec![with(Some(0.25)), with(None), with(Some(0.2))]));
    let local = [Expectation::Local { least: 0.8 }];
    let remote = |share| Unmet::Remote { guest: Some("vm".to_owned()), share, least: 0.8 };
    assert_eq!(unmet(&view, &local), [remote(Some(0.75)), remote(None)]);
}

#[test]
fn a_pinned_guest_is_expected_on_one_node_and_no_more_than_a_twentieth_remote() {
    let pinned = |allowed: Option<&str>, remote_share| {
        let vcpu = VcpuView { allowed: allowed.map(cpus), ..vcpu(4, 0.0) };
        let guest = GuestView { remote_share, ..guest(Hypervisor::Qemu, 1, vec![vcpu]) };
        unmet(&View::Guests(view(vec![guest])), &[Expectation::Pinned])
    };
    assert_eq!(pinned(Some("2"), Some(0.05)), []);
    assert!(matches!(pinned(Some("2"), Some(0.06))[..], [Unmet::Remote { .. }]));
    let loose = Unmet::Unpinned { guest: "vm".to_owned(), vcpus: vec![4] };
    assert_eq!(pinned(None, Some(0.0)), [loose], "all cpus are allowed");
}

#[test]
fn a_subject_without_memory_fails_every_expectation() {
    let heap = HeapView { source: HeapSource::Frames, nodes: Vec::new(), xen: None, picture: None };
    let expected = [Expectation::Pinned, Expectation::Local { least: 0.5 }];
    assert_eq!(unmet(&View::Heap(heap), &expected), [Unmet::NotOfThis, Unmet::NotOfThis]);
    assert_eq!(unmet(&View::Guests(GuestsView::default()), &[]), [], "nothing is expected");
}
