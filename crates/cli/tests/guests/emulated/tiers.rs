//! A guest with a fast and a slow tier, booted once: Linux builds its tiers from HMAT.

use std::sync::LazyLock;

use super::lab::{Answer, Lab, assert_near, is_long_or_not_run, rounds};

const FAST_NS: f64 = 100.0;
const SLOW_NS: f64 = 300.0;

/// Caches keep most of the kernel's own accesses from costing as much as those to memory.
const ARGUMENTS: [&str; 8] = [
    "--kernel",
    "backports",
    "--cpus",
    "1",
    "--emulate-cache",
    "32K,256K@4",
    "--emulate-tiers",
    "256M@100ns,20G/s,256M@300ns,10G/s",
];

const SCRIPT: &str = "
echo '== tiers'
for tier in /sys/devices/virtual/memory_tiering/memory_tier*; do
    echo \"${tier##*memory_tier}: $(cat $tier/nodelist)\"
done
echo '== topology'
numalab topology
echo 0 > /proc/sys/kernel/numa_balancing
echo '== ticks'
ticks() { cut -d ' ' -f 1 /proc/uptime; sed -n 's/^LOC: *\\([0-9]*\\).*/\\1/p' /proc/interrupts; }
ticks
numalab study probe tiering --size 8M --hot 1M --time 2s > /dev/null
ticks
echo '== slow'
numalab bind --numa=1 -- CHASE 0 0 2 4k 1 10
for balancing in 0 2; do
    echo \"== balancing $balancing\"
    numalab knobs run numa_balancing=$balancing -- \\
        numalab study probe tiering --size 8M --hot 1M --time 8s --format json
done
# DAMON looks at samples: now and then it finds nothing for seconds.
for attempt in 1 2; do
    echo \"== damon $attempt\"
    numalab knobs run numa_balancing=0 damon_migrate=hot -- \\
        numalab study probe tiering --size 8M --hot 1M --time 6s --format json
done
# DAMON does not see accesses to what stays in the TLB.
for attempt in 1 2; do
    echo \"== cold $attempt\"
    numalab knobs run numa_balancing=0 damon_migrate=cold -- \\
        numalab study probe tiering --size 64M --hot 16M --share 100 --place first-touch --time 6s \\
            --format json
done
echo '== weights'
numalab bind --policy weighted --numa=auto --weights auto --quiet -- \\
    sh -c 'cat /sys/kernel/mm/mempolicy/weighted_interleave/*'
echo '== weights afterwards'
cat /sys/kernel/mm/mempolicy/weighted_interleave/*
";

/// Returns the guest, booted by the first test that needs it.
fn booted() -> Option<&'static Answer> {
    static BOOTED: LazyLock<Option<Answer>> =
        LazyLock::new(|| Lab::open().guest(&ARGUMENTS, SCRIPT));
    BOOTED.as_ref()
}

#[test]
fn linux_makes_the_tiers_that_numalab_foretells() {
    let Some(answer) = booted() else { return };
    let mut tiers = answer.part("tiers");
    tiers.sort_unstable();
    assert_eq!(tiers, ["27: 1", "4: 0"]);
    let topology = answer.part("topology");
    let rows: Vec<Vec<&str>> = topology
        .iter()
        .skip_while(|line| **line != "Memory tiers")
        .skip(3)
        .take(2)
        .map(|row| row.split_whitespace().collect())
        .collect();
    let foretold = numalab_formats::tiers::parse(ARGUMENTS[7]).expect("tiers").machine(1);
    for (row, tier) in rows.iter().zip(foretold.expect("a machine").tiers) {
        assert_eq!(row[..2], [tier.id.to_string(), tier.nodes.to_string()], "{topology:?}");
    }
    assert_eq!(rows.iter().map(|row| row[3]).collect::<Vec<_>>(), ["100.0", "300.0"]);
}

#[test]
fn memory_of_the_slow_tier_has_the_requested_cost() {
    let Some(answer) = booted() else { return };
    let (pages, ns) = &rounds(&answer.part("slow"))[0];
    assert_eq!(pages.keys().copied().collect::<Vec<_>>(), [1]);
    assert_near(*ns, SLOW_NS, 0.02, "the slow tier");
    assert!(*ns > FAST_NS);
}

/// Debian's kernels tick every 4 ms on a busy CPU.
#[test]
fn timers_are_on_time_while_every_load_is_charged() {
    let Some(answer) = booted() else { return };
    let ticks: Vec<f64> = answer.part("ticks").iter().map(|n| n.parse().unwrap()).collect();
    let [begun_s, before, ended_s, after] = ticks[..] else { panic!("{ticks:?}") };
    assert_near(after - before, (ended_s - begun_s) * 250.0, 0.02, "ticks");
}

/// Returns the figures of a probe in a part.
pub fn probed(answer: &Answer, part: &str) -> impl Fn(&str) -> f64 {
    figures(serde_json::from_str(&answer.part(part).join("\n")).expect("JSON"))
}

/// Returns the figures of a probe or a sample by name.
pub fn figures(value: serde_json::Value) -> impl Fn(&str) -> f64 {
    move |name| {
        let mut of = value["readings"].as_array().expect("readings").iter();
        let reading = of.find(|reading| reading["metric"] == name);
        reading
            .and_then(|reading| reading["value"].as_f64())
            .unwrap_or_else(|| panic!("no {name}: {value}"))
    }
}

#[test]
fn hot_memory_stays_without_balancing_and_is_promoted_with_that_of_tiers() {
    let Some(answer) = booted() else { return };
    let stays = probed(answer, "balancing 0");
    assert_near(stays("latency-end"), SLOW_NS, 0.05, "without balancing");
    assert_eq!((stays("promoted"), stays("hot-fast")), (0.0, 0.0));
    let moves = probed(answer, "balancing 2");
    assert!(moves("promoted") >= 256.0, "{} pages promoted", moves("promoted"));
    assert!(moves("hot-fast") >= 90.0, "{} % of the hot pages", moves("hot-fast"));
    assert!(moves("latency-end") < SLOW_NS / 2.0, "{} ns", moves("latency-end"));
    for probe in [&stays as &dyn Fn(&str) -> f64, &moves] {
        assert_near(probe("predicted"), probe("latency"), 0.02, "what was counted, by its cost");
    }
}

#[test]
fn damon_moves_hot_memory_to_the_fast_tier_which_the_kernel_does_not_call_promotion() {
    let Some(answer) = booted() else { return };
    let probes = ["damon 1", "damon 2"].map(|part| probed(answer, part));
    for probe in &probes {
        assert_near(probe("predicted"), probe("latency"), 0.02, "what was counted, by its cost");
        assert_eq!(probe("promoted"), 0.0);
    }
    let best = probes.iter().min_by(|a, b| a("latency-end").total_cmp(&b("latency-end")));
    let best = best.expect("two");
    assert!(best("hot-fast") >= 90.0, "{} % of the hot pages", best("hot-fast"));
    assert!(best("latency-end") < SLOW_NS / 2.0, "{} ns", best("latency-end"));
}

#[test]
fn damon_moves_unused_memory_from_the_fast_tier_and_leaves_used_memory() {
    let Some(answer) = booted() else { return };
    let pages = |look: &serde_json::Value| look["slow_pages"].as_u64().expect("pages");
    let attempts = ["cold 1", "cold 2"].map(|part| {
        let attempt: serde_json::Value =
            serde_json::from_str(&answer.part(part).join("\n")).expect("JSON");
        let looks = attempt["looks"].as_array().expect("looks");
        assert_eq!(pages(&looks[0]), 0, "all of it was placed on the fast tier");
        let moved = pages(looks.last().expect("a look"));
        let figure = figures(attempt);
        assert_eq!(figure("demoted"), 0.0);
        (moved, figure("hot-fast"))
    });
    // 12288 of 16384 pages are unused; how many of them a run finds is left to DAMON's samples.
    let found = |&(moved, hot_fast): &(u64, f64)| moved >= 3072 && hot_fast >= 75.0;
    assert!(attempts.iter().any(found), "pages moved, % of the hot pages left: {attempts:?}");
}

#[test]
fn weights_by_bandwidth_are_set_for_a_command_and_put_back() {
    let Some(answer) = booted() else { return };
    assert_eq!(answer.part("weights"), ["2", "1"]);
    assert_eq!(answer.part("weights afterwards"), ["1", "1"]);
}

/// Tiers with so little bandwidth that a core with many loads in flight uses it up.
const NARROW: [&str; 2] = ["256M@80ns,2G/s,256M@90ns,1G/s", "--emulate-stages=load,core"];

const INDEPENDENT: &str = "
for weights in 1:0 2:1; do
    echo \"== weights $weights\"
    [ $weights = 1:0 ] || by='bind --policy weighted --numa=auto --weights auto --quiet -- numalab'
    numalab $by study probe tiering --size 2M --heat uniform --place first-touch --access independent \\
        --time 100ms --format json
done
";

#[test]
fn independent_accesses_reach_the_bandwidth_of_one_tier_and_interleaved_that_of_both() {
    let narrow: Vec<&str> = ARGUMENTS[..7].iter().copied().chain(NARROW).collect();
    let Some(answer) = Lab::open().guest(&narrow, INDEPENDENT) else { return };
    for (part, gb_per_s, fast) in [("weights 1:0", 2.0, 100.0), ("weights 2:1", 3.0, 66.7)] {
        let probe = probed(&answer, part);
        assert_near(probe("bandwidth"), gb_per_s, 0.05, part);
        assert_near(probe("fast-accesses"), fast, 0.02, part);
        assert_near(probe("predicted"), probe("latency"), 0.05, "what was counted, by its cost");
    }
}

/// One block with the kernels of `tiering-kernels`: Linux before 6.10 builds no tiers from HMAT.
#[test]
fn a_kernel_without_tiers_is_compared_with_one_that_makes_them() {
    if !is_long_or_not_run("a block of a study of two kernels") {
        return;
    }
    let lab = Lab::open();
    lab.numalab(&["guest", "image", "--fetch-qemu"]);
    let results = lab.path("results");
    let parent = results.to_str().expect("UTF-8");
    let run = lab.numalab(&["study", "run", "tiering-kernels", "--blocks", "1", "-o", parent]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let directory = std::fs::read_dir(&results).expect("there").next().expect("one").expect("read");
    let journal = std::fs::read_to_string(directory.path().join("journal.jsonl")).expect("there");
    let entries = journal.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let samples: Vec<serde_json::Value> =
        entries.filter(|entry: &serde_json::Value| entry["entry"] == "sample").collect();
    for (treatment, ns) in [(0, SLOW_NS), (1, FAST_NS)] {
        let sample = samples.iter().find(|sample| sample["treatment"] == treatment);
        let sample = figures(sample.expect("a sample").clone());
        assert_near(sample("latency-end"), ns, 0.05, "the kernel's tier");
        assert_near(sample("predicted"), sample("latency"), 0.05, "what was counted, by its cost");
        assert_eq!(sample("promoted") > 0.0, treatment == 1);
    }
}

/// The fast tier has no room for the working set in addition to the system's memory.
const FULL: &str = "128M@100ns,256M@300ns";

const DEMOTION: &str = "
for demotion in false true; do
    echo \"== demotion $demotion\"
    # Without demotion kswapd gives up for good: reclaiming a little wakes it.
    [ $demotion = false ] || wakes=memory_reclaim=1M
    numalab knobs run numa_balancing=2 demotion=$demotion $wakes -- \\
        numalab study probe tiering --size 96M --hot 2M --share 100 --place first-touch --time 6s \\
        --format json
done
";

#[test]
fn hot_memory_reaches_a_full_fast_tier_where_cold_memory_is_demoted() {
    if !is_long_or_not_run("a guest with a full fast tier") {
        return;
    }
    let full: Vec<&str> = ARGUMENTS[..7].iter().copied().chain([FULL]).collect();
    let Some(answer) = Lab::open().guest(&full, DEMOTION) else { return };
    let stays = probed(&answer, "demotion false");
    assert_near(stays("latency-end"), SLOW_NS, 0.05, "without demotion");
    assert_eq!(stays("demoted"), 0.0);
    let moves = probed(&answer, "demotion true");
    assert!(moves("demoted") >= 64.0, "{} pages demoted", moves("demoted"));
    assert!(moves("hot-fast") >= 90.0, "{} % of the hot pages", moves("hot-fast"));
    assert_near(moves("latency-end"), FAST_NS, 0.1, "with demotion");
    for probe in [&stays as &dyn Fn(&str) -> f64, &moves] {
        assert_near(probe("predicted"), probe("latency"), 0.1, "what was counted, by its cost");
    }
}
