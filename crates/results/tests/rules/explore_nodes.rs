//! Nodes that are full, spill over, are fragmented or have no reserved pages.

use std::collections::BTreeMap;

use numalab_record::explore::{Counters, NodeView, NodesView, View, ZoneView};
use numalab_results::explore::{
    ExploreFinding, Explored, NodesProblem, Obstacle, Problem, ProblemPlace, Remedy, UnusedPool,
    Weight,
};
use numalab_topology::{CpuId, CpuSet, HugePagePool, NodeId, NodeSet};

const MIB: u64 = 1 << 20;
const TOTAL: u64 = 1000 * MIB;

/// Returns a node of 1000 MiB with a cpu, and with this much memory free.
fn node(id: u32, free_mib: u64) -> NodeView {
    NodeView {
        node: NodeId(id),
        cpus: CpuSet::from_iter([CpuId(id)]),
        total_bytes: Some(TOTAL),
        free_bytes: Some(free_mib * MIB),
        page_cache_bytes: Some(0),
        ..NodeView::default()
    }
}

fn view(nodes: Vec<NodeView>) -> NodesView {
    NodesView {
        nodes,
        migrations_since_boot: None,
        migrations_rates: None,
        base_page_bytes: Some(4096),
        huge_order: Some(9),
        unseen: Vec::new(),
        odd: Vec::new(),
    }
}

fn found(nodes: Vec<NodeView>) -> Vec<ExploreFinding> {
    Explored::of(View::Nodes(view(nodes))).findings
}

fn problems(nodes: Vec<NodeView>) -> Vec<NodesProblem> {
    let of = |finding: ExploreFinding| match finding.what.problem {
        Problem::Nodes(problem) => problem,
        other => panic!("not of nodes: {other:?}"),
    };
    found(nodes).into_iter().map(of).collect()
}

#[test]
fn a_node_is_full_below_4_percent_while_another_has_a_fifth_free() {
    let found = found(vec![node(0, 39), node(1, 200), node(2, 900)]);
    let [full] = &found[..] else { panic!("{found:?}") };
    let problem = NodesProblem::NodeFull {
        node: NodeId(0),
        total_bytes: TOTAL,
        available_share: 0.039,
        roomy: NodeId(2),
        roomy_share: 0.9,
    };
    assert_eq!(full.what.problem, Problem::Nodes(problem));
    assert_eq!((full.what.weight, full.threshold), (Weight::Wrong, Some(0.04)));
    assert_eq!(full.evidence, [ProblemPlace::Node(NodeId(0))]);
    let remedy =
        |is_shared| Some(Remedy::UseOtherNode { full: NodeId(0), roomy: NodeId(2), is_shared });
    assert_eq!(full.what.remedy, remedy(false));
    let shared = NodeView { shared_bytes: Some(TOTAL / 2 + 1), ..node(0, 39) };
    let shared = self::found(vec![shared, node(1, 200), node(2, 900)]);
    assert_eq!(shared[0].what.remedy, remedy(true));
    assert_eq!(problems(vec![node(0, 40), node(1, 900)]), [], "4 % are free");
    assert_eq!(problems(vec![node(0, 0), node(1, 199)]), [], "no other node has room");
    assert_eq!(problems(vec![node(0, 39), node(1, 200)]).len(), 1, "a fifth is room");
}

#[test]
fn memory_that_the_kernel_can_free_at_once_is_available() {
    let cached = NodeView { page_cache_bytes: Some(2 * MIB), ..node(0, 37) };
    assert_eq!(problems(vec![cached.clone(), node(1, 900)]).len(), 1);
    let slab =
        NodeView { slab_reclaimable_bytes: Some(MIB), slab_bytes: Some(700 * MIB), ..cached };
    assert_eq!(problems(vec![slab.clone(), node(1, 900)]), [], "40 MiB in all");
    let shared =
        NodeView { page_cache_bytes: Some(500 * MIB), shared_bytes: Some(499 * MIB), ..slab };
    assert_eq!(problems(vec![shared, node(1, 900)]).len(), 1, "tmpfs stays");
}

#[test]
fn programs_are_not_sent_to_memory_without_cpus() {
    let slow = |id, free| NodeView { cpus: CpuSet::new(), ..node(id, free) };
    let other = found(vec![node(0, 39), node(1, 200), slow(2, 900)]);
    let (full, roomy, is_shared) = (NodeId(0), NodeId(1), false);
    let remedy = Remedy::UseOtherNode { full, roomy, is_shared };
    assert_eq!(other[0].what.remedy, Some(remedy), "node 2 has more room, but no cpus");
    let only = found(vec![node(0, 39), slow(2, 900)]);
    let obstacle = Obstacle::WithoutCpus { node: NodeId(2) };
    assert_eq!((&only[0].what.remedy, &only[0].what.obstacle), (&None, &Some(obstacle)));
}

#[test]
fn huge_pages_are_not_reserved_where_they_do_not_fit() {
    let with = |id, free, total| NodeView {
        huge_pages: vec![pool(2 * MIB, total, total)],
        ..node(id, free)
    };
    let found = found(vec![with(0, 500, 7), with(1, 46, 0)]);
    assert_eq!(found[0].what.remedy, None);
    let nodes = NodeSet::from_iter([NodeId(1)]);
    let obstacle = Obstacle::NoRoom { nodes, needed_bytes: 8 * MIB, left_bytes: 6 * MIB };
    assert_eq!(found[0].what.obstacle, Some(obstacle));
}

#[test]
fn a_node_without_memory_is_neither_full_nor_empty() {
    let empty = NodeView { total_bytes: Some(0), ..node(0, 0) };
    assert_eq!(problems(vec![empty.clone(), node(1, 900)]), []);
    assert_eq!(problems(vec![empty, node(1, 10)]), []);
}

#[test]
fn nothing_is_claimed_about_the_room_of_a_node_with_unknown_memory() {
    let [total, free, cache] = [
        NodeView { total_bytes: None, ..node(0, 0) },
        NodeView { free_bytes: None, ..node(0, 0) },
        NodeView { page_cache_bytes: None, ..node(0, 0) },
    ];
    for unknown in [total, free, cache] {
        assert_eq!(problems(vec![unknown, node(1, 900)]), []);
    }
    let foreign = NodeView { page_cache_bytes: None, ..with_rates(100.0, 900.0) };
    assert_eq!(found(vec![foreign])[0].what.remedy, Some(Remedy::ReclaimOnNode));
}

fn with_rates(hit: f64, foreign: f64) -> NodeView {
    NodeView { rates: Some(Counters { hit, foreign, ..Counters::default() }), ..node(0, 500) }
}

#[test]
fn allocations_go_elsewhere_from_one_percent_and_a_hundred_pages_a_second_on() {
    let expected = |foreign: f64, share| NodesProblem::AllocationsElsewhere {
        node: NodeId(0),
        pages_per_s: foreign,
        share,
        unused_pool: None,
    };
    assert_eq!(problems(vec![with_rates(9900.0, 100.0)]), [expected(100.0, 0.01)]);
    assert_eq!(problems(vec![with_rates(9902.0, 100.0)]), [], "less than 1 %");
    assert_eq!(problems(vec![with_rates(100.0, 99.0)]), [], "a few pages");
    assert_eq!(problems(vec![with_rates(0.0, 0.0)]), [], "nothing was allocated");
    let since_boot = Some(Counters { hit: 1.0, foreign: 1e9, ..Counters::default() });
    let before = NodeView { since_boot, ..node(0, 500) };
    assert_eq!(problems(vec![before]), [], "it may be long ago");
}

fn pool(page_bytes: u64, total: u64, free: u64) -> HugePagePool {
    HugePagePool { page_bytes, total, free }
}

#[test]
fn unused_reserved_pages_are_the_remedy_for_allocations_elsewhere() {
    let pages = |huge_pages| NodeView { huge_pages, ..with_rates(100.0, 900.0) };
    let used = |page_cache_bytes| {
        found(vec![NodeView {
            page_cache_bytes: Some(page_cache_bytes),
            ..pages(vec![pool(2 * MIB, 8, 0)])
        }])
        .remove(0)
    };
    assert_eq!(used(10 * MIB).what.remedy, Some(Remedy::ReclaimOnNode));
    let little = Obstacle::LittleCache { node: NodeId(0), cache_bytes: 9 * MIB };
    assert_eq!(used(9 * MIB).what.obstacle, Some(little));
    let unused = found(vec![pages(vec![pool(1 << 30, 2, 0), pool(2 * MIB, 8, 3)])]);
    let NodesProblem::AllocationsElsewhere { unused_pool, .. } = (match &unused[0].what.problem {
        Problem::Nodes(problem) => problem.clone(),
        other => panic!("{other:?}"),
    }) else {
        panic!("{unused:?}")
    };
    let (page_bytes, unused_bytes) = (2 * MIB, 6 * MIB);
    assert_eq!(unused_pool, Some(UnusedPool { page_bytes, unused_bytes }));
    let remedy = Remedy::ReservePages { node: NodeId(0), page_bytes, pages: 5 };
    assert_eq!(unused[0].what.remedy, Some(remedy), "those that are used stay");
    // If a kernel reports more free pages than exist, none need to be reserved.
    let odd = found(vec![pages(vec![pool(2 * MIB, 3, 8)])]);
    let none = Remedy::ReservePages { node: NodeId(0), page_bytes, pages: 0 };
    assert_eq!(odd[0].what.remedy, Some(none));
}

fn zone(movable: u64, unmovable: u64) -> ZoneView {
    let blocks = [("Movable".to_owned(), movable), ("Unmovable".to_owned(), unmovable)];
    ZoneView { name: "Normal".to_owned(), pageblocks: blocks.into(), ..ZoneView::default() }
}

#[test]
fn free_memory_is_scattered_beyond_nine_tenths_of_256_mib() {
    let scattered = |share, free_mib: u64| NodeView {
        fragmentation: Some(share),
        free_bytes: Some(free_mib * MIB),
        ..node(0, 0)
    };
    let only = |node| problems(vec![node]);
    assert_eq!(only(scattered(0.9, 500)), []);
    assert_eq!(only(scattered(0.95, 255)), [], "too little to matter");
    let expected = |movable_share| NodesProblem::FreeMemoryScattered {
        node: NodeId(0),
        free_bytes: 256 * MIB,
        share: 0.95,
        huge_page_bytes: 2 * MIB,
        movable_share,
    };
    assert_eq!(only(scattered(0.95, 256)), [expected(None)]);
    let zones = vec![zone(30, 10), zone(0, 20)];
    let seen = NodeView { zones, ..scattered(0.95, 256) };
    assert_eq!(only(seen.clone()), [expected(Some(0.5))]);
    let finding = &found(vec![seen])[0];
    assert_eq!(finding.what.weight, Weight::Note);
    assert_eq!(finding.what.remedy, Some(Remedy::Compact { node: NodeId(0) }));
}

#[test]
fn a_node_without_the_reserved_pages_that_others_have_gets_its_part_of_them() {
    let with =
        |id, total| NodeView { huge_pages: vec![pool(2 * MIB, total, total)], ..node(id, 500) };
    let found = found(vec![with(0, 7), with(1, 0), with(2, 0)]);
    let [finding] = &found[..] else { panic!("{found:?}") };
    let problem =
        NodesProblem::NoReservedPages { node: NodeId(1), page_bytes: 2 * MIB, elsewhere: 7 };
    assert_eq!(finding.what.problem, Problem::Nodes(problem));
    assert_eq!((finding.what.weight, finding.threshold), (Weight::Note, None));
    let remedy = Remedy::ReservePages { node: NodeId(1), page_bytes: 2 * MIB, pages: 3 };
    assert_eq!(finding.what.remedy, Some(remedy), "seven over three nodes, rounded up");
    assert_eq!(problems(vec![with(0, 0), with(1, 0)]), [], "nobody has any");
    assert_eq!(problems(vec![with(0, 4), with(1, 1)]), []);
    let slow = NodeView { cpus: CpuSet::new(), ..with(1, 0) };
    assert_eq!(problems(vec![with(0, 4), slow]), [], "threads do not run there");
}

#[test]
fn every_size_of_reserved_pages_is_looked_at_by_itself() {
    let gib = 1 << 30;
    let both = |id, small, large| NodeView {
        huge_pages: vec![pool(2 * MIB, small, 0), pool(gib, large, 0)],
        ..node(id, 500)
    };
    let found = problems(vec![both(0, 4, 0), both(1, 0, 2)]);
    let of = |node, page_bytes, elsewhere| NodesProblem::NoReservedPages {
        node: NodeId(node),
        page_bytes,
        elsewhere,
    };
    assert_eq!(found, [of(1, 2 * MIB, 4), of(0, gib, 2)]);
}

#[test]
fn a_view_keeps_its_observations_next_to_its_findings() {
    let view = view(vec![node(3, 10), node(5, 900)]);
    let explored = Explored::of(View::Nodes(view.clone()));
    assert_eq!(explored.view, View::Nodes(view));
    assert_eq!(explored.findings[0].evidence, [ProblemPlace::Node(NodeId(3))]);
    assert_eq!(BTreeMap::from([(explored.findings[0].what.weight, 1)])[&Weight::Wrong], 1);
}
