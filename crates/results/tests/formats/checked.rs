//! Tests of a machine's nodes, its knobs, probes, and ACPI tables.

use std::collections::BTreeMap;

use numalab_page::Mood;
use numalab_record::self_test::{
    Check, CheckFound, CheckOutcome, Checked, GuestNode, NodeLatency, NodePages, PutBack, SelfTest,
};
use numalab_record::study::Quantity;
use numalab_record::system::{
    AcpiShown, AcpiTable, BalancingProbed, KnobList, KnobNow, KnobState, ProbedPlace,
};
use numalab_record::tiering::{TierLook, TieringProbed};
use numalab_record::{Environment, NoEffect};
use numalab_results::Report;
use numalab_results::system::{AcpiChecked, knob_value, no_effect};
use numalab_topology::{CpuId, CpuSet, Finding, Machine, Node, NodeId, NodeSet, Severity};

use crate::whole;

fn machine() -> Machine {
    let node = |id| Node { id: NodeId(id), online: true, memory_bytes: 1 << 30, ..Node::default() };
    Machine { nodes: vec![node(0), node(1)], ..Machine::default() }
}

fn passed(check: Check, found: CheckFound) -> Checked {
    Checked { check, outcome: CheckOutcome::Passed, found: Some(found), reason: None }
}

fn failed(check: Check, found: CheckFound) -> Checked {
    Checked { outcome: CheckOutcome::Failed, ..passed(check, found) }
}

fn left_out(check: Check, reason: &str) -> Checked {
    let reason = Some(reason.to_owned());
    Checked { check, outcome: CheckOutcome::NotChecked, found: None, reason }
}

fn self_test(checks: Vec<Checked>) -> SelfTest {
    let facts = BTreeMap::from([
        ("cpu_model".to_owned(), "EPYC".into()),
        ("kernel".to_owned(), "6.12".into()),
    ]);
    SelfTest { environment: Environment { facts }, machine: machine(), checks }
}

fn pages(node: u32, on_node: u64) -> NodePages {
    NodePages { node: NodeId(node), page_bytes: 2 << 20, pages: 8, on_node }
}

fn pair(from: u32, to: u32, latency_ns: f64, distance: Option<u8>) -> NodeLatency {
    NodeLatency { from: NodeId(from), to: NodeId(to), latency_ns, distance }
}

fn all_checks() -> Vec<Checked> {
    let cpus = |list: &str| -> CpuSet { list.parse().unwrap() };
    let (from, to) = (NodeId(0), NodeId(1));
    let balancing = CheckFound::Balancing {
        from,
        to,
        off_percent: 0.0,
        on_percent: 98.5,
        begin_ns: 201.0,
        end_ns: 104.25,
    };
    let guest =
        GuestNode { host: to, runs_on: Some(CpuId(3)), there_bytes: 256 << 20, elsewhere_bytes: 0 };
    let unknown = GuestNode { host: from, runs_on: None, elsewhere_bytes: 4096, ..guest.clone() };
    let nodes = vec![unknown, guest];
    let pairs =
        vec![pair(0, 0, 130.0, Some(10)), pair(0, 1, 99.5, Some(20)), pair(1, 1, 100.0, None)];
    let setting = |name: &str, after: &str| PutBack {
        name: name.to_owned(),
        before: "1".to_owned(),
        after: after.to_owned(),
    };
    let settings = [("numa_balancing", "1"), ("thp_enabled", "0"), ("swappiness", "")];
    let settings = settings.map(|(name, after)| setting(name, after)).to_vec();
    vec![
        passed(Check::Pins, CheckFound::Pins { right: cpus("0-3"), wrong: CpuSet::new() }),
        passed(Check::Bound, CheckFound::Pages { nodes: vec![pages(0, 8), pages(1, 8)] }),
        failed(Check::FirstTouch, CheckFound::Pages { nodes: vec![pages(0, 8), pages(1, 7)] }),
        passed(Check::Proof, CheckFound::Claim { node: from, claimed: to, pages: 8, refused: 8 }),
        passed(Check::TransparentHugePages, CheckFound::Pages { nodes: vec![pages(1, 8)] }),
        left_out(Check::ReservedHugePages, "no reserved huge pages on node 1"),
        passed(Check::Balancing, balancing),
        failed(Check::Matrix, CheckFound::Matrix { pairs }),
        failed(Check::Guest, CheckFound::Guest { accelerator: "tcg".to_owned(), nodes }),
        failed(Check::Settings, CheckFound::Settings { settings }),
    ]
}

#[test]
fn a_self_test_with_every_check_is_as_it_was_in_every_format() {
    whole::compare("self-test", &self_test(all_checks()));
}

#[test]
fn a_self_test_is_fine_only_if_all_was_checked_and_passed() {
    let answer = |checks: Vec<Checked>| {
        let lead = self_test(checks).page().lead.remove(0);
        (lead.sentence, lead.mood)
    };
    let right = || passed(Check::Settings, CheckFound::Settings { settings: Vec::new() });
    let other = || left_out(Check::Guest, "no QEMU");
    let wrong = || Checked { outcome: CheckOutcome::Failed, ..right() };
    let said = |passed, failed, left_out| {
        format!("{passed} passed, {failed} failed, {left_out} not checked.")
    };
    assert_eq!(answer(vec![right()]), (said(1, 0, 0), Mood::Fine));
    assert_eq!(answer(vec![right(), other()]), (said(1, 0, 1), Mood::Odd));
    assert_eq!(answer(vec![wrong(), other(), right()]), (said(1, 1, 1), Mood::Bad));
}

#[test]
fn the_findings_of_a_check_name_the_place() {
    let found = |of: CheckFound| {
        let page = self_test(vec![passed(Check::Pins, of)]).page();
        page.parts[0].panels[0].table.rows[0][2].clone()
    };
    let (right, wrong) = (CpuSet::from_iter([CpuId(0)]), CpuSet::from_iter([CpuId(2), CpuId(3)]));
    let pins = found(CheckFound::Pins { right, wrong });
    assert_eq!(
        pins,
        "cpus 2,3: the kernel runs them on a node other than the topology's; right: 0"
    );
    let one = found(CheckFound::Pages { nodes: vec![pages(1, 8)] });
    assert_eq!(one, "node 1: all 8 pages of 2M there");
    assert_eq!(found(CheckFound::Settings { settings: Vec::new() }), "none changed");
    let pairs = vec![pair(0, 0, 100.0, Some(10)), pair(0, 1, 96.0, Some(20))];
    let order = found(CheckFound::Matrix { pairs });
    assert_eq!(order, "2 pairs: no node closer by distance is slower", "4 % are within the margin");
}

fn knob(name: &str, state: KnobState, value: Option<&str>, why_not: Option<NoEffect>) -> KnobNow {
    KnobNow {
        name: name.to_owned(),
        files: vec![format!("/proc/sys/vm/{name}"), "/sys/b".to_owned()],
        state,
        value: value.map(str::to_owned),
        acts: why_not.is_none(),
        why_not,
        summary: format!("what {name} is"),
    }
}

#[test]
fn a_list_of_knobs_is_as_it_was_in_every_format() {
    let knobs = vec![
        knob("numa_balancing", KnobState::Value, Some("0"), Some(NoEffect::OneNode)),
        knob("swappiness", KnobState::Value, Some("60"), None),
        knob("drop_caches", KnobState::WriteOnly, None, Some(NoEffect::WriteOnly)),
        knob("=thp", KnobState::Denied, None, Some(NoEffect::Denied("/sys/thp: EPERM".to_owned()))),
        knob("empty", KnobState::Value, Some(""), None),
    ];
    whole::compare("knobs", &KnobList { knobs });
}

#[test]
fn every_reason_why_a_knob_has_no_effect_has_its_words() {
    let text = |text: &str| text.to_owned();
    for (why, words) in [
        (NoEffect::NothingToSet, "this machine has none"),
        (NoEffect::NotInKernel, "this kernel does not have it"),
        (NoEffect::Denied(text("EPERM")), "EPERM"),
        (NoEffect::WriteOnly, "it is write-only, so it could not be restored"),
        (NoEffect::ReadOnly, "it is read-only"),
        (NoEffect::OneNode, "memory is on one node"),
        (NoEffect::OneTier, "all memory is in one tier"),
        (NoEffect::NoSwap, "there is no swap, so reclaim has no choice"),
        (NoEffect::NoSiblings, "this machine has no SMT siblings"),
        (NoEffect::Fixed(text("notsupported")), "the kernel reports notsupported"),
        (
            NoEffect::DamonTooOld(text("6.1")),
            "DAMON of Linux 6.1 cannot migrate pages: 6.11 and later can",
        ),
        (NoEffect::DamonInUse(text("1 kdamond")), "DAMON is in use, with 1 kdamond"),
        (NoEffect::TiersUnreported, "this kernel does not report which memory is in a slow tier"),
        (NoEffect::Sentence(text("as it was")), "as it was"),
    ] {
        assert_eq!(no_effect(&why), words);
    }
}

#[test]
fn a_value_that_cannot_be_shown_has_a_reason() {
    assert_eq!(knob_value(KnobState::Value, Some("1")), "1");
    assert_eq!(knob_value(KnobState::Value, Some("")), "(empty)");
    assert_eq!(knob_value(KnobState::WriteOnly, None), "(write-only)");
    assert_eq!(knob_value(KnobState::Denied, None), "(denied)");
    assert_eq!(knob_value(KnobState::Absent, None), "-");
}

fn balancing(to: u32) -> BalancingProbed {
    let place = |cpu, node| ProbedPlace { cpu: CpuId(cpu), node: NodeId(node) };
    BalancingProbed {
        from: place(0, 0),
        to: place(3, to),
        size_bytes: 512 << 20,
        readings: vec![
            Quantity::lower("latency-begin", "ns").at(226.25),
            Quantity::lower("latency-end", "ns").at(105.5),
            Quantity::higher("local", "%").at(98.75),
        ],
        windows_ns: vec![(1_000_000, 226.25), (9_000_000_000, 105.5)],
    }
}

#[test]
fn a_probe_of_balancing_is_as_it_was_in_every_format() {
    whole::compare("probe-balancing", &balancing(1));
}

#[test]
fn where_both_cpus_are_of_one_node_nothing_can_move() {
    let said = balancing(0).page().lead.remove(0).sentence;
    assert_eq!(said, "Both cpus are on the same node: nothing can move.");
    let mut without = balancing(1);
    without.readings.clear();
    let said = without.page().lead.remove(0).sentence;
    assert_eq!(said, "The number of its pages on node 1 at the end is unknown.");
}

#[test]
fn a_probe_of_tiers_is_as_it_was_in_every_format() {
    let look = |at_ns, latency_ns, fast_pages| TierLook {
        at_ns,
        latency_ns,
        fast_pages,
        slow_pages: 1000 - fast_pages,
        marked_pages: 5,
        tier_pages: vec![fast_pages, 1000 - fast_pages],
    };
    let nodes = |ids: &[u32]| ids.iter().map(|id| NodeId(*id)).collect::<NodeSet>();
    let probed = TieringProbed {
        fast: nodes(&[0, 1]),
        slow: nodes(&[2]),
        tiers: vec![nodes(&[0, 1]), nodes(&[2])],
        size_bytes: 1 << 30,
        heat: "a tenth is hot".to_owned(),
        placed: "placed on tier 2 of 2".to_owned(),
        readings: vec![
            Quantity::higher("hot-fast", "%").at(96.5),
            Quantity::lower("latency-end", "ns").at(122.25),
        ],
        looks: vec![
            look(500_000_000, 322.0, 0),
            look(1_500_000_000, 222.0, 500),
            look(4_000_000_000, 122.25, 962),
        ],
    };
    whole::compare("probe-tiering", &probed);
}

fn acpi(findings: Vec<Finding>, refused: &[&str]) -> AcpiShown {
    let table = |signature: &str| AcpiTable {
        place: "tables/srat.bin".to_owned(),
        signature: signature.to_owned(),
        revision: 3,
        length_bytes: 144,
        header: format!("{signature} revision 3, 144 bytes"),
        entries: vec!["  memory of domain 0: 2G at 0".to_owned(), "  cpu 1 | domain 1".to_owned()],
    };
    AcpiShown {
        tables: vec![table("SRAT"), table("SLIT")],
        refused: refused.iter().map(|text| (*text).to_owned()).collect(),
        findings,
    }
}

fn odd() -> Finding {
    Finding {
        severity: Severity::Warning,
        code: "slit-asymmetric".to_owned(),
        place: "SLIT".to_owned(),
        message: "from 0 to 1 it is 20, back it is 21".to_owned(),
    }
}

#[test]
fn acpi_tables_are_as_they_were_in_every_format() {
    whole::compare("acpi", &acpi(vec![odd()], &["hmat.bin: 12 bytes, expected 40 or more"]));
}

#[test]
fn checked_tables_are_as_they_were_in_every_format() {
    whole::compare("acpi-checked", &AcpiChecked(acpi(vec![odd()], &[])));
}

#[test]
fn tables_of_which_nothing_is_odd_say_so_unless_one_could_not_be_read() {
    let said = |of: AcpiShown| -> Vec<String> {
        AcpiChecked(of).page().lead.into_iter().map(|lead| lead.sentence).collect()
    };
    assert_eq!(said(acpi(Vec::new(), &[])), ["no anomalies"]);
    assert_eq!(said(acpi(Vec::new(), &["x: cut"])), ["x: cut"]);
    assert_eq!(said(acpi(vec![odd()], &[])), [""; 0]);
}
