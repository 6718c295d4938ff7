//! Nodes, guests, ranks and heaps: pages, sentences and commands.

use std::collections::BTreeMap;

use numalab_page::Style;
use numalab_record::explore::{
    BytesByNode, Counters, GuestMemory, GuestView, GuestsView, HeapNode, HeapSource, HeapView,
    HeapZone, Hypervisor, Migrations, NodeView, NodesView, RankView, RanksView, ThreadView,
    TierMoves, Unseen, VcpuView, View, XenDomain, XenHeap, ZoneView,
};
use numalab_results::Report;
use numalab_results::explore::page::unmet_words;
use numalab_results::explore::{Explored, Unmet};
use numalab_topology::{CpuId, CpuSet, HugePagePool, NodeId, NodeSet};

use crate::whole;

pub(super) const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

pub(super) fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

pub(super) fn bytes(of: &[(u32, u64)]) -> BytesByNode {
    of.iter().map(|&(node, bytes)| (NodeId(node), bytes)).collect()
}

pub(super) fn cpus_by_node() -> BTreeMap<NodeId, CpuSet> {
    BTreeMap::from([(NodeId(0), cpus("0-1")), (NodeId(1), cpus("2-3")), (NodeId(2), CpuSet::new())])
}

fn node(id: u32, tier: Option<u32>) -> NodeView {
    let zone = |name: &str, free_blocks: Vec<u64>| ZoneView {
        name: name.to_owned(),
        free_blocks,
        ..ZoneView::default()
    };
    NodeView {
        node: NodeId(id),
        tier,
        cpus: if id == 2 { CpuSet::new() } else { cpus(&format!("{}-{}", 2 * id, 2 * id + 1)) },
        total_bytes: Some(10 * GIB),
        free_bytes: Some(4 * GIB),
        page_cache_bytes: Some(GIB),
        shared_bytes: Some(0),
        anonymous_bytes: Some(3 * GIB),
        transparent_huge_bytes: Some(512 * MIB),
        slab_bytes: Some(100 * MIB),
        slab_reclaimable_bytes: Some(50 * MIB),
        huge_pages: Vec::new(),
        zones: vec![zone("DMA32", vec![3, 12_345]), zone("Normal", vec![1, 2, 10_000_000])],
        fragmentation: Some(0.5),
        since_boot: Some(Counters { hit: 100.0, ..Counters::default() }),
        rates: None,
        moves_since_boot: Some(TierMoves { promoted: 7.0, candidates: 9.0, demoted: 1.0 }),
        moves_rates: None,
    }
}

fn nodes(nodes: Vec<NodeView>) -> Explored {
    Explored::of(View::Nodes(NodesView {
        nodes,
        migrations_since_boot: Some(Migrations { balanced: 5.0, moved: 12.0, failed: 1.0 }),
        migrations_rates: None,
        base_page_bytes: Some(4096),
        huge_order: Some(1),
        unseen: vec![Unseen::Pageblocks],
        odd: Vec::new(),
    }))
}

#[test]
fn nodes_with_every_kind_of_problem_are_as_they_were_in_every_format() {
    let pool = |total, free| HugePagePool { page_bytes: 2 * MIB, total, free };
    let full =
        NodeView { free_bytes: Some(100 * MIB), page_cache_bytes: Some(0), ..node(0, Some(4)) };
    let rates = Counters { hit: 900.0, foreign: 100.0, local: 800.0, ..Counters::default() };
    let spilling = NodeView {
        huge_pages: vec![pool(8, 3)],
        rates: Some(rates),
        fragmentation: Some(0.95),
        ..node(1, Some(4))
    };
    let slow = NodeView { zones: Vec::new(), ..node(2, Some(54)) };
    whole::compare("nodes", &nodes(vec![full, spilling, slow]));
}

#[test]
fn nodes_of_one_tier_have_no_table_of_moves() {
    let text = nodes(vec![node(0, None), node(1, None)]).terminal(Style::Plain);
    assert!(!text.contains("Moved between tiers") && !text.contains("tier"), "{text}");
    assert!(text.contains("None found."), "{text}");
    assert!(text.contains("since boot") && !text.contains("per second, now"), "{text}");
}

#[test]
fn sizes_that_the_system_does_not_report_are_dashes_and_no_gauges() {
    let unknown = NodeView { node: NodeId(0), ..NodeView::default() };
    let explored = nodes(vec![unknown]);
    let page = explored.page();
    let cells = |title: &str| {
        let part = page.parts.iter().find(|part| part.title == title).expect(title);
        part.panels[0].table.rows[0].join("|")
    };
    assert_eq!(cells("By node"), "node 0||-|-|none");
    assert_eq!(cells("Used for"), "0|-|-|-|-|-|none");
    let gauges = explored.rows().unwrap().openmetrics().unwrap_or_default();
    assert!(!gauges.contains("_bytes{"), "{gauges}");
}

#[test]
fn counts_since_boot_of_a_new_node_are_not_mixed_with_those_of_a_second() {
    let rates = Some(Counters { hit: 7.0, ..Counters::default() });
    let moves_rates = Some(TierMoves { promoted: 3.0, ..TierMoves::default() });
    let watched = NodeView { rates, moves_rates, ..node(0, Some(4)) };
    let page = nodes(vec![watched, node(1, Some(54))]).page();
    for title in ["Allocations, in pages", "Moved between tiers, in pages"] {
        let part = page.parts.iter().find(|part| part.title == title).expect(title);
        let table = &part.panels[0].table;
        assert_eq!(table.caption, "per second, now");
        let of: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(of, ["0"], "{title}");
    }
}

pub(super) fn thread(
    number: u32,
    cpu: u32,
    remote_share: Option<f64>,
    cpu_ticks: u64,
) -> ThreadView {
    ThreadView {
        thread: number,
        name: format!("worker-{number}-of-many"),
        state: 'R',
        cpu: CpuId(cpu),
        node: Some(NodeId(cpu / 2)),
        allowed: cpus("0-3"),
        cpu_ticks,
        touched_pages: BytesByNode::new(),
        remote_share,
    }
}

fn vcpu(index: u32, node: u32, remote_share: f64) -> VcpuView {
    VcpuView {
        index,
        thread: Some(100 + index),
        cpu: Some(CpuId(2 * node)),
        node: Some(NodeId(node)),
        remote_share: Some(remote_share),
        ..VcpuView::default()
    }
}

fn guest(hypervisor: Hypervisor, name: &str, vcpus: Vec<VcpuView>) -> GuestView {
    GuestView {
        hypervisor,
        name: name.to_owned(),
        number: 7,
        vcpus,
        memory: Vec::new(),
        bytes_by_node: bytes(&[(0, 900 * MIB), (1, 100 * MIB)]),
        remote_share: Some(0.9),
        control: None,
    }
}

fn guests(guests: Vec<GuestView>) -> View {
    let unseen = vec![
        Unseen::GuestOfAnotherUser { guest: "db".to_owned(), process: 9 },
        Unseen::VcpuThreads { guest: "web".to_owned() },
        Unseen::NodesOfDomains,
    ];
    let cpus_by_node = cpus_by_node();
    View::Guests(GuestsView { guests, cpus_by_node, unseen, ..GuestsView::default() })
}

#[test]
fn guests_are_as_they_were_in_every_format() {
    let on_1 = || vec![vcpu(0, 1, 0.9), vcpu(1, 1, 0.9)];
    let pinned = GuestView {
        control: Some("/run/vm.sock".to_owned()),
        ..guest(Hypervisor::Qemu, "a-guest-with-a-very-long-name", on_1())
    };
    let apart =
        VcpuView { allowed: Some(cpus("2-3")), preferred: Some(cpus("0-1")), ..vcpu(0, 1, 0.9) };
    let memory = vec![GuestMemory::default()];
    let all = vec![
        guest(Hypervisor::Xen, "string", vec![apart]),
        guest(Hypervisor::Xen, "domain", on_1()),
        pinned,
        GuestView {
            memory,
            remote_share: None,
            ..guest(Hypervisor::Qemu, "calm", vec![vcpu(0, 0, 0.1)])
        },
        GuestView { bytes_by_node: bytes(&[(2, MIB)]), ..guest(Hypervisor::Qemu, "slow", on_1()) },
    ];
    whole::compare("guests", &Explored::of(guests(all)));
}

#[test]
fn a_host_without_guests_says_so() {
    let page = Explored::of(View::Guests(GuestsView::default())).page();
    assert_eq!((page.title.as_str(), page.parts.len()), ("no guest found on this host", 0));
}

fn rank(rank: usize, threads: Vec<ThreadView>, remote_share: f64) -> RankView {
    RankView {
        job: "4242.0".to_owned(),
        rank,
        size: Some(13),
        process: 1000 + u32::try_from(rank).unwrap(),
        other_processes: 1,
        command: "./solver --with many --more words".to_owned(),
        threads,
        own_bytes_by_node: bytes(&[(0, 512 * MIB), (1, 12 * MIB)]),
        remote_share: Some(remote_share),
    }
}

#[test]
fn ranks_are_as_they_were_in_every_format() {
    let bound = |number, cpu: u32| ThreadView {
        allowed: CpuSet::from_iter([CpuId(cpu)]),
        ..thread(number, cpu, None, 5)
    };
    let idle = ThreadView { state: 'S', ..thread(30, 3, None, 0) };
    let ranks = vec![
        rank(0, vec![bound(10, 0), bound(11, 1)], 0.1),
        rank(1, vec![bound(20, 0), idle], 0.2),
        rank(12, vec![bound(40, 2)], 0.9),
    ];
    let unseen = vec![Unseen::EnvironmentsOfOthers { processes: 3 }];
    let view = RanksView { ranks, cpus_by_node: cpus_by_node(), unseen };
    whole::compare("ranks-seen", &Explored::of(View::Ranks(view)));
}

#[test]
fn more_cpus_than_a_line_holds_go_on_below_without_the_memory_again() {
    let cpus_by_node = BTreeMap::from([(NodeId(0), cpus("0-49"))]);
    let ranks = vec![rank(7, vec![thread(1, 49, None, 5)], 0.0)];
    let view = RanksView { ranks, cpus_by_node, unseen: Vec::new() };
    let page = Explored::of(View::Ranks(view)).page();
    let rows = &page.parts[0].panels[0].table.rows;
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0][1..], ["0-47".to_owned(), ".".repeat(48), "7: 512 MiB".to_owned()]);
    assert_eq!(rows[1][1..], ["48,49".to_owned(), ".7".to_owned(), String::new()]);
}

fn heap(source: HeapSource) -> HeapView {
    let node = |id, free_bytes, huge| HeapNode {
        node: NodeId(id),
        managed_bytes: 1000 * MIB,
        free_bytes,
        free_huge_bytes: huge,
        cached_bytes: 64 * 1024,
        offline_bytes: 4096,
        zones: vec![HeapZone { name: "DMA".to_owned(), free_bytes: free_bytes / 2 }],
    };
    let domain = |domain, pages: &[(u32, u64)]| XenDomain {
        domain,
        total_pages: 1000,
        pages_by_node: bytes(pages),
    };
    let xen = XenHeap {
        list: 1,
        lists: 1,
        cpus: BTreeMap::new(),
        domains: vec![
            domain(0, &[(0, 1000)]),
            domain(3, &[(0, 600), (1, 400)]),
            domain(4, &[(1, 0)]),
        ],
    };
    HeapView {
        source,
        nodes: vec![node(0, 30 * MIB, Some(MIB)), node(1, 800 * MIB, None)],
        xen: (source == HeapSource::Xen).then_some(xen),
        picture: (source == HeapSource::Frames).then(|| "##..\n#...".to_owned()),
    }
}

#[test]
fn a_heap_of_xen_is_as_it_was_in_every_format() {
    whole::compare("heap-xen", &Explored::of(View::Heap(heap(HeapSource::Xen))));
}

#[test]
fn a_heap_of_numalab_has_a_picture_and_no_domains() {
    let text = Explored::of(View::Heap(heap(HeapSource::Frames))).terminal(Style::Plain);
    assert!(text.starts_with("heap of numalab-frames\n"), "{text}");
    assert!(text.contains("\nPicture\n##..\n#...\n") && !text.contains("Domains"), "{text}");
}

#[test]
fn each_unmet_expectation_is_one_line_with_the_found_and_the_expected_value() {
    let guest = || Some("vm".to_owned());
    let nodes = NodeSet::from_iter([NodeId(0), NodeId(1)]);
    let elsewhere = |guest, share, most| Unmet::Elsewhere {
        guest,
        nodes: nodes.clone(),
        share,
        least: 0.9,
        most,
    };
    for (unmet, words) in [
        (
            elsewhere(None, Some(0.25), Some((NodeId(3), 0.75))),
            "25.0 % of its memory on node 0,1, expected 90.0 % or more; most is on node 3, 75.0 %",
        ),
        (
            elsewhere(guest(), None, None),
            "guest vm: nothing of its memory on node 0,1, expected 90.0 % or more",
        ),
        (
            Unmet::Remote { guest: None, share: Some(0.5), least: 0.8 },
            "50.0 % of what it touches is local, expected 80.0 % or more",
        ),
        (
            Unmet::Remote { guest: guest(), share: None, least: 0.8 },
            "guest vm: the memory that it touches is unknown",
        ),
        (
            Unmet::Unpinned { guest: "vm".to_owned(), vcpus: vec![0, 3] },
            "guest vm: vCPU 0, 3 may run on several nodes",
        ),
        (Unmet::NoGuests, "no guest runs here"),
        (Unmet::NotOfThis, "--expect: expected --pid PID, or --guests"),
    ] {
        assert_eq!(unmet_words(&unmet), words);
    }
}
