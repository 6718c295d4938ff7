//! Three tiers, and a hot set that moves: what becomes hot is promoted, what is cold makes room.

use super::lab::{Lab, assert_near};
use super::tiers::figures;

const ARGUMENTS: [&str; 8] = [
    "--kernel",
    "backports",
    "--cpus",
    "1",
    "--emulate-cache",
    "32K,256K@4",
    "--emulate-tiers",
    "128M@100ns,64M@200ns,256M@400ns",
];

/// The working set fills the first two tiers, so that every promotion needs room; reclaiming a
/// little wakes kswapd, which demotes.
const SCRIPT: &str = "
echo '== moves'
numalab knobs run numa_balancing=2 demotion=true memory_reclaim=1M -- \\
    numalab study probe tiering --size 160M --hot 4M --share 100 --place first-touch \\
    --moves-every 3s --time 11s --format json
";

#[test]
fn a_hot_set_that_moves_is_promoted_and_cold_pages_are_demoted_between_three_tiers() {
    let Some(answer) = Lab::open().guest(&ARGUMENTS, SCRIPT) else { return };
    let probed: serde_json::Value =
        serde_json::from_str(&answer.part("moves").join("\n")).expect("JSON");
    let tiers: Vec<Vec<i64>> = probed["looks"]
        .as_array()
        .expect("looks")
        .iter()
        .map(|look| serde_json::from_value(look["tier_pages"].clone()).expect("a count a tier"))
        .collect();
    let changes = |tier: usize| tiers.windows(2).map(move |looks| looks[1][tier] - looks[0][tier]);
    assert!(changes(0).any(|pages| pages > 0), "nothing reaches the first tier: {tiers:?}");
    assert!(changes(1).any(|pages| pages < 0), "nothing leaves the second tier: {tiers:?}");
    assert!(changes(2).any(|pages| pages > 0), "nothing is demoted to the third: {tiers:?}");
    assert!(changes(2).any(|pages| pages < 0), "nothing is promoted from the third: {tiers:?}");
    let figure = figures(probed);
    for moved in ["promoted", "demoted"] {
        assert!(figure(moved) >= 64.0, "{} pages {moved}", figure(moved));
    }
    assert_near(figure("predicted"), figure("latency"), 0.03, "what was counted, by its cost");
}
