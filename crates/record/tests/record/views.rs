//! Views of memory, ranks, tiers and bisections: sums, shares and words.

use std::collections::BTreeMap;

use numalab_record::bisect::{BisectAnswer, Commit, CommitSide};
use numalab_record::explore::*;
use numalab_record::study::Quantity;
use numalab_record::system::{BalancingProbed, ProbedPlace};
use numalab_record::tiering::TieringProbed;
use numalab_record::{Environment, Fact, Placement, ProofMethod};
use numalab_topology::{CpuId, CpuSet, NodeId, NodeSet};
use serde_json::json;

fn bytes(of: &[(u32, u64)]) -> BytesByNode {
    of.iter().map(|&(node, bytes)| (NodeId(node), bytes)).collect()
}

#[test]
fn sums_of_nodes_are_as_large_as_can_be_and_take_nodes_along() {
    let mut sum = bytes(&[(0, u64::MAX - 1), (1, 5)]);
    spread::add(&mut sum, &bytes(&[(0, 7), (2, 3)]));
    assert_eq!(sum, bytes(&[(0, u64::MAX), (1, 5), (2, 3)]));
    assert_eq!(spread::total(&sum), u64::MAX);
    assert_eq!(spread::total(&BytesByNode::new()), 0);
}

#[test]
fn shares_are_of_all_and_nothing_has_none() {
    let of = bytes(&[(0, 25), (1, 50), (3, 25)]);
    let nodes = |list: &str| list.parse::<NodeSet>().unwrap();
    assert_eq!(spread::share_on(&of, &nodes("0,3")), Some(0.5));
    assert_eq!(spread::share_on(&of, &nodes("2")), Some(0.0));
    assert_eq!(spread::share_on(&bytes(&[(0, 0)]), &nodes("0")), None);
    assert_eq!(spread::share_elsewhere(&of, NodeId(1)), Some(0.5));
    assert_eq!(spread::most(&of), Some((NodeId(1), 0.5)));
    assert_eq!(spread::most(&bytes(&[(0, 0), (1, 0)])), None);
    assert_eq!(
        (spread::ratio(1, 0), spread::ratio(0, 4), spread::ratio(4, 4)),
        (None, Some(0.0), Some(1.0))
    );
    assert_eq!(spread::others(&bytes(&[(0, 1), (1, 1), (2, 0)]), NodeId(0)), nodes("1"));
}

fn zone(free_blocks: &[u64]) -> ZoneView {
    ZoneView { free_blocks: free_blocks.to_vec(), ..ZoneView::default() }
}

#[test]
fn free_pages_are_those_of_blocks_of_an_order_or_more() {
    let zone = zone(&[3, 2, 0, 1]);
    assert_eq!(
        (zone.free_pages(), zone.pages_from(1), zone.pages_from(3), zone.pages_from(4)),
        (15, 12, 8, 0)
    );
    let mut large = vec![0; 70];
    (large[63], large[69]) = (3, 1);
    assert_eq!(self::zone(&large).free_pages(), u64::MAX);
    assert_eq!(self::zone(&large).pages_from(64), 0, "an order beyond all addresses has none");
}

#[test]
fn fragmentation_is_the_share_of_all_zones_that_serves_no_block_of_the_order() {
    assert_eq!(fragmentation(&[], 9), None);
    assert_eq!(fragmentation(&[zone(&[0, 0])], 1), None);
    assert_eq!(fragmentation(&[zone(&[4, 0])], 1), Some(1.0));
    assert_eq!(fragmentation(&[zone(&[0, 4])], 1), Some(0.0));
    assert_eq!(fragmentation(&[zone(&[4, 2]), zone(&[0, 4])], 1), Some(0.25));
    assert_eq!(fragmentation(&[zone(&[4, 2])], 0), Some(0.0));
}

#[test]
fn available_memory_is_free_or_can_be_freed_at_once() {
    let mut node = NodeView {
        free_bytes: Some(1),
        page_cache_bytes: Some(20),
        slab_bytes: Some(5000),
        slab_reclaimable_bytes: Some(300),
        ..NodeView::default()
    };
    assert_eq!(node.available_bytes(), Some(321));
    node.page_cache_bytes = Some(u64::MAX);
    assert_eq!(node.available_bytes(), Some(u64::MAX));
    node.page_cache_bytes = None;
    assert_eq!(node.available_bytes(), None);
}

#[test]
fn the_foreign_share_is_of_the_pages_meant_for_the_node() {
    let counters = |hit, foreign| Counters { hit, foreign, miss: 1e9, ..Counters::default() };
    assert_eq!(counters(75.0, 25.0).foreign_share(), Some(0.25));
    assert_eq!(counters(0.0, 1.0).foreign_share(), Some(1.0));
    assert_eq!(counters(0.0, 0.0).foreign_share(), None);
}

#[test]
fn sizes_of_pages_add_up_separately() {
    let mut sum =
        PageSizes { resident: 1, anonymous: 2, transparent_huge: 3, reserved_huge: 4, swapped: 5 };
    sum += PageSizes {
        resident: 10,
        anonymous: 20,
        transparent_huge: 30,
        reserved_huge: 40,
        swapped: u64::MAX,
    };
    let expected = PageSizes {
        resident: 11,
        anonymous: 22,
        transparent_huge: 33,
        reserved_huge: 44,
        swapped: u64::MAX,
    };
    assert_eq!(sum, expected);
}

#[test]
fn a_view_names_itself_and_the_parts_it_could_not_read() {
    let unseen = vec![Unseen::Pageblocks, Unseen::SumsByMapping { pages: 7 }];
    let view = View::Nodes(NodesView {
        nodes: Vec::new(),
        migrations_since_boot: None,
        migrations_rates: None,
        base_page_bytes: Some(4096),
        huge_order: Some(9),
        unseen: unseen.clone(),
        odd: Vec::new(),
    });
    assert_eq!(view.unseen(), unseen);
    let json = serde_json::to_value(&view).unwrap();
    assert_eq!(json["explore"], "nodes");
    assert_eq!(
        json["unseen"],
        json!([{"kind": "pageblocks"}, {"kind": "sums-by-mapping", "pages": 7}])
    );
    let heap = HeapView { source: HeapSource::Xen, nodes: Vec::new(), xen: None, picture: None };
    assert!(View::Heap(heap).unseen().is_empty());
}

fn placed(pages_per_node: &[(u32, u64)]) -> Placement {
    Placement {
        cpu: CpuId(0),
        cpu_node: Some(NodeId(1)),
        affinity: CpuSet::new(),
        memory_node: NodeId(2),
        address: 0,
        buffer_bytes: 0,
        method: ProofMethod::MovePages,
        pages_checked: 0,
        pages_per_node: bytes(pages_per_node),
        bytes_per_page_size: BTreeMap::new(),
        isa: None,
    }
}

#[test]
fn memory_is_where_most_of_its_pages_are_and_of_equal_ones_on_the_first() {
    assert_eq!(placed(&[(0, 1), (3, 9), (5, 8)]).main_node(), NodeId(3));
    assert_eq!(placed(&[(1, 4), (2, 4)]).main_node(), NodeId(1));
    assert_eq!(placed(&[]).main_node(), NodeId(2));
}

#[test]
fn figures_of_probes_are_found_by_name() {
    let readings = vec![
        Quantity::lower("latency-end", "ns").at(80.0),
        Quantity::higher("local", "%").at(99.0),
    ];
    let place = ProbedPlace { cpu: CpuId(0), node: NodeId(0) };
    let balancing = BalancingProbed {
        from: place,
        to: place,
        size_bytes: 1,
        readings: readings.clone(),
        windows_ns: Vec::new(),
    };
    assert_eq!((balancing.value("local"), balancing.value("latency")), (Some(99.0), None));
    let tiering = TieringProbed {
        fast: NodeSet::new(),
        slow: NodeSet::new(),
        tiers: Vec::new(),
        size_bytes: 1,
        heat: String::new(),
        placed: String::new(),
        readings,
        looks: Vec::new(),
    };
    assert_eq!((tiering.value("latency-end"), tiering.value("")), (Some(80.0), None));
}

#[test]
fn commits_are_quoted_by_twelve_digits_and_sides_are_read_back() {
    let commit = |hash: &str| Commit { hash: hash.to_owned(), ..Commit::default() };
    assert_eq!(commit("0123456789abcdef").short(), "0123456789ab");
    assert_eq!(commit("0123456789ab").short(), "0123456789ab");
    assert_eq!((commit("01").short(), commit("").short()), ("01", ""));
    for (side, expected) in [
        (CommitSide::Open, json!("open")),
        (CommitSide::Undecided, json!("undecided")),
        (CommitSide::NotBuilt("ld".to_owned()), json!({"not-built": "ld"})),
        (CommitSide::NotRun("oops".to_owned()), json!({"not-run": "oops"})),
    ] {
        assert_eq!(serde_json::to_value(&side).unwrap(), expected);
        assert_eq!(serde_json::from_value::<CommitSide>(expected).unwrap(), side);
    }
    let first = BisectAnswer::FirstBad { commit: commit("ab") };
    let json = serde_json::to_value(&first).unwrap();
    assert_eq!((&json["kind"], &json["commit"]["hash"]), (&json!("first-bad"), &json!("ab")));
    assert_eq!(serde_json::from_value::<BisectAnswer>(json).unwrap(), first);
}

#[test]
fn memory_of_any_size_is_compared_in_whole_gib() {
    let gib = |kib: &str| {
        Environment::lasting("memory_total_kb", &Fact::read("memory_total_kb", kib)).unwrap()
    };
    assert_eq!((gib("524287"), gib("524288")), ("0 GiB".to_owned(), "1 GiB".to_owned()));
    assert_eq!(gib("18446744073709551615"), "17592186044415 GiB");
    assert_eq!(gib("a lot"), "a lot");
    for passing in ["load_average", "memory_available_kb", "swap_free_kb"] {
        assert_eq!(Environment::lasting(passing, &Fact::read(passing, "1")), None);
    }
    assert_eq!(Environment::lasting("huge_pages_1048576kb", &Fact::Count(2)).as_deref(), Some("2"));
}
