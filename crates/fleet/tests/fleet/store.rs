//! The file of a fleet: refused contents, and concurrent collections.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;
use std::time::Duration;

use numalab_fleet::{FleetError, Runs, Store};

use crate::simulated::Fleet;

/// Collects `hosts` hosts below `name`.
fn collected(directory: &Path, name: &str, hosts: usize) -> std::path::PathBuf {
    let raw = directory.join(name);
    Fleet::new(hosts, 1).write(&raw);
    let store = directory.join("fleet.jsonl");
    assert_eq!(Runs::find(&raw).unwrap().collect(&store).unwrap().read, hosts);
    store
}

fn refused(path: &Path) -> FleetError {
    Store::open(path).unwrap_err()
}

#[test]
fn a_file_that_is_not_a_store_is_refused_and_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    assert!(matches!(refused(&path), FleetError::NothingCollected { .. }));
    let raw = directory.path().join("hosts");
    Fleet::new(1, 1).write(&raw);
    let later = "{\"schema\":\"numalab/fleet-store-3\",\"keys\":[]}\n";
    for (bytes, says) in [
        (&b"SQLite format 3\0\x10\0\x01\x01\xff"[..], "numalab fleet collect DIR"),
        (b"this is no store\n", "begins with `this is no store`, expected a fleet store"),
        (later.as_bytes(), "begins with `{\"schema\":\"numalab/fleet-store-3\""),
        (b"\n", "begins with ``"),
    ] {
        fs::write(&path, bytes).unwrap();
        assert!(refused(&path).to_string().contains(says), "{}", refused(&path));
        let error = Runs::find(&raw).unwrap().collect(&path).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn a_damaged_line_is_named_by_its_number() {
    let directory = tempfile::tempdir().unwrap();
    let store = collected(directory.path(), "hosts", 3);
    let text = fs::read_to_string(&store).unwrap();
    fs::write(&store, text.replacen("\"planned\":", "\"planned\":-", 2)).unwrap();
    let error = refused(&store).to_string();
    assert!(error.contains("fleet.jsonl: line 2: invalid value: integer `-"), "{error}");
    // A copy that was cut short ends within a line.
    fs::write(&store, &text[..text.len() - 30]).unwrap();
    let error = refused(&store).to_string();
    assert!(error.contains("line 4: EOF while parsing"), "{error}");
}

#[test]
fn keys_of_a_later_version_are_passed_over_and_stay() {
    let directory = tempfile::tempdir().unwrap();
    let store = collected(directory.path(), "hosts", 2);
    let text = fs::read_to_string(&store).unwrap();
    fs::write(&store, text.replace("\"metric\":\"bandwidth\"", "\"metric\":\"hops\"")).unwrap();
    let (keys, hosts) = Store::open(&store).unwrap().latest();
    assert!(keys.iter().all(|key| key.metric.name() != "bandwidth") && !keys.is_empty());
    for host in &hosts {
        // The medians of the others keep their keys.
        assert_eq!(host.medians.len(), keys.len());
        let largest = keys.iter().position(|key| key.cell == "c2c/cpu0/cpu7/home0").unwrap();
        let median = host.medians.iter().find(|(at, _)| *at == largest).unwrap().1;
        assert!((80.0..100.0).contains(&median), "{median}");
    }
    collected(directory.path(), "more/hosts", 3);
    assert!(fs::read_to_string(&store).unwrap().contains("\"metric\":\"hops\""));
}

#[test]
fn the_last_run_of_a_host_and_the_one_before_it_are_those_that_began_last() {
    let directory = tempfile::tempdir().unwrap();
    let raw = directory.path().join("hosts");
    let fleet = Fleet::new(1, 1);
    // The names are in another order than the start times.
    for (name, draw, started) in [("c", 1, 10), ("a", 2, 30), ("b", 3, 20)] {
        fleet.write_host(&raw, 0, draw);
        let run = raw.join("host00000/measure-1");
        let path = run.join("run.json");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("1795228980000", &started.to_string())).unwrap();
        fs::rename(&run, raw.join("host00000").join(name)).unwrap();
    }
    let store = directory.path().join("fleet.jsonl");
    Runs::find(&raw).unwrap().collect(&store).unwrap();
    let (_, hosts) = Store::open(&store).unwrap().latest();
    assert_eq!((hosts.len(), hosts[0].run.as_str()), (1, "host00000/a"));
    for name in ["a", "c"] {
        fs::remove_dir_all(raw.join("host00000").join(name)).unwrap();
    }
    let alone = directory.path().join("alone.jsonl");
    Runs::find(&raw).unwrap().collect(&alone).unwrap();
    let before = Store::open(&alone).unwrap().latest().1;
    assert_eq!(hosts[0].medians_before.as_ref(), Some(&before[0].medians));
    // Deleted runs stay in the store.
    Runs::find(&raw).unwrap().collect(&store).unwrap();
    assert_eq!(Store::open(&store).unwrap().latest().1, hosts);
}

#[test]
fn concurrent_collections_are_all_kept() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("fleet.jsonl");
    let raw: Vec<_> = (0..8).map(|at| directory.path().join(format!("raw{at}"))).collect();
    for (at, raw) in raw.iter().enumerate() {
        Fleet::new(8, 1).write_host(raw, at, 0);
    }
    thread::scope(|scope| {
        for raw in &raw {
            let collect = || Runs::find(raw).unwrap().collect(&store).unwrap();
            scope.spawn(move || assert_eq!(collect().read, 1));
        }
    });
    let hosts = Store::open(&store).unwrap().latest().1;
    let names: Vec<&str> = hosts.iter().map(|host| host.host.as_str()).collect();
    let expected: Vec<String> = (0..8).map(|at| format!("host0000{at}")).collect();
    assert_eq!(names, expected);
    // Only the store and the collected directories remain.
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1 + raw.len());
}

#[test]
fn a_run_that_was_copied_under_another_name_is_counted_once() {
    let directory = tempfile::tempdir().unwrap();
    let raw = directory.path().join("hosts");
    Fleet::new(2, 1).write(&raw);
    let copy = |from: &str, to: &str| {
        let (from, to) = (raw.join(from), raw.join(to));
        fs::create_dir_all(&to).unwrap();
        for file in fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    };
    copy("host00001/measure-1", "zz-old/measure-1");
    let collect = |name: &str| {
        let store = directory.path().join(name);
        let collected = Runs::find(&raw).unwrap().collect(&store).unwrap();
        let hosts = Store::open(&store).unwrap().latest().1;
        let copies: Vec<String> = collected.copies.iter().map(ToString::to_string).collect();
        (collected.read, copies, hosts.into_iter().map(|host| host.host).collect::<Vec<_>>())
    };
    let said = "zz-old/measure-1: has the start and the samples of host00001/measure-1: a copy, \
                which is not counted";
    let (read, copies, hosts) = collect("one.jsonl");
    assert_eq!((read, copies), (2, vec![said.to_owned()]));
    assert_eq!(hosts, ["host00000", "host00001"]);
    // A run that is in the store stays, whatever the names are.
    copy("host00000/measure-1", "a-new/measure-1");
    let (read, copies, hosts) = collect("one.jsonl");
    assert_eq!((read, copies.len()), (0, 2), "{copies:?}");
    assert_eq!(hosts, ["host00000", "host00001"]);
    assert_eq!(collect("two.jsonl").2, ["a-new", "host00001"]);
}

#[test]
fn a_collection_waits_for_another_one_and_continues_from_its_results() {
    let directory = tempfile::tempdir().unwrap();
    let store = collected(directory.path(), "hosts", 2);
    let held = File::open(&store).unwrap();
    held.lock().unwrap();
    let raw = directory.path().join("own");
    Fleet::new(3, 1).write(&raw);
    let waiting = thread::spawn({
        let (raw, store) = (raw.clone(), store.clone());
        move || Runs::find(&raw).unwrap().collect(&store).unwrap()
    });
    thread::sleep(Duration::from_millis(200));
    assert!(!waiting.is_finished());
    // The file that another collection of the same runs would leave.
    let written = directory.path().join("written.jsonl");
    Runs::find(&raw).unwrap().collect(&written).unwrap();
    fs::rename(&written, &store).unwrap();
    drop(held);
    let collected = waiting.join().unwrap();
    assert_eq!((collected.read, collected.unchanged), (0, 3));
}

#[test]
fn the_target_of_a_link_to_a_store_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let store = collected(directory.path(), "hosts", 1);
    let link = directory.path().join("link.jsonl");
    symlink(&store, &link).unwrap();
    let raw = directory.path().join("more");
    Fleet::new(2, 1).write(&raw);
    Runs::find(&raw).unwrap().collect(&link).unwrap();
    assert!(link.is_symlink());
    assert_eq!(Store::open(&store).unwrap().latest().1.len(), 2);
}
