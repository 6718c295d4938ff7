//! The JSON of documents that are only written: self-tests, knobs, tables, guests, ranks, notices.

use std::collections::BTreeMap;

use numalab_record::explore::*;
use numalab_record::self_test::*;
use numalab_record::study::{AcceleratorReason, EmulatedCosts, Notice};
use numalab_record::system::{AcpiShown, AcpiTable, KnobList, KnobNow, KnobState};
use numalab_record::{NoEffect, Outcome, Placement, ProofMethod};
use numalab_topology::{CpuId, CpuSet, DeviceKind, NodeId};
use serde::Serialize;
use serde_json::{Value, json};

fn written(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

#[test]
fn a_check_names_its_subject_and_omits_absent_findings() {
    let of = |check, outcome, found, reason| written(&Checked { check, outcome, found, reason });
    let pins = CheckFound::Pins { right: cpus("0-2"), wrong: CpuSet::new() };
    let expected = json!({"check": "pins", "outcome": "passed",
        "found": {"of": "pins", "right": "0-2", "wrong": ""}});
    assert_eq!(of(Check::Pins, CheckOutcome::Passed, Some(pins), None), expected);
    let reason = Some("one node".to_owned());
    let expected = json!({"check": "first-touch", "outcome": "not-checked", "reason": "one node"});
    assert_eq!(of(Check::FirstTouch, CheckOutcome::NotChecked, None, reason), expected);
}

#[test]
fn the_findings_of_a_check_are_tagged_with_their_subject() {
    let (from, to) = (NodeId(0), NodeId(1));
    let pages = NodePages { node: to, page_bytes: 4096, pages: 9, on_node: 8 };
    let pair = NodeLatency { from, to, latency_ns: 1.5, distance: None };
    let guest = GuestNode { host: to, runs_on: Some(CpuId(3)), there_bytes: 1, elsewhere_bytes: 2 };
    let setting =
        PutBack { name: "thp".to_owned(), before: "always".to_owned(), after: "never".to_owned() };
    for (found, expected) in [
        (
            CheckFound::Pages { nodes: vec![pages] },
            json!({"of": "pages",
                "nodes": [{"node": 1, "page_bytes": 4096, "pages": 9, "on_node": 8}]}),
        ),
        (
            CheckFound::Claim { node: from, claimed: to, pages: 5, refused: 4 },
            json!({"of": "claim", "node": 0, "claimed": 1, "pages": 5, "refused": 4}),
        ),
        (
            CheckFound::Matrix { pairs: vec![pair] },
            json!({"of": "matrix",
                "pairs": [{"from": 0, "to": 1, "latency_ns": 1.5, "distance": null}]}),
        ),
        (
            CheckFound::Guest { accelerator: "kvm".to_owned(), nodes: vec![guest] },
            json!({"of": "guest", "accelerator": "kvm", "nodes":
                [{"host": 1, "runs_on": 3, "there_bytes": 1, "elsewhere_bytes": 2}]}),
        ),
        (
            CheckFound::Settings { settings: vec![setting] },
            json!({"of": "settings",
                "settings": [{"name": "thp", "before": "always", "after": "never"}]}),
        ),
    ] {
        assert_eq!(written(&found), expected);
    }
}

#[test]
fn knobs_say_their_state_and_why_they_do_not_act() {
    let knob = KnobNow {
        name: "numa_balancing".to_owned(),
        files: vec!["/proc/sys/kernel/numa_balancing".to_owned()],
        state: KnobState::WriteOnly,
        value: None,
        acts: false,
        why_not: Some(NoEffect::OneNode),
        summary: "moves memory".to_owned(),
    };
    let expected = json!({"knobs": [{"name": "numa_balancing", "state": "write-only",
        "files": ["/proc/sys/kernel/numa_balancing"], "value": null, "acts": false,
        "why_not": "one-node", "summary": "moves memory"}]});
    assert_eq!(written(&KnobList { knobs: vec![knob] }), expected);
}

#[test]
fn a_table_is_written_by_its_entries_without_the_text_of_its_header() {
    let table = AcpiTable {
        place: "srat.dat".to_owned(),
        signature: "SRAT".to_owned(),
        revision: 3,
        length_bytes: 48,
        header: "for people".to_owned(),
        entries: vec!["cpu 0".to_owned()],
    };
    let shown = AcpiShown { tables: vec![table], refused: vec!["x".to_owned()], findings: vec![] };
    let expected = json!({"refused": ["x"], "findings": [], "tables": [{"place": "srat.dat",
        "signature": "SRAT", "revision": 3, "length_bytes": 48, "entries": ["cpu 0"]}]});
    assert_eq!(written(&shown), expected);
}

#[test]
fn guests_and_ranks_are_listed_by_node_with_unknown_values_as_null() {
    let guest = GuestView {
        hypervisor: Hypervisor::Qemu,
        name: "g".to_owned(),
        number: 7,
        vcpus: vec![VcpuView { index: 1, cpu: Some(CpuId(4)), ..VcpuView::default() }],
        memory: vec![GuestMemory { name: "ram".to_owned(), ..GuestMemory::default() }],
        bytes_by_node: BytesByNode::from([(NodeId(1), 5)]),
        remote_share: None,
        control: None,
    };
    let view = View::Guests(GuestsView {
        guests: vec![guest],
        cpus_by_node: BTreeMap::from([(NodeId(0), cpus("0,2"))]),
        room_by_node: BTreeMap::from([(
            NodeId(0),
            NodeRoom { total_bytes: 9, available_bytes: 4 },
        )]),
        unseen: vec![Unseen::NodesOfDomains],
    });
    let expected = json!({"explore": "guests", "cpus_by_node": {"0": "0,2"},
        "room_by_node": {"0": {"total_bytes": 9, "available_bytes": 4}},
        "unseen": [{"kind": "nodes-of-domains"}],
        "guests": [{"hypervisor": "qemu", "name": "g", "number": 7, "remote_share": null,
            "control": null, "bytes_by_node": {"1": 5},
            "memory": [{"name": "ram", "guest_node": null, "policies": [], "bytes_by_node": {}}],
            "vcpus": [{"index": 1, "guest_node": null, "thread": null, "cpu": 4, "node": null,
                "allowed": null, "preferred": null, "remote_share": null}]}]});
    assert_eq!(written(&view), expected);
    assert_eq!(view.unseen(), [Unseen::NodesOfDomains]);
    let none = View::Ranks(RanksView {
        unseen: vec![Unseen::EnvironmentsOfOthers { processes: 3 }],
        ..RanksView::default()
    });
    let expected = json!({"explore": "ranks", "ranks": [], "cpus_by_node": {},
        "unseen": [{"kind": "environments-of-others", "processes": 3}]});
    assert_eq!(written(&none), expected);
    let device = DeviceUse {
        address: "0000:81:00.0".to_owned(),
        name: "nvme0".to_owned(),
        kind: DeviceKind::Storage,
        node: None,
        files: vec![],
    };
    let expected = json!({"address": "0000:81:00.0", "name": "nvme0", "kind": "storage",
        "node": null, "files": []});
    assert_eq!(written(&device), expected);
}

#[test]
fn notices_are_kinds_with_their_facts_and_are_read_back() {
    let accelerator =
        Notice::Accelerator { name: "tcg".to_owned(), reason: AcceleratorReason::MemoryEmulator };
    let hang = Notice::QemuCanHang { version: "7.2".to_owned(), fixed_in: "8.0".to_owned() };
    let build = Notice::XenBuild { file: "/boot/xen".into(), sha256: "ab".to_owned() };
    for (notice, expected) in [
        (accelerator, json!({"kind": "accelerator", "name": "tcg", "reason": "memory-emulator"})),
        (hang, json!({"kind": "qemu-can-hang", "version": "7.2", "fixed_in": "8.0"})),
        (build, json!({"kind": "xen-build", "file": "/boot/xen", "sha256": "ab"})),
        (
            Notice::RealNodes { nodes: vec!["0-1".parse().unwrap(), "3".parse().unwrap()] },
            json!({"kind": "real-nodes", "nodes": ["0,1", "3"]}),
        ),
        (
            Notice::EmulatedMemory { costs: EmulatedCosts::Hmat },
            json!({"kind": "emulated-memory", "costs": "hmat"}),
        ),
        (
            Notice::GuestOfOneNode { knob: "smt".to_owned() },
            json!({"kind": "guest-of-one-node", "knob": "smt"}),
        ),
        (Notice::BootsSideBySide, json!({"kind": "boots-side-by-side"})),
        (Notice::VirtualTime, json!({"kind": "virtual-time"})),
        (Notice::Sentence("as before".to_owned()), json!("as before")),
    ] {
        assert_eq!(written(&notice), expected);
        assert_eq!(serde_json::from_value::<Notice>(expected).unwrap(), notice);
    }
    let before = json!({"kind": "qemu-can-hang", "version": "7.2", "mended_in": "8.0"});
    let hang = Notice::QemuCanHang { version: "7.2".to_owned(), fixed_in: "8.0".to_owned() };
    assert_eq!(serde_json::from_value::<Notice>(before).unwrap(), hang);
    let unknown = json!({"kind": "of-a-later-version"});
    assert!(serde_json::from_value::<Notice>(unknown).is_err());
}

#[test]
fn the_end_of_a_cell_follows_its_proof_of_place() {
    let placement = Placement {
        cpu: CpuId(1),
        cpu_node: None,
        affinity: cpus("1"),
        memory_node: NodeId(0),
        address: 4096,
        buffer_bytes: 8192,
        method: ProofMethod::NumaMaps,
        pages_checked: 2,
        pages_per_node: BTreeMap::from([(NodeId(0), 2)]),
        bytes_per_page_size: BTreeMap::from([(4096, 8192)]),
        isa: None,
    };
    let expected = json!({"cpu": 1, "cpu_node": null, "affinity": "1", "memory_node": 0,
        "address": 4096, "buffer_bytes": 8192, "method": "numa-maps", "pages_checked": 2,
        "pages_per_node": {"0": 2}, "bytes_per_page_size": {"4096": 8192}});
    assert_eq!(written(&placement), expected);
    assert_eq!(serde_json::from_value::<Placement>(expected).unwrap(), placement);
    for (outcome, expected) in [
        (Outcome::Precise, json!({"outcome": "precise"})),
        (Outcome::BudgetSpent, json!({"outcome": "budget-spent"})),
        (Outcome::Failed { reason: "x".to_owned() }, json!({"outcome": "failed", "reason": "x"})),
    ] {
        assert_eq!(written(&outcome), expected);
        assert_eq!(serde_json::from_value::<Outcome>(expected).unwrap(), outcome);
    }
}
