//! A guest with a fast and a slow tier, booted once: Linux makes its tiers of what HMAT says.

use std::sync::OnceLock;

use crate::lab::{Answer, Lab, assert_near, rounds};

const FAST_NS: f64 = 100.0;
const SLOW_NS: f64 = 300.0;

const ARGUMENTS: [&str; 6] =
    ["--kernel", "backports", "--cpus", "1", "--emulate-tiers", "256M@100ns,256M@300ns"];

const SCRIPT: &str = "
echo '== tiers'
for tier in /sys/devices/virtual/memory_tiering/memory_tier*; do
    echo \"${tier##*memory_tier}: $(cat $tier/nodelist)\"
done
echo '== topology'
numalab topology
echo 0 > /proc/sys/kernel/numa_balancing
echo '== slow'
numalab bind --numa=1 -- CHASE 0 0 2 4k 1 10
";

/// The guest, booted by the first test that asks.
fn booted() -> Option<&'static Answer> {
    static BOOTED: OnceLock<Option<Answer>> = OnceLock::new();
    BOOTED.get_or_init(|| Lab::open().guest(&ARGUMENTS, SCRIPT)).as_ref()
}

#[test]
fn linux_makes_the_tiers_that_numalab_foretells() {
    let Some(answer) = booted() else { return };
    let mut tiers = answer.part("tiers");
    tiers.sort_unstable();
    assert_eq!(tiers, ["13: 1", "4: 0"]);
    let topology = answer.part("topology");
    let rows: Vec<Vec<&str>> = topology
        .iter()
        .skip_while(|line| **line != "Memory tiers")
        .skip(3)
        .take(2)
        .map(|row| row.split_whitespace().collect())
        .collect();
    let foretold = numalab_formats::tiers::parse(ARGUMENTS[5]).expect("tiers").machine(1);
    for (row, tier) in rows.iter().zip(foretold.expect("a machine").tiers) {
        assert_eq!(row[..2], [tier.id.to_string(), tier.nodes.to_string()], "{topology:?}");
    }
    assert_eq!(rows.iter().map(|row| row[3]).collect::<Vec<_>>(), ["100.0", "300.0"]);
}

#[test]
fn memory_of_the_slow_tier_costs_what_it_was_said_to() {
    let Some(answer) = booted() else { return };
    let (pages, ns) = &rounds(&answer.part("slow"))[0];
    assert_eq!(pages.keys().copied().collect::<Vec<_>>(), [1]);
    assert_near(*ns, SLOW_NS, 0.02, "the slow tier");
    assert!(*ns > FAST_NS);
}
