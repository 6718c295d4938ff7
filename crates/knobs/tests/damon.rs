//! DAMON's migration as a knob, on a tree of files.

#[path = "../../host/tests/tree/mod.rs"]
mod tree;

use numalab_record::NoEffect;
use numalab_record::profile::Hindrance;
use std::fs;
use std::path::Path;

use numalab_host::{Classed, ErrorClass, Root};
use numalab_knobs::{
    Acts, FileState, JOURNAL, Knob, KnobError, Tuning, WatchedRegion, restore_stale,
    watch_hindrance, watched_regions,
};

const THREADS: &str = "sys/kernel/mm/damon/admin/kdamonds";

/// A machine with a node with a cpu and a slower one without, on a kernel with DAMON.
struct Lab {
    top: tempfile::TempDir,
    root: Root,
}

impl Lab {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let root = Root::at(top.path());
        let lab = Self { top, root };
        lab.write("proc/sys/kernel/osrelease", "6.12.95\n");
        lab.write("sys/devices/system/cpu/online", "0\n");
        lab.write("sys/devices/system/cpu/cpu0/topology/core_id", "0\n");
        lab.write("sys/devices/system/memory/block_size_bytes", "8000000\n");
        for (node, cpus, tier) in [(0, "0", "memory_tier4"), (1, "", "memory_tier27")] {
            let directory = format!("sys/devices/system/node/node{node}");
            lab.write(&format!("{directory}/cpulist"), &format!("{cpus}\n"));
            lab.write(
                &format!("{directory}/meminfo"),
                &format!("Node {node} MemTotal: 262144 kB\n"),
            );
            for block in [2 * node, 2 * node + 1] {
                lab.write(&format!("{directory}/memory{block}/online"), "1\n");
            }
            let nodes = format!("sys/devices/virtual/memory_tiering/{tier}/nodelist");
            lab.write(&nodes, &format!("{node}\n"));
        }
        lab.write("sys/devices/system/node/node0/cpu0/online", "1\n");
        lab.write(&format!("{THREADS}/nr_kdamonds"), "0\n");
        lab
    }

    /// Creates the files that the kernel creates when the numbers of threads and schemes are
    /// written.
    fn with_thread(self, schemes: u32) -> Self {
        let context = "0/contexts/0";
        let mut files = vec!["0/state".to_owned(), "0/contexts/nr_contexts".to_owned()];
        for file in [
            "operations",
            "monitoring_attrs/intervals/sample_us",
            "monitoring_attrs/intervals/aggr_us",
            "targets/nr_targets",
            "targets/0/regions/nr_regions",
            "targets/0/regions/0/start",
            "targets/0/regions/0/end",
            "targets/0/regions/1/start",
            "targets/0/regions/1/end",
            "schemes/nr_schemes",
        ] {
            files.push(format!("{context}/{file}"));
        }
        for scheme in 0..schemes {
            let limits = ["sz", "nr_accesses", "age"].into_iter();
            let limits = limits.flat_map(|of| [format!("{of}/min"), format!("{of}/max")]);
            let patterns = limits.map(|limit| format!("access_pattern/{limit}"));
            let names = patterns.chain(["action".to_owned(), "target_nid".to_owned()]);
            files.extend(names.map(|name| format!("{context}/schemes/{scheme}/{name}")));
        }
        files.iter().for_each(|file| self.write(&format!("{THREADS}/{file}"), "\n"));
        self
    }

    fn path(&self) -> &Path {
        self.top.path()
    }

    fn write(&self, path: &str, text: &str) {
        tree::write(self.path(), path, text);
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path().join(THREADS).join(file)).unwrap().trim().to_owned()
    }

    fn knob(&self) -> Knob {
        Knob::find(&self.root, "damon_migrate").unwrap()
    }

    fn set(&self, tuning: &mut Tuning, value: &str) -> Result<String, KnobError> {
        tuning.set(&self.knob(), value).map(|applied| applied.found)
    }
}

#[test]
fn hot_memory_of_the_slow_tier_is_watched_and_has_the_fast_node_as_its_target() {
    let lab = Lab::new().with_thread(1);
    assert_eq!(lab.knob().state(&lab.root), FileState::Value("off".to_owned()));
    let mut tuning = Tuning::new(&lab.root).unwrap();
    assert_eq!(lab.set(&mut tuning, "hot").unwrap(), "hot");
    let scheme = |file: &str| lab.text(&format!("0/contexts/0/schemes/0/{file}"));
    assert_eq!((scheme("action"), scheme("target_nid")), ("migrate_hot".into(), "0".into()));
    assert_eq!(scheme("access_pattern/nr_accesses/min"), "1");
    let region = |file: &str| lab.text(&format!("0/contexts/0/targets/0/regions/0/{file}"));
    assert_eq!((region("start"), region("end")), ("268435456".into(), "536870912".into()));
    assert_eq!((lab.text("nr_kdamonds"), lab.text("0/state")), ("1".into(), "on".into()));
    assert_eq!(lab.knob().state(&lab.root), FileState::Value("hot".to_owned()));
    tuning.restore().unwrap();
    assert_eq!((lab.text("nr_kdamonds"), lab.text("0/state")), ("0".into(), "off".into()));
    assert!(!lab.path().join(JOURNAL).exists());
}

#[test]
fn both_schemes_watch_all_memory_and_cold_memory_goes_to_the_slow_node() {
    let lab = Lab::new().with_thread(2);
    let mut tuning = Tuning::new(&lab.root).unwrap();
    assert_eq!(lab.set(&mut tuning, "hot,cold").unwrap(), "hot,cold");
    let scheme = |file: &str| lab.text(&format!("0/contexts/0/schemes/1/{file}"));
    assert_eq!((scheme("action"), scheme("target_nid")), ("migrate_cold".into(), "1".into()));
    let limits = ["nr_accesses/max", "age/min"].map(|of| scheme(&format!("access_pattern/{of}")));
    assert_eq!(limits, ["0", "10"], "nothing for ten aggregations of 100 ms");
    let starts = [0, 1].map(|n| lab.text(&format!("0/contexts/0/targets/0/regions/{n}/start")));
    assert_eq!(starts, ["0", "268435456"]);
    assert_eq!(lab.set(&mut tuning, "off").unwrap(), "off");
    assert_eq!((lab.text("nr_kdamonds"), lab.text("0/state")), ("0".into(), "off".into()));
}

#[test]
fn the_thread_of_a_killed_run_is_ended_by_knobs_restore() {
    let lab = Lab::new().with_thread(1);
    let mut tuning = Tuning::new(&lab.root).unwrap();
    lab.set(&mut tuning, "hot").unwrap();
    let journal = fs::read(lab.path().join(JOURNAL)).unwrap();
    drop(tuning);
    lab.write(&format!("{THREADS}/nr_kdamonds"), "1\n");
    lab.write(&format!("{THREADS}/0/state"), "on\n");
    fs::write(lab.path().join(JOURNAL), journal).unwrap();
    restore_stale(&lab.root).unwrap();
    assert_eq!((lab.text("nr_kdamonds"), lab.text("0/state")), ("0".into(), "off".into()));
}

#[test]
fn schemes_of_another_user_and_unknown_values_are_refused() {
    let lab = Lab::new().with_thread(1);
    let mut tuning = Tuning::new(&lab.root).unwrap();
    let error = lab.set(&mut tuning, "warm").unwrap_err();
    assert!(error.to_string().contains("expected one of off | hot | cold | hot,cold"), "{error}");
    lab.write(&format!("{THREADS}/nr_kdamonds"), "1\n");
    lab.write(&format!("{THREADS}/0/state"), "on\n");
    lab.write(&format!("{THREADS}/0/contexts/0/schemes/0/action"), "pageout\n");
    let error = lab.set(&mut tuning, "hot").unwrap_err();
    assert_eq!(error.class(), ErrorClass::Lacking);
    assert!(error.to_string().contains("DAMON is in use, with schemes pageout"), "{error}");
    assert_eq!(lab.text("0/state"), "on");
    let in_use = NoEffect::DamonInUse("schemes pageout".to_owned());
    assert_eq!(lab.knob().acts(&lab.root), Acts::No(in_use));
}

#[test]
fn a_kernel_before_6_11_and_one_tier_cannot_migrate() {
    let lab = Lab::new();
    assert_eq!(lab.knob().acts(&lab.root), Acts::Yes);
    lab.write("proc/sys/kernel/osrelease", "6.10.3-amd64\n");
    let too_old = NoEffect::DamonTooOld("6.10.3-amd64".to_owned());
    assert_eq!(lab.knob().acts(&lab.root), Acts::No(too_old));
    fs::remove_dir_all(lab.path().join("sys/devices/virtual/memory_tiering/memory_tier27"))
        .unwrap();
    assert_eq!(lab.knob().acts(&lab.root), Acts::No(NoEffect::OneTier));
}

#[test]
fn the_memory_of_a_process_is_watched_and_nothing_is_left_behind() {
    let lab = Lab::new().with_thread(1);
    for file in [
        "targets/0/pid_target",
        "schemes/0/tried_regions/0/start",
        "monitoring_attrs/intervals/update_us",
    ] {
        lab.write(&format!("{THREADS}/0/contexts/0/{file}"), "\n");
    }
    assert_eq!(watch_hindrance(&lab.root), None);
    let mut tuning = Tuning::new(&lab.root).unwrap();
    let applied = tuning.set(&Knob::damon_watch(), "watch:4242").unwrap();
    assert_eq!(applied.found, "watch:4242");
    let context = |file: &str| lab.text(&format!("0/contexts/0/{file}"));
    assert_eq!(context("monitoring_attrs/intervals/update_us"), "100000");
    assert_eq!(
        (context("operations"), context("schemes/0/action")),
        ("vaddr".into(), "stat".into())
    );
    for (file, value) in [("start", "4096"), ("end", "12288"), ("nr_accesses", "7")] {
        lab.write(&format!("{THREADS}/0/contexts/0/schemes/0/tried_regions/0/{file}"), value);
    }
    let regions = watched_regions(&lab.root).unwrap();
    assert_eq!(regions, [WatchedRegion { start: 4096, end: 12288, accesses: 7 }]);
    assert_eq!(lab.text("0/state"), "update_schemes_tried_regions");
    tuning.restore().unwrap();
    assert_eq!(lab.text("nr_kdamonds"), "0");
    assert!(!lab.path().join(JOURNAL).exists());
    let wrong = tuning.set(&Knob::damon_watch(), "watch:me").unwrap_err();
    assert!(matches!(wrong, KnobError::Refused { .. }), "{wrong}");
}

#[test]
fn the_reasons_why_processes_cannot_be_watched_differ() {
    let lab = Lab::new().with_thread(1);
    lab.write(&format!("{THREADS}/nr_kdamonds"), "1\n");
    lab.write(&format!("{THREADS}/0/contexts/0/schemes/0/action"), "pageout\n");
    let unavailable = watch_hindrance(&lab.root).unwrap();
    let expected = "it is in use, with schemes pageout".to_owned();
    assert_eq!(unavailable, Hindrance::DamonUnavailable { reason: expected });
    lab.write(&format!("{THREADS}/0/contexts/0/avail_operations"), "fvaddr\npaddr\n");
    let operations = ["fvaddr", "paddr"].map(str::to_owned).to_vec();
    assert_eq!(watch_hindrance(&lab.root), Some(Hindrance::DamonWithoutProcesses { operations }));
    lab.write(&format!("{THREADS}/nr_kdamonds"), "0\n");
    lab.write("proc/sys/kernel/osrelease", "6.1.0-56-cloud-amd64\n");
    assert!(matches!(watch_hindrance(&lab.root), Some(Hindrance::DamonUnavailable { .. })));
    let bare = tempfile::tempdir().unwrap();
    assert_eq!(watch_hindrance(&Root::at(bare.path())), Some(Hindrance::NoDamon));
}
