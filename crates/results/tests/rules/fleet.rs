//! Hosts of a fleet: peers, faults with their scope and size, settings, kinds.

use std::collections::BTreeMap;

use numalab_record::Metric;
use numalab_results::fleet::{
    Analysis, Claim, Different, Differing, Family, FigureKey, HostRun, Scope, Unfinished, Untested,
    analyse,
};
use numalab_stats::Rng;

/// Returns eight latencies and eight bandwidths, half of each for either node's memory; node 0 is
/// in package 0.
fn keys() -> Vec<FigureKey> {
    let key = |at: u32| FigureKey {
        cell: format!("cell{at}"),
        metric: if at < 8 { Metric::Latency } else { Metric::Bandwidth },
        family: if at < 8 { Family::MemoryLatency } else { Family::Bandwidth },
        memory_node: Some(at % 2),
        package: Some(at % 2),
    };
    (0..16).map(key).collect()
}

/// Simulates hosts that differ by about 1 %, with independent runs of each.
fn fleet(hosts: usize) -> Vec<HostRun> {
    let mut rng = Rng::new(11);
    let mut medians = || -> Vec<(usize, f64)> {
        let noise = |rng: &mut Rng| (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0;
        (0..16).map(|at| (at, 100.0 * (0.01 * noise(&mut rng)).exp())).collect()
    };
    let host = |at: usize| HostRun {
        host: format!("h{at:02}"),
        run: "run".to_owned(),
        started_unix_ms: 0,
        planned: 16,
        ended: 16,
        facts: BTreeMap::from([("cpu_model".to_owned(), "A".to_owned())]),
        medians: medians(),
        medians_before: Some(medians()),
    };
    (0..hosts).map(host).collect()
}

/// Multiplies figures of a host's last run, and of the one before it if `again`.
fn change(host: &mut HostRun, factor: f64, again: bool, of: impl Fn(&FigureKey) -> bool) {
    let keys = keys();
    let last = host.medians.iter_mut();
    let before = host.medians_before.iter_mut().flatten().filter(|_| again);
    for (key, value) in last.chain(before).filter(|(key, _)| of(&keys[*key])) {
        let _ = key;
        *value *= factor;
    }
}

fn found(hosts: &[HostRun]) -> Analysis {
    analyse(&keys(), hosts)
}

fn is_latency_of_node_1(key: &FigureKey) -> bool {
    key.family == Family::MemoryLatency && key.memory_node == Some(1)
}

fn only_claim(analysis: &Analysis) -> &Claim {
    let [claim] = &analysis.claims[..] else { panic!("one claim: {:?}", analysis.claims) };
    claim
}

#[test]
fn slow_memory_of_one_node_is_claimed_with_its_node_size_and_peers() {
    let mut hosts = fleet(40);
    change(&mut hosts[7], 1.3, true, is_latency_of_node_1);
    let analysis = found(&hosts);
    let claim = only_claim(&analysis);
    assert_eq!((claim.host.as_str(), claim.family), ("h07", Family::MemoryLatency));
    assert!(matches!(claim.scope, Scope::MemoryNode(1) | Scope::Package(1)), "{claim:?}");
    assert_eq!((claim.figures, claim.peers, claim.seen_again), (4, 39, Some(true)));
    assert!((claim.change_percent - 30.0).abs() < 2.5, "{claim:?}");
    assert!(claim.score > 8.0 && claim.p < 1e-4 && claim.q <= 0.05, "{claim:?}");
}

#[test]
fn a_bandwidth_that_falls_is_worse_and_its_change_is_below_zero() {
    let mut hosts = fleet(40);
    change(&mut hosts[3], 0.75, true, |key| key.family == Family::Bandwidth);
    let analysis = found(&hosts);
    let claim = only_claim(&analysis);
    assert_eq!(
        (claim.family, claim.scope.clone(), claim.figures),
        (Family::Bandwidth, Scope::Host, 8)
    );
    assert!(claim.score > 0.0 && (claim.change_percent + 25.0).abs() < 2.5, "{claim:?}");
}

#[test]
fn a_host_that_is_better_than_its_peers_is_named_with_a_score_below_zero() {
    let mut hosts = fleet(40);
    change(&mut hosts[3], 1.3, true, |key| key.family == Family::Bandwidth);
    let analysis = found(&hosts);
    let claim = only_claim(&analysis);
    assert!(claim.score < 0.0 && claim.change_percent > 25.0, "{claim:?}");
}

/// Simulates hosts with noise that is mostly common to all figures of a host: the score of one figure
/// is as high as that of all.
fn fleet_of_common_noise(hosts: usize) -> Vec<HostRun> {
    let mut rng = Rng::new(5);
    let mut hosts = fleet(hosts);
    for host in &mut hosts {
        let common = (0.03 * (rng.uniform() - 0.5)).exp();
        for (_, value) in host.medians.iter_mut().chain(host.medians_before.iter_mut().flatten()) {
            *value = 100.0 * common * (*value / 100.0).powf(0.3);
        }
    }
    hosts
}

#[test]
fn a_host_that_is_slower_everywhere_is_named_as_a_host_and_a_slow_node_as_a_node() {
    let named = |of: fn(&FigureKey) -> bool| {
        let mut hosts = fleet_of_common_noise(40);
        change(&mut hosts[20], 1.3, true, of);
        let claims = found(&hosts).claims;
        claims.into_iter().map(|of| (of.host, of.scope, of.figures)).collect::<Vec<_>>()
    };
    let host = "h20".to_owned();
    let all = named(|key| key.family == Family::MemoryLatency);
    assert_eq!(all, [(host.clone(), Scope::Host, 8)]);
    let [(of, part, 4)] = &named(is_latency_of_node_1)[..] else { panic!("one part") };
    assert!(*of == host && matches!(part, Scope::MemoryNode(1) | Scope::Package(1)), "{part:?}");
    assert_eq!(named(|key| key.cell == "cell4"), [(host, Scope::Figure("cell4".to_owned()), 1)]);
}

/// Slower memory of one node raises the mean of all figures, and a smaller change of all figures is
/// not the same fault.
#[test]
fn a_fault_of_one_node_is_not_hidden_by_a_smaller_change_of_the_whole_host() {
    let mut hosts = fleet_of_common_noise(40);
    change(&mut hosts[20], 1.08, true, |key| key.family == Family::MemoryLatency);
    change(&mut hosts[20], 1.3, true, is_latency_of_node_1);
    let analysis = found(&hosts);
    let first = analysis.claims.first().expect("a claim");
    assert!(
        matches!(first.scope, Scope::MemoryNode(1) | Scope::Package(1)),
        "{:?}",
        analysis.claims
    );
    assert!((first.change_percent - 40.0).abs() < 4.0, "{first:?}");
}

#[test]
fn a_fault_that_the_run_before_does_not_show_is_not_seen_again() {
    let mut hosts = fleet(40);
    change(&mut hosts[7], 1.3, false, is_latency_of_node_1);
    assert_eq!(only_claim(&found(&hosts)).seen_again, Some(false));
    hosts[7].medians_before = None;
    assert_eq!(only_claim(&found(&hosts)).seen_again, None);
}

#[test]
fn a_single_figure_that_is_off_is_claimed_by_its_cell() {
    let mut hosts = fleet(40);
    change(&mut hosts[5], 1.6, true, |key| key.cell == "cell4");
    let analysis = found(&hosts);
    let claim = only_claim(&analysis);
    assert_eq!((&claim.scope, claim.figures), (&Scope::Figure("cell4".to_owned()), 1));
}

#[test]
fn ten_hosts_are_peers_and_nine_are_too_few() {
    assert!(found(&fleet(10)).tests > 0);
    let nine = found(&fleet(9));
    assert_eq!((nine.tests, nine.untested.len(), nine.hosts), (0, 9, 9));
    assert!(nine.detection.iter().all(|point| point.units.is_none() && point.figures.is_none()));
}

#[test]
fn a_host_of_another_shape_is_untested_and_says_how_it_differs_from_most() {
    let mut hosts = fleet(14);
    for host in &mut hosts[12..] {
        host.facts.insert("cpu_model".to_owned(), "B".to_owned());
        host.facts.insert("topology.nodes".to_owned(), "8".to_owned());
        host.facts.insert("kernel".to_owned(), "6.12".to_owned());
    }
    let differing = |name: &str, value: &str, usual: &str| Differing {
        name: name.to_owned(),
        value: value.to_owned(),
        usual: usual.to_owned(),
    };
    let differing = vec![differing("cpu_model", "B", "A"), differing("topology.nodes", "8", "")];
    let untested = |host: &str| Untested {
        host: host.to_owned(),
        alike: 2,
        needed: 10,
        differing: differing.clone(),
    };
    assert_eq!(found(&hosts).untested, [untested("h12"), untested("h13")]);
}

#[test]
fn a_run_that_did_not_end_is_listed_with_how_far_it_came() {
    let mut hosts = fleet(2);
    hosts[1].ended = 15;
    let unfinished = Unfinished { host: "h01".to_owned(), planned: 16, ended: 15 };
    assert_eq!(found(&hosts).unfinished, [unfinished]);
}

#[test]
fn settings_of_a_claimed_host_are_named_where_less_than_a_fifth_has_them() {
    let mut hosts = fleet(40);
    change(&mut hosts[0], 1.3, true, is_latency_of_node_1);
    for (at, host) in hosts.iter_mut().enumerate() {
        let mut fact = |name: &str, value: String| host.facts.insert(name.to_owned(), value);
        fact("thp_enabled", if at < 7 { "never" } else { "always" }.to_owned());
        fact("governor", if at < 8 { "powersave" } else { "performance" }.to_owned());
        fact("serial", format!("{at:08}"));
        if at == 39 {
            fact("bios", "odd, of a host that is well".to_owned());
        } else {
            fact("bios", "usual".to_owned());
        }
    }
    let different = Different {
        host: "h00".to_owned(),
        name: "thp_enabled".to_owned(),
        value: "never".to_owned(),
        usual: "always".to_owned(),
        hosts: 7,
    };
    assert_eq!(found(&hosts).different, [different]);
}

/// Analyses 40 hosts, the last `hosts` of which have another governor and other latencies.
fn with_governor(hosts: usize, factor: f64) -> Analysis {
    let mut fleet = fleet(40);
    for (at, host) in fleet.iter_mut().enumerate() {
        let is_slow = at >= 40 - hosts;
        let governor = if is_slow { "powersave" } else { "performance" };
        host.facts.insert("governor".to_owned(), governor.to_owned());
        if is_slow {
            change(host, factor, true, |key| key.family == Family::MemoryLatency);
        }
    }
    found(&fleet)
}

#[test]
fn a_setting_that_goes_with_other_figures_on_five_hosts_is_named() {
    let analysis = with_governor(5, 1.05);
    let [effect] = &analysis.effects[..] else { panic!("{:?}", analysis.effects) };
    assert_eq!((effect.name.as_str(), effect.value.as_str()), ("governor", "powersave"));
    assert_eq!((effect.usual.as_str(), effect.hosts), ("performance", 5));
    assert_eq!(effect.family, Family::MemoryLatency);
    assert!((effect.change_percent - 5.0).abs() < 1.0 && effect.q < 0.05, "{effect:?}");
    assert!(with_governor(4, 1.05).effects.is_empty(), "four hosts tell nothing");
    assert!(with_governor(5, 1.0).effects.is_empty(), "nothing goes with it");
}

/// Analyses 40 hosts, the first `slow` of which have slower memory.
fn of_two_kinds(slow: usize) -> Analysis {
    let mut hosts = fleet(40);
    let slower = |host| change(host, 1.5, true, |key| key.family == Family::MemoryLatency);
    hosts[..slow].iter_mut().for_each(slower);
    found(&hosts)
}

#[test]
fn hosts_are_of_two_kinds_where_a_third_are_of_each_and_each_kind_is_tested_by_itself() {
    let analysis = of_two_kinds(14);
    let [halves] = &analysis.halves[..] else { panic!("{:?}", analysis.halves) };
    assert_eq!((halves.worse.len(), halves.better, halves.setting.is_none()), (14, 26, true));
    assert_eq!((halves.worse[0].as_str(), halves.worse[13].as_str()), ("h00", "h13"));
    assert!((halves.change_percent - 50.0).abs() < 2.0, "{halves:?}");
    assert!(analysis.claims.is_empty(), "{:?}", analysis.claims);
}

#[test]
fn fewer_hosts_than_a_third_are_outliers_and_drag_none_of_the_others_along() {
    for slow in [9, 13] {
        let analysis = of_two_kinds(slow);
        assert!(analysis.halves.is_empty(), "{slow}: {:?}", analysis.halves);
        let mut named: Vec<&str> = analysis.claims.iter().map(|of| of.host.as_str()).collect();
        named.sort_unstable();
        named.dedup();
        let expected: Vec<String> = (0..slow).map(|at| format!("h{at:02}")).collect();
        assert_eq!(named, expected);
    }
}

/// Neither family alone shows three kinds: its larger group has most of the hosts.
#[test]
fn kinds_that_differ_in_different_families_are_separated_and_no_host_is_named() {
    let mut hosts = fleet(60);
    for host in &mut hosts[..18] {
        change(host, 1.3, true, |key| key.family == Family::MemoryLatency);
    }
    for host in &mut hosts[18..36] {
        change(host, 0.8, true, |key| key.family == Family::Bandwidth);
    }
    let analysis = found(&hosts);
    let kinds: Vec<(Family, usize, usize)> =
        analysis.halves.iter().map(|of| (of.family, of.worse.len(), of.better)).collect();
    assert_eq!(kinds, [(Family::Bandwidth, 18, 24), (Family::MemoryLatency, 18, 24)]);
    assert!((analysis.halves[0].change_percent + 20.0).abs() < 2.0, "{:?}", analysis.halves);
    assert!(analysis.claims.is_empty(), "{:?}", analysis.claims);
}

#[test]
fn hosts_of_small_kinds_are_untested_with_the_size_of_their_own_kind() {
    let mut hosts = fleet(32);
    for (at, host) in hosts[..16].iter_mut().enumerate() {
        let factor = if at < 8 { 1.5 } else { 2.0 };
        change(host, factor, true, |key| key.family == Family::MemoryLatency);
    }
    let analysis = found(&hosts);
    assert_eq!(analysis.halves.len(), 2, "{:?}", analysis.halves);
    let alike: Vec<usize> = analysis.untested.iter().map(|host| host.alike).collect();
    assert_eq!(alike, [8; 16]);
}

#[test]
fn a_larger_shift_is_found_at_least_as_often() {
    let detection = found(&fleet(40)).detection;
    let shifts: Vec<f64> = detection.iter().map(|point| point.shift).collect();
    assert_eq!(shifts, [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    for pair in detection.windows(2) {
        assert!(pair[0].units <= pair[1].units && pair[0].figures <= pair[1].figures, "{pair:?}");
    }
    let last = detection.last().unwrap();
    assert!(last.units > Some(0.9) && detection[0].figures < Some(0.5), "{detection:?}");
}

#[test]
fn scopes_are_named_as_an_administrator_does() {
    let names = [
        Scope::Host,
        Scope::Package(1),
        Scope::MemoryNode(3),
        Scope::Figure("latency/random".to_owned()),
    ]
    .map(|scope| scope.to_string());
    assert_eq!(names, ["host", "package 1", "memory of node 3", "latency/random"]);
}
