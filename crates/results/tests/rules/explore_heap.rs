//! Heap dumps: full nodes, fragmented memory, domains on several nodes.

use numalab_page::Style;
use numalab_record::explore::{HeapNode, HeapSource, HeapView, View, XenDomain, XenHeap};
use numalab_results::Report as _;
use numalab_results::explore::{
    ExploreFinding, Explored, HeapProblem, Problem, ProblemPlace, Remedy, Weight,
};
use numalab_topology::NodeId;

fn node(id: u32, free_bytes: u64, free_huge_bytes: Option<u64>) -> HeapNode {
    HeapNode {
        node: NodeId(id),
        managed_bytes: 1000,
        free_bytes,
        free_huge_bytes,
        ..HeapNode::default()
    }
}

fn found(nodes: Vec<HeapNode>, domains: Vec<XenDomain>) -> Vec<ExploreFinding> {
    let xen = Some(XenHeap { domains, ..XenHeap::default() });
    let view = HeapView { source: HeapSource::Xen, nodes, xen, picture: None };
    Explored::of(View::Heap(view)).findings
}

fn problems(nodes: Vec<HeapNode>) -> Vec<HeapProblem> {
    let of = |finding: ExploreFinding| match finding.what.problem {
        Problem::Heap(problem) => problem,
        other => panic!("not of a heap: {other:?}"),
    };
    found(nodes, Vec::new()).into_iter().map(of).collect()
}

#[test]
fn a_heaps_node_is_full_below_4_percent_while_another_has_a_fifth_free() {
    let full = HeapProblem::HeapNodeFull {
        node: NodeId(0),
        free_share: 0.039,
        roomy: NodeId(1),
        roomy_share: 0.2,
    };
    assert_eq!(problems(vec![node(0, 39, None), node(1, 200, None)]), [full]);
    assert_eq!(problems(vec![node(0, 40, None), node(1, 900, None)]), []);
    assert_eq!(problems(vec![node(0, 39, None), node(1, 199, None)]), []);
    let nothing = HeapNode { managed_bytes: 0, ..node(0, 0, None) };
    assert_eq!(problems(vec![nothing.clone(), node(1, 900, None)]), [], "it manages nothing");
    assert_eq!(problems(vec![nothing]), []);
}

#[test]
fn a_heap_is_fragmented_if_half_of_its_free_memory_is_in_small_pieces() {
    let scattered = HeapProblem::HeapScattered { node: NodeId(0), share: 0.5 };
    assert_eq!(problems(vec![node(0, 500, Some(250))]), [scattered]);
    assert_eq!(problems(vec![node(0, 500, Some(251))]), []);
    assert_eq!(problems(vec![node(0, 500, None)]), [], "nobody knows");
    assert_eq!(problems(vec![node(0, 0, Some(0))]), [], "nothing is free");
}

#[test]
fn a_node_may_be_full_and_scattered_and_both_are_notes_with_their_rule() {
    let found = found(vec![node(0, 20, Some(1)), node(1, 900, Some(900))], Vec::new());
    let thresholds: Vec<_> = found.iter().map(|of| (of.threshold, of.what.weight)).collect();
    assert_eq!(thresholds, [(Some(0.04), Weight::Note), (Some(0.5), Weight::Note)]);
    assert!(found.iter().all(|of| of.evidence == [ProblemPlace::Node(NodeId(0))]), "{found:?}");
    assert!(found.iter().all(|of| of.what.remedy.is_none()), "{found:?}");
}

fn domain(domain: u32, pages: &[(u32, u64)]) -> XenDomain {
    let pages_by_node = pages.iter().map(|&(node, pages)| (NodeId(node), pages)).collect();
    XenDomain { domain, total_pages: 100, pages_by_node }
}

#[test]
fn a_domain_is_spread_below_95_percent_on_one_node_and_the_first_domain_never() {
    let domains = vec![
        domain(0, &[(0, 50), (1, 50)]),
        domain(1, &[(0, 5), (1, 95)]),
        domain(2, &[(0, 94), (1, 6)]),
        domain(3, &[]),
    ];
    let found = found(Vec::new(), domains);
    let [spread] = &found[..] else { panic!("{found:?}") };
    let problem = HeapProblem::DomainSpread { domain: 2, node: NodeId(0), share: 0.94 };
    assert_eq!(spread.what.problem, Problem::Heap(problem));
    assert_eq!(
        (spread.threshold, &spread.evidence[..]),
        (Some(0.95), &[ProblemPlace::Domain(2)][..])
    );
    let remedy = Remedy::RecreateDomain { domain: 2, node: NodeId(0) };
    assert_eq!(spread.what.remedy, Some(remedy));
}

#[test]
fn a_domain_without_most_of_its_lines_is_incomplete_and_gets_no_advice() {
    let found = found(Vec::new(), vec![domain(3, &[(0, 2), (1, 9)]), domain(4, &[(1, 96)])]);
    let [incomplete] = &found[..] else { panic!("{found:?}") };
    let problem = HeapProblem::DomainIncomplete { domain: 3, share: 0.11 };
    assert_eq!(incomplete.what.problem, Problem::Heap(problem));
    assert_eq!(incomplete.what.remedy, None);
}

#[test]
fn a_node_with_more_free_memory_than_memory_is_damage_and_no_room_for_others() {
    let damaged =
        HeapProblem::HeapFreeExceeds { node: NodeId(1), free_bytes: 9000, managed_bytes: 1000 };
    assert_eq!(problems(vec![node(0, 39, None), node(1, 9000, None)]), [damaged]);
}

#[test]
fn domains_have_columns_of_their_nodes_where_the_lines_of_nodes_are_lost() {
    let xen = Some(XenHeap { domains: vec![domain(3, &[(0, 10), (1, 90)])], ..XenHeap::default() });
    let view = HeapView { source: HeapSource::Xen, nodes: Vec::new(), xen, picture: None };
    let text = Explored::of(View::Heap(view)).terminal(Style::Plain);
    assert!(text.contains("node 0") && text.contains("360 KiB"), "{text}");
}
