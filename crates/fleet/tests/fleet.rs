//! Fleets derived from one real run: every host with its own noise, some with planted faults.

mod simulated;
#[path = "fleet/store.rs"]
mod store;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use numalab_fleet::{Runs, Store};
use numalab_page::Style;
use numalab_results::Report;
use numalab_results::fleet::page::FleetReport;
use numalab_results::fleet::{Analysis, Scope, analyse};
use simulated::{Fault, Fleet};

fn analysed(fleet: &Fleet, directory: &Path) -> Analysis {
    let raw = directory.join("hosts");
    fleet.write(&raw);
    let store = directory.join("fleet.jsonl");
    let begun = Instant::now();
    let collected = Runs::find(&raw).unwrap().collect(&store).unwrap();
    assert_eq!((collected.read, collected.failed.len()), (fleet.hosts, 0), "{collected:?}");
    let (keys, hosts) = Store::open(&store).unwrap().latest();
    let analysis = analyse(&keys, &hosts);
    let shown =
        FleetReport { name: "fleet".to_owned(), analysis: analysis.clone() }.page().html().len();
    println!("{} hosts to a page of {shown} bytes in {:?}", fleet.hosts, begun.elapsed());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!("peak memory: {}", peak.trim_start_matches("VmHWM:").trim());
    let kept = std::fs::metadata(&store).unwrap().len();
    println!("{} bytes kept per host", kept / fleet.hosts as u64);
    assert!(kept / (fleet.hosts as u64) < 50 << 10);
    analysis
}

fn claimed(analysis: &Analysis) -> BTreeSet<&str> {
    analysis.claims.iter().map(|claim| claim.host.as_str()).collect()
}

/// Returns the number of hosts: 150, or 10,000 with `NUMALAB_LONG=1`.
fn size() -> usize {
    let long = std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1");
    if long { 10_000 } else { 150 }
}

#[test]
fn planted_faults_of_five_deviations_are_found_and_few_others() {
    let directory = tempfile::tempdir().unwrap();
    let mut fleet = Fleet::new(size(), 7);
    for fault in 0..size() / 50 {
        let shift = 5.0 + (fault % 4) as f64;
        fleet.plant(fault * 47 + 3, Fault::MemoryNode { node: 1, shift });
    }
    let analysis = analysed(&fleet, directory.path());
    let (planted, found) = (fleet.planted(), claimed(&analysis));
    let missed: Vec<&String> =
        planted.iter().filter(|host| !found.contains(host.as_str())).collect();
    assert!(missed.is_empty(), "missed {missed:?} of {}", planted.len());
    let wrong = found.iter().filter(|host| !planted.contains(**host)).count();
    println!("{} planted, {} claimed, {wrong} falsely", planted.len(), found.len());
    // 5 % false claims are expected; in a small fleet one more is not significant.
    assert!(wrong * 20 <= found.len() + 20, "{wrong} of {} claims are false", found.len());
    for claim in analysis.claims.iter().filter(|claim| planted.contains(&claim.host)) {
        let is_place = matches!(
            claim.scope,
            Scope::MemoryNode(1) | Scope::Figure(_) | Scope::Host | Scope::Package(_)
        );
        assert!(is_place && claim.score > 0.0, "{claim:?}");
    }
    let nodes = analysis.claims.iter().filter(|claim| claim.scope == Scope::MemoryNode(1)).count();
    assert!(nodes * 2 > planted.len(), "most are laid to node 1: {nodes}");
    for point in &analysis.detection {
        println!(
            "shift {}: units {:?}, single figures {:?}",
            point.shift, point.units, point.figures
        );
    }
    let at = |shift: f64| analysis.detection.iter().find(|point| point.shift == shift).unwrap();
    assert!(at(5.0).units > Some(0.8) && at(6.0).units > Some(0.99), "{:?}", analysis.detection);
    assert!(at(8.0).figures > Some(0.85), "{:?}", analysis.detection);
}

#[test]
fn a_fleet_of_equal_hosts_has_almost_no_outliers() {
    let directory = tempfile::tempdir().unwrap();
    let analysis = analysed(&Fleet::new(100, 11), directory.path());
    // The rate is an expectation: 5 % of such fleets have an outlier at all.
    assert!(claimed(&analysis).len() <= 1, "{:?}", analysis.claims);
    assert!(analysis.effects.is_empty(), "{:?}", analysis.effects);
    let text = FleetReport { name: "test".to_owned(), analysis: analysis.clone() }
        .page()
        .terminal(Style::Plain);
    assert!(text.contains("100 hosts"), "{text}");
}

#[test]
fn a_node_with_slow_memory_differs_from_a_setting_that_slows_a_group() {
    let directory = tempfile::tempdir().unwrap();
    let mut fleet = Fleet::new(80, 3);
    fleet.plant(5, Fault::MemoryNode { node: 1, shift: 12.0 });
    for host in 60..70 {
        fleet
            .plant(host, Fault::Setting { name: "thp_enabled", value: "never", family_shift: 3.0 });
    }
    let analysis = analysed(&fleet, directory.path());
    let claim = analysis.claims.iter().find(|claim| claim.host == "host00005").unwrap();
    assert_eq!(claim.scope, Scope::MemoryNode(1));
    let kinds = analysis.halves.first().expect("the setting divides the hosts");
    let names = ("thp_enabled".to_owned(), "never".to_owned(), "madvise".to_owned());
    assert_eq!((kinds.setting.as_ref(), kinds.worse.len()), (Some(&names), 10));
    let text = FleetReport { name: "test".to_owned(), analysis: analysis.clone() }
        .page()
        .terminal(Style::Plain);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("thp_enabled never instead of madvise"), "{text}");
    assert!(words.contains("No other setting is associated"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn collecting_again_reads_only_changed_files() {
    let directory = tempfile::tempdir().unwrap();
    let raw = directory.path().join("hosts");
    let fleet = Fleet::new(12, 5);
    fleet.write(&raw);
    let store = directory.path().join("fleet.jsonl");
    assert_eq!(Runs::find(&raw).unwrap().collect(&store).unwrap().read, 12);
    let again = Runs::find(&raw).unwrap().collect(&store).unwrap();
    assert_eq!((again.read, again.unchanged), (0, 12));
    fleet.write_host(&raw, 3, 99);
    std::fs::write(raw.join("host00004/measure-1/run.json"), "{").unwrap();
    let third = Runs::find(&raw).unwrap().collect(&store).unwrap();
    assert_eq!((third.read, third.unchanged, third.failed.len()), (1, 10, 1));
    assert!(third.failed[0].starts_with("host00004/measure-1: run.json"), "{third:?}");
    // Runs collected earlier stay.
    assert_eq!(Store::open(&store).unwrap().latest().1.len(), 12);
}

#[test]
fn hosts_of_another_shape_have_no_peers_and_are_named_with_the_difference() {
    let directory = tempfile::tempdir().unwrap();
    let mut fleet = Fleet::new(30, 9);
    fleet.plant(8, Fault::Model("Another Processor"));
    let analysis = analysed(&fleet, directory.path());
    assert_eq!(analysis.untested.len(), 1);
    let untested = &analysis.untested[0];
    assert_eq!((untested.host.as_str(), untested.alike, untested.needed), ("host00008", 1, 10));
    let [differing] = &untested.differing[..] else { panic!("{untested:?}") };
    let (name, value) = (differing.name.as_str(), differing.value.as_str());
    assert_eq!((name, value), ("cpu_model", "Another Processor"));
}

/// Such a host was not mentioned.
#[test]
fn a_run_without_its_description_is_unreadable_and_not_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let raw = directory.path().join("hosts");
    Fleet::new(3, 1).write(&raw);
    std::fs::remove_file(raw.join("host00001/measure-1/run.json")).unwrap();
    let store = directory.path().join("fleet.jsonl");
    let collected = Runs::find(&raw).unwrap().collect(&store).unwrap();
    assert_eq!((collected.read, collected.failed.len()), (2, 1), "{collected:?}");
    assert!(collected.failed[0].starts_with("host00001/measure-1: run.json: "), "{collected:?}");
}

#[test]
fn a_run_with_a_file_that_never_ends_is_unreadable_and_the_others_are_collected() {
    let directory = tempfile::tempdir().unwrap();
    let raw = directory.path().join("hosts");
    Fleet::new(4, 1).write(&raw);
    let mut runs = walk(&raw);
    runs.sort();
    let replace = |file: &Path| std::fs::remove_file(file).unwrap();
    replace(&runs[0]);
    std::os::unix::fs::symlink("/dev/zero", &runs[0]).unwrap();
    replace(&runs[1]);
    let made = std::process::Command::new("mkfifo").arg(&runs[1]).status().unwrap();
    assert!(made.success());
    let file = std::fs::File::options().write(true).open(&runs[2]).unwrap();
    file.set_len(10 << 30).unwrap();
    let store = directory.path().join("fleet.jsonl");
    let collected = Runs::find(&raw).unwrap().collect(&store).unwrap();
    assert_eq!((collected.read, collected.failed.len()), (1, 3), "{collected:?}");
    let said = format!("{:?}", collected.failed);
    for why in ["is a device", "is a pipe", "more than 536870912 bytes"] {
        assert!(said.contains(why), "{said}");
    }
}

/// Returns the sample files below a directory.
fn walk(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => walk(&path),
            false if path.ends_with("samples.csv") => vec![path],
            false => Vec::new(),
        })
        .collect()
}
