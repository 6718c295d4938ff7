//! `numalab machine selftest --real-nodes` in the guest of four nodes.

use serde_json::Value;

use super::guest::{DISTANCES, LOCAL_NS, booted};
use super::lab::assert_near;
use crate::schemas;

fn found() -> Option<Value> {
    let booted = booted()?;
    Some(schemas::document(&booted.answer.part("selftest").join("\n")))
}

fn checked<'a>(found: &'a Value, check: &str) -> &'a Value {
    let checks = found["checks"].as_array().expect("checks");
    checks.iter().find(|checked| checked["check"] == check).expect(check)
}

#[test]
fn a_machine_of_four_nodes_passes_every_check_but_a_guest_within_the_guest() {
    let Some(found) = found() else { return };
    let outcomes = found["checks"].as_array().expect("checks").iter();
    let not_passed: Vec<&Value> =
        outcomes.filter(|checked| checked["outcome"] != "passed").collect();
    assert_eq!(not_passed.len(), 1, "{not_passed:#?}");
    let guest = checked(&found, "guest");
    assert_eq!(guest["outcome"], "not-checked");
    let reason = guest["reason"].as_str().expect("a reason");
    assert!(reason.contains("qemu-system-x86"), "{reason}");
}

#[test]
fn every_node_has_its_pages_and_every_pair_the_latency_of_its_distance() {
    let Some(found) = found() else { return };
    for (check, pages) in [
        ("bound", 1024),
        ("first-touch", 1024),
        ("transparent-huge-pages", 2),
        ("reserved-huge-pages", 2),
    ] {
        let nodes = checked(&found, check)["found"]["nodes"].as_array().expect("nodes").iter();
        let there: Vec<(u64, u64)> = nodes
            .map(|node| (node["node"].as_u64().unwrap(), node["on_node"].as_u64().unwrap()))
            .collect();
        assert_eq!(there, [0, 1, 2, 3].map(|node| (node, pages)), "{check}");
    }
    let claim = &checked(&found, "proof")["found"];
    assert_eq!((&claim["node"], &claim["claimed"]), (&0.into(), &3.into()));
    assert_eq!((&claim["pages"], &claim["refused"]), (&1024.into(), &1024.into()));
    let pairs = checked(&found, "matrix")["found"]["pairs"].as_array().expect("pairs");
    assert_eq!(pairs.len(), 16);
    for pair in pairs {
        let node = |end: &str| usize::try_from(pair[end].as_u64().expect("a node")).expect("small");
        let (from, to) = (node("from"), node("to"));
        let charged = LOCAL_NS * f64::from(DISTANCES[from][to]) / 10.0;
        let latency = pair["latency_ns"].as_f64().expect("a latency");
        assert_near(latency, charged, 0.03, &format!("node {from} to {to}"));
    }
}

#[test]
fn every_setting_is_as_before_the_self_test() {
    let Some(found) = found() else { return };
    let settings = checked(&found, "settings")["found"]["settings"].as_array().expect("settings");
    let names: Vec<&str> = settings.iter().map(|set| set["name"].as_str().unwrap()).collect();
    let pools = [0, 1, 2, 3].map(|node| format!("huge_2m_pages_node{node}"));
    let expected = pools.iter().map(String::as_str).chain(["numa_balancing"]);
    assert_eq!(names, expected.collect::<Vec<_>>());
    assert!(settings.iter().all(|set| set["before"] == set["after"]), "{settings:?}");
    let booted = booted().expect("as above");
    assert_eq!(booted.answer.part("put back"), ["0", "0"]);
}
