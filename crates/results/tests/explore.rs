//! Problems of memory placement, from the facts to the sentence and the command.

use numalab_record::explore::{
    BytesByNode, Counters, HeapNode, HeapSource, HeapView, HugePageMode, NodeView, NodesView,
    PageSizes, ProcessView, Unseen, View, XenDomain, XenHeap, ZoneView,
};
use numalab_results::Report;
use numalab_results::explore::{Explored, ProblemPlace};
use numalab_topology::{CpuId, CpuSet, HugePagePool, NodeId};
use serde_json::{Value, json};

const GIB: u64 = 1 << 30;

fn node(number: u32, free_bytes: u64) -> NodeView {
    NodeView {
        node: NodeId(number),
        cpus: CpuSet::from_iter([CpuId(number)]),
        total_bytes: Some(10 * GIB),
        free_bytes: Some(free_bytes),
        page_cache_bytes: Some(0),
        ..NodeView::default()
    }
}

fn of_nodes(nodes: Vec<NodeView>) -> Explored {
    Explored::of(View::Nodes(NodesView {
        nodes,
        migrations_since_boot: None,
        migrations_rates: None,
        base_page_bytes: Some(4096),
        huge_order: Some(9),
        unseen: Vec::new(),
        odd: Vec::new(),
    }))
}

fn process(sizes: PageSizes, mode: HugePageMode) -> ProcessView {
    ProcessView {
        process: 7,
        command: "./solver".to_owned(),
        threads: Vec::new(),
        mappings: Vec::new(),
        bytes_by_node: BytesByNode::new(),
        own_bytes_by_node: BytesByNode::new(),
        page_sizes: Some(sizes),
        sampled: None,
        devices: Vec::new(),
        remote_share: None,
        cpus_by_node: [(NodeId(0), CpuSet::from_iter([CpuId(0)]))].into(),
        room_by_node: Default::default(),
        huge_rooms: Vec::new(),
        numa_balancing: None,
        transparent_huge_pages: Some(mode),
        unseen: vec![Unseen::SumsByMapping { pages: 12 }],
    }
}

/// Returns the first part of the page: each sentence with its command.
fn lead(explored: &Explored) -> Vec<String> {
    let lead = explored.page().lead;
    let text = |lead: &numalab_page::Lead| {
        format!("{} | {}", lead.sentence, lead.command.as_deref().unwrap_or_default())
    };
    lead.iter().map(text).collect()
}

fn findings(explored: &Explored) -> Value {
    let document: Value = serde_json::from_str(&explored.json().unwrap()).unwrap();
    document["findings"].clone()
}

#[test]
fn a_node_full_of_shared_memory_is_found_without_figures_of_its_page_cache() {
    let of = |number, free_bytes, shared_bytes| NodeView {
        page_cache_bytes: None,
        shared_bytes: Some(shared_bytes),
        ..node(number, free_bytes)
    };
    let said =
        |shared_bytes| lead(&of_nodes(vec![of(0, GIB / 100, shared_bytes), of(1, 9 * GIB, 0)]));
    let full = said(10 * GIB - GIB / 50);
    assert!(full[0].starts_with("Node 0 ") && full[0].contains("0.2 %"), "{full:?}");
    assert!(
        said(5 * GIB).iter().all(|line| !line.to_lowercase().contains("node 0")),
        "most of it may be page cache"
    );
}

#[test]
fn a_full_node_next_to_an_empty_one_is_a_finding_and_two_half_full_nodes_are_not() {
    let explored = of_nodes(vec![node(0, GIB / 10), node(1, 6 * GIB)]);
    let found = lead(&explored);
    assert!(found[0].starts_with("Node 0 has 1.0 % of its 10 GiB left"), "{found:?}");
    assert!(found[0].contains("node 1 has 60 %"), "{found:?}");
    assert_eq!(explored.findings[0].threshold, Some(0.04));
    assert_eq!(explored.findings[0].evidence, [ProblemPlace::Node(NodeId(0))]);
    let half = of_nodes(vec![node(0, 4 * GIB), node(1, 5 * GIB)]);
    assert_eq!(lead(&half), ["None found. | "]);
}

#[test]
fn allocations_that_go_elsewhere_now_are_wrong() {
    let mut busy = NodeView { page_cache_bytes: Some(GIB), ..node(1, 5 * GIB) };
    busy.rates = Some(Counters { hit: 9000.0, foreign: 1000.0, ..Counters::default() });
    let found = lead(&of_nodes(vec![busy.clone()]));
    assert!(found[0].contains("| sysctl vm.zone_reclaim_mode=1"), "{found:?}");
    busy.huge_pages = vec![HugePagePool { page_bytes: 2 << 20, total: 100, free: 60 }];
    let explored = of_nodes(vec![busy]);
    let what = "1000 pages per second requested from node 1 go elsewhere, 10 % of all requests; \
                120 MiB of its memory is in unused reserved huge pages";
    let remedy = "echo 40 > \
                  /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages";
    assert_eq!(lead(&explored), [format!("{what}. | {remedy}")]);
    let in_json = json!([{
        "weight": "wrong",
        "kind": "allocations-elsewhere",
        "node": 1,
        "pages_per_s": 1000.0,
        "share": 0.1,
        "unused_pool": { "page_bytes": 2 << 20, "unused_bytes": 120 << 20 },
        "threshold": 0.01,
        "evidence": [{ "node": 1 }],
        "what": what,
        "remedy": remedy,
    }]);
    assert_eq!(findings(&explored), in_json);
}

#[test]
fn fragmented_free_memory_is_reported_with_the_movable_share() {
    let mut crumbs = node(2, 5 * GIB);
    let pageblocks = [("Movable".to_owned(), 3), ("Unmovable".to_owned(), 1)].into();
    crumbs.zones = vec![ZoneView { pageblocks, ..ZoneView::default() }];
    crumbs.fragmentation = Some(0.97);
    let found = lead(&of_nodes(vec![crumbs]));
    assert!(found[0].contains("97 % of it is in pieces smaller than a huge page of 2 MiB"));
    assert!(found[0].contains("75 % of its pageblocks"), "{found:?}");
    assert!(found[0].ends_with("| echo 1 > /sys/devices/system/node/node2/compact"));
}

/// Origin: GB200, with 28 nodes that are reserved for parts of GPUs.
#[test]
fn nodes_without_cpus_and_memory_are_named_once() {
    let empty = |number| NodeView { cpus: CpuSet::new(), total_bytes: Some(0), ..node(number, 0) };
    let explored = of_nodes(vec![node(0, 5 * GIB), node(1, 5 * GIB), empty(2), empty(3), empty(9)]);
    let part = explored.page().parts.swap_remove(0);
    assert_eq!(part.notes, ["Nodes 2,3,9 have neither cpus nor memory."]);
    let of_two = of_nodes(vec![node(0, 5 * GIB), node(1, 5 * GIB)]).page().parts.swap_remove(0);
    assert_eq!(part.panels[0].table.rows, of_two.panels[0].table.rows);
}

#[test]
fn huge_pages_on_only_some_nodes_are_reported() {
    let mut rich = node(0, 5 * GIB);
    rich.huge_pages = vec![HugePagePool { page_bytes: GIB, total: 4, free: 4 }];
    let found = lead(&of_nodes(vec![rich, node(1, 5 * GIB)]));
    assert!(found[0].contains("All 4 reserved huge pages of 1 GiB"), "{found:?}");
    assert!(found[0].contains("echo 2 > "), "{found:?}");
}

#[test]
fn a_large_process_on_small_pages_is_shown_how_to_get_huge_ones_here() {
    let sizes = PageSizes { resident: GIB, anonymous: GIB, swapped: GIB, ..PageSizes::default() };
    for (mode, words, command) in [
        (
            HugePageMode::Madvise,
            "for programs that request",
            "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 ./solver",
        ),
        (HugePageMode::Never, "transparent huge pages are off", "echo madvise > /sys/kernel/mm"),
        (HugePageMode::Always, "although transparent huge pages are on", "numalab explore --nodes"),
    ] {
        let found = lead(&Explored::of(View::Process(process(sizes, mode))));
        assert!(found[0].starts_with("0 % of its 1 GiB of anonymous memory"), "{found:?}");
        assert!(found[0].contains(words) && found[0].contains(command), "{found:?}");
        assert!(found[1].starts_with("50 % of its memory (1 GiB) is swapped out"), "{found:?}");
        assert!(found[2].contains("estimated from 12 pages of move_pages(2)"), "{found:?}");
    }
    let huge = PageSizes { transparent_huge: GIB, swapped: 0, ..sizes };
    let explored = Explored::of(View::Process(process(huge, HugePageMode::Always)));
    assert_eq!(explored.findings, []);
}

#[test]
fn a_xen_domain_on_several_nodes_is_reported_and_dom0_is_not() {
    let domain = |domain| XenDomain {
        domain,
        total_pages: 8,
        pages_by_node: [(NodeId(0), 6), (NodeId(1), 2)].into(),
    };
    let explored = Explored::of(View::Heap(HeapView {
        source: HeapSource::Xen,
        nodes: vec![HeapNode { node: NodeId(0), ..HeapNode::default() }],
        xen: Some(XenHeap {
            cpus: [].into(),
            domains: vec![domain(0), domain(3)],
            list: 1,
            lists: 1,
        }),
        picture: None,
    }));
    let expected = "Domain 3 spans several nodes: 75 % of its memory is on node 0. | in its \
                    configuration: cpus = [\"node:0\"], then xl destroy 3 and xl create (Xen does \
                    not move memory)";
    assert_eq!(lead(&explored), [expected]);
    assert_eq!(findings(&explored)[0]["evidence"], json!([{ "domain": 3 }]));
}
