//! Knobs on a tree of files, and on the running system where nothing is changed.

#[path = "../../host/tests/tree/mod.rs"]
mod tree;

use numalab_record::NoEffect;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use numalab_host::{Classed, ErrorClass, Root};
use numalab_knobs::{
    Acts, FileState, JOURNAL, Knob, KnobError, Restored, Tuning, list, restore_stale,
};

const NB: &str = "proc/sys/kernel/numa_balancing";
const SWAPPINESS: &str = "proc/sys/vm/swappiness";
const CPUS: &str = "sys/devices/system/cpu";
const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";

/// A small machine of files.
struct Lab {
    top: tempfile::TempDir,
    root: Root,
}

impl Lab {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let root = Root::at(top.path());
        let lab = Self { top, root };
        lab.write(NB, "1\n");
        lab.write(SWAPPINESS, "60\n");
        lab.write(THP, "always [madvise] never\n");
        lab.write("proc/sys/kernel/random/boot_id", "first\n");
        lab
    }

    fn path(&self) -> &Path {
        self.top.path()
    }

    fn write(&self, path: &str, text: &str) {
        tree::write(self.path(), path, text);
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path().join(path)).unwrap()
    }

    fn set(&self, tuning: &mut Tuning, name: &str, value: &str) -> Result<String, KnobError> {
        let knob = Knob::find(&self.root, name)?;
        tuning.set(&knob, value).map(|applied| applied.found)
    }

    /// Simulates a killed run: neither drop nor restore happens.
    fn killed_run(&self) {
        let mut tuning = Tuning::new(&self.root).unwrap();
        self.set(&mut tuning, "numa_balancing", "0").unwrap();
        self.set(&mut tuning, "swappiness", "10").unwrap();
        // The kernel releases the locks of a dead process; writing the journal back does the same
        // here.
        let journal = fs::read(self.path().join(JOURNAL)).unwrap();
        let [nb, swappiness] = [NB, SWAPPINESS].map(|path| self.text(path));
        drop(tuning);
        self.write(NB, &nb);
        self.write(SWAPPINESS, &swappiness);
        fs::write(self.path().join(JOURNAL), journal).unwrap();
    }
}

#[test]
fn a_setting_is_read_back_and_restored_at_the_end() {
    let lab = Lab::new();
    let mut tuning = Tuning::new(&lab.root).unwrap();
    assert!(!lab.path().join("var").exists(), "nothing is written before the first knob");
    assert_eq!(lab.set(&mut tuning, "numa_balancing", "0").unwrap(), "0");
    assert_eq!(lab.set(&mut tuning, "thp_enabled", "never").unwrap(), "never");
    assert_eq!(lab.set(&mut tuning, "numa_balancing", "2").unwrap(), "2");
    assert_eq!((lab.text(NB).trim(), lab.text(THP).trim()), ("2", "never"));
    let journal = lab.text(JOURNAL);
    assert_eq!(journal.matches(NB).count(), 1, "the first prior value counts: {journal}");
    tuning.restore().unwrap();
    assert_eq!((lab.text(NB).trim(), lab.text(THP).trim()), ("1", "madvise"));
    assert!(!lab.path().join(JOURNAL).exists());
    tuning.restore().unwrap();
}

#[test]
fn a_dropped_run_restores_settings_too() {
    let lab = Lab::new();
    let mut tuning = Tuning::new(&lab.root).unwrap();
    lab.set(&mut tuning, "vm.swappiness", "1").unwrap();
    lab.set(&mut tuning, "/proc/sys/kernel/numa_balancing", "0").unwrap();
    drop(tuning);
    assert_eq!((lab.text(NB).trim(), lab.text(SWAPPINESS).trim()), ("1", "60"));
}

#[test]
fn settings_of_a_killed_run_block_the_next_until_they_are_restored() {
    let lab = Lab::new();
    lab.killed_run();
    let error = Tuning::new(&lab.root).unwrap_err();
    assert!(matches!(error, KnobError::Stale { count: 2, .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::Lacking);
    assert!(error.to_string().contains("numalab knobs restore"), "{error}");
    let Restored::Files(files) = restore_stale(&lab.root).unwrap() else { panic!("nothing") };
    assert_eq!(files.len(), 2);
    assert_eq!((lab.text(NB).trim(), lab.text(SWAPPINESS).trim()), ("1", "60"));
    assert_eq!(restore_stale(&lab.root).unwrap(), Restored::Nothing);
    assert!(Tuning::new(&lab.root).is_ok());
}

#[test]
fn after_a_restart_of_the_machine_nothing_is_written_back() {
    let lab = Lab::new();
    lab.killed_run();
    lab.write("proc/sys/kernel/random/boot_id", "second\n");
    lab.write(NB, "1\n");
    lab.write(SWAPPINESS, "33\n");
    let mut tuning = Tuning::new(&lab.root).expect("settings of another boot are gone");
    lab.set(&mut tuning, "swappiness", "5").unwrap();
    drop(tuning);
    assert_eq!(lab.text(SWAPPINESS).trim(), "33");
    lab.killed_run();
    lab.write("proc/sys/kernel/random/boot_id", "third\n");
    assert_eq!(restore_stale(&lab.root).unwrap(), Restored::Restarted { count: 2 });
}

#[test]
fn two_runs_at_once_are_refused() {
    let lab = Lab::new();
    let mut first = Tuning::new(&lab.root).unwrap();
    let mut second = Tuning::new(&lab.root).unwrap();
    lab.set(&mut first, "numa_balancing", "0").unwrap();
    let error = lab.set(&mut second, "swappiness", "1").unwrap_err();
    assert!(matches!(error, KnobError::Busy { .. }), "{error}");
    assert!(matches!(Tuning::new(&lab.root), Err(KnobError::Busy { .. })));
    assert!(matches!(restore_stale(&lab.root), Err(KnobError::Busy { .. })));
    assert_eq!(lab.text(SWAPPINESS).trim(), "60");
}

#[test]
fn absent_denied_write_only_and_clamped_are_different_errors() {
    let lab = Lab::new();
    let mut tuning = Tuning::new(&lab.root).unwrap();
    let absent = lab.set(&mut tuning, "zone_reclaim_mode", "1").unwrap_err();
    assert!(matches!(absent, KnobError::Absent { .. }), "{absent}");
    lab.write("proc/sys/vm/secret", "");
    let secret = lab.path().join("proc/sys/vm/secret");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o200)).unwrap();
    let write_only = lab.set(&mut tuning, "vm.secret", "1").unwrap_err();
    assert!(matches!(write_only, KnobError::WriteOnly { .. }), "{write_only}");
    // Writing 0 to a timer slack gives the default.
    symlink("/proc/self/timerslack_ns", lab.path().join("proc/sys/vm/slack")).unwrap();
    let clamped = lab.set(&mut tuning, "vm.slack", "0").unwrap_err();
    assert!(matches!(&clamped, KnobError::Clamped { wanted, .. } if wanted == "0"), "{clamped}");
    // No user can open a directory for writing, not even root.
    fs::create_dir(lab.path().join("proc/sys/vm/directory")).unwrap();
    let denied = lab.set(&mut tuning, "vm.directory", "0").unwrap_err();
    assert!(matches!(denied, KnobError::Denied { .. }), "{denied}");
    for error in [absent, clamped, denied] {
        assert_eq!(error.class(), ErrorClass::Lacking, "{error}");
    }
}

#[test]
fn a_short_pool_is_requested_again_after_compacting_and_reports_its_pages() {
    let lab = Lab::new();
    let mut tuning = Tuning::new(&lab.root).unwrap();
    let pool = "sys/kernel/mm/hugepages/hugepages-2048kB";
    fs::create_dir_all(lab.path().join(pool)).unwrap();
    // The kernel keeps nine bits of this file: of 512 it keeps none.
    symlink("/proc/self/coredump_filter", lab.path().join(pool).join("nr_hugepages")).unwrap();
    lab.write("proc/sys/vm/compact_memory", "");
    let fewer = lab.set(&mut tuning, "huge_2m_pages", "512").unwrap_err();
    let said = fewer.to_string();
    assert!(said.contains("0 of 512 pages could be reserved"), "{said}");
    assert!(said.contains("even after compacting memory: set at most 0, free memory"), "{said}");
    assert_eq!(fewer.class(), ErrorClass::Lacking);
    assert_eq!(lab.text("proc/sys/vm/compact_memory"), "1\n");
}

#[test]
fn a_read_only_file_of_sysfs_is_denied_to_root_too() {
    let root = Root::live();
    let name = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    if !Path::new(name).exists() {
        eprintln!("NOT RUN: this kernel has no pool of 2 MiB pages");
        return;
    }
    let knob = Knob::find(&root, name).unwrap();
    assert_eq!(knob.acts(&root), Acts::No(NoEffect::ReadOnly));
}

#[test]
fn a_trigger_is_written_and_not_restored() {
    let lab = Lab::new();
    lab.write("proc/sys/vm/drop_caches", "");
    let path = lab.path().join("proc/sys/vm/drop_caches");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o200)).unwrap();
    let knob = Knob::find(&lab.root, "drop_caches").unwrap();
    assert_eq!((knob.state(&lab.root), knob.acts(&lab.root)), (FileState::WriteOnly, Acts::Yes));
    let mut tuning = Tuning::new(&lab.root).unwrap();
    assert_eq!(tuning.set(&knob, "3").unwrap().found, "3");
    assert_eq!(fs::read_to_string(&path).unwrap_or_default().trim(), "3");
    tuning.restore().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap_or_default().trim(), "3");
}

#[test]
fn a_pool_keeps_the_share_of_each_node() {
    let lab = Lab::new();
    let pool = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let share = |node: u32| {
        format!("sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages")
    };
    lab.write(pool, "12\n");
    lab.write(&share(0), "2\n");
    lab.write(&share(8), "10\n");
    let mut tuning = Tuning::new(&lab.root).unwrap();
    lab.set(&mut tuning, "huge_2m_pages", "64").unwrap();
    // The kernel distributes them evenly.
    lab.write(&share(0), "32\n");
    lab.write(&share(8), "32\n");
    tuning.restore().unwrap();
    assert_eq!((lab.text(&share(0)).trim(), lab.text(&share(8)).trim()), ("2", "10"));
}

#[test]
fn every_size_of_huge_pages_that_the_kernel_has_is_a_knob() {
    let lab = Lab::new();
    for kib in [2048, 524_288, 16_777_216] {
        let pool = format!("hugepages/hugepages-{kib}kB/nr_hugepages");
        lab.write(&format!("sys/kernel/mm/{pool}"), "8\n");
        lab.write(&format!("sys/devices/system/node/node1/{pool}"), "8\n");
    }
    let listed = list(&lab.root);
    let said = |name: &str| {
        let knob = listed.iter().find(|knob| knob.name == name).expect(name);
        (knob.value.clone(), knob.summary.clone())
    };
    let now = Some("8".to_owned());
    assert_eq!(said("huge_2m_pages"), (now.clone(), "pages in the pool of 2 MiB pages".to_owned()));
    let expected = (now.clone(), "512 MiB pages in the pool on node 1".to_owned());
    assert_eq!(said("huge_512m_pages_node1"), expected);
    assert_eq!(said("huge_16g_pages"), (now, "pages in the pool of 16 GiB pages".to_owned()));
    assert!(listed.iter().all(|knob| !knob.name.starts_with("huge_1g")), "it has none");
    let mut tuning = Tuning::new(&lab.root).unwrap();
    lab.set(&mut tuning, "huge_512m_pages", "4").unwrap();
    let pool = "sys/kernel/mm/hugepages/hugepages-524288kB/nr_hugepages";
    assert_eq!(lab.text(pool).trim(), "4");
    let absent = Knob::find(&lab.root, "huge_1g_pages").unwrap();
    assert_eq!(absent.state(&lab.root), FileState::Absent);
    for name in ["huge_3m_pages", "huge_2048k_pages", "huge_thp_pages", "huge_2m_pages_nodeX"] {
        let unknown = Knob::find(&lab.root, name).unwrap_err();
        assert!(matches!(unknown, KnobError::Unknown { .. }), "{name}");
    }
}

#[test]
fn a_knob_of_every_cpu_keeps_each_value() {
    let lab = Lab::new();
    let file = |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    lab.write(&file(0), "powersave\n");
    lab.write(&file(3), "ondemand\n");
    let knob = Knob::find(&lab.root, "governor").unwrap();
    assert_eq!(knob.state(&lab.root), FileState::Value("powersave ondemand".to_owned()));
    let mut tuning = Tuning::new(&lab.root).unwrap();
    tuning.set(&knob, "performance").unwrap();
    assert_eq!(knob.state(&lab.root), FileState::Value("performance".to_owned()));
    drop(tuning);
    assert_eq!((lab.text(&file(0)).trim(), lab.text(&file(3)).trim()), ("powersave", "ondemand"));
}

#[test]
fn interrupts_that_cannot_move_are_skipped_and_named() {
    let lab = Lab::new();
    lab.write("proc/irq/7/smp_affinity_list", "0-3\n");
    fs::create_dir_all(lab.path().join("proc/irq/9")).unwrap();
    symlink("/proc/self/timerslack_ns", lab.path().join("proc/irq/9/smp_affinity_list")).unwrap();
    let knob = Knob::find(&lab.root, "irq_affinity").unwrap();
    let mut tuning = Tuning::new(&lab.root).unwrap();
    let applied = tuning.set(&knob, "0").unwrap();
    assert_eq!(applied.left_out.len(), 1, "{applied:?}");
    assert!(applied.left_out[0].starts_with("/proc/irq/9/"), "{applied:?}");
    assert_eq!(lab.text("proc/irq/7/smp_affinity_list").trim(), "0");
    drop(tuning);
    assert_eq!(lab.text("proc/irq/7/smp_affinity_list").trim(), "0-3");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let lab = Lab::new();
    for name in
        ["nonsense", "/etc/passwd", "/sys/../etc/passwd", "/proc/1/oom_score_adj", "", "//sys/x"]
    {
        let error = Knob::find(&lab.root, name).unwrap_err();
        assert!(matches!(error, KnobError::Unknown { .. }), "{name}: {error}");
        assert_eq!(error.class(), ErrorClass::BadInput);
    }
    for name in
        ["vm.swappiness", "/sys/kernel/mm/ksm/run", "proc/sys/vm/swappiness", "thp_64k_enabled"]
    {
        assert!(Knob::find(&lab.root, name).is_ok(), "{name}");
    }
}

#[test]
fn the_machine_determines_which_knobs_can_act() {
    let lab = Lab::new();
    let acts = |name: &str| Knob::find(&lab.root, name).unwrap().acts(&lab.root);
    lab.write("sys/devices/system/node/has_memory", "0\n");
    assert_eq!(acts("numa_balancing"), Acts::No(NoEffect::OneNode));
    lab.write("sys/devices/system/node/has_memory", "0,8\n");
    assert_eq!(acts("numa_balancing"), Acts::Yes);
    lab.write("proc/swaps", "Filename Type Size\n");
    assert_eq!(acts("swappiness"), Acts::No(NoEffect::NoSwap));
    assert_eq!(acts("zone_reclaim_mode"), Acts::No(NoEffect::NotInKernel));
    assert_eq!(acts("governor"), Acts::No(NoEffect::NothingToSet));
    lab.write("sys/devices/system/cpu/smt/control", "notsupported\n");
    assert_eq!(acts("smt"), Acts::No(NoEffect::Fixed("notsupported".to_owned())));
}

#[test]
fn knobs_of_tiers_act_where_memory_is_of_several_tiers() {
    let lab = Lab::new();
    let acts = |name: &str| Knob::find(&lab.root, name).unwrap().acts(&lab.root);
    lab.write("sys/kernel/mm/numa/demotion_enabled", "false\n");
    lab.write("proc/sys/kernel/numa_balancing_promote_rate_limit_MBps", "65536\n");
    let tier = |id| format!("sys/devices/virtual/memory_tiering/memory_tier{id}/nodelist");
    lab.write(&tier(4), "0\n");
    for name in ["demotion", "promote_rate_limit"] {
        assert_eq!(acts(name), Acts::No(NoEffect::OneTier), "{name}");
    }
    lab.write(&tier(13), "1\n");
    for name in ["demotion", "promote_rate_limit"] {
        assert_eq!(acts(name), Acts::Yes, "{name}");
    }
    let named = |name: &str| list(&lab.root).iter().any(|listed| listed.name == name);
    assert!(!named("interleave_weight_node1"));
    lab.write("sys/kernel/mm/mempolicy/weighted_interleave/node1", "1\n");
    lab.write("sys/devices/system/node/has_memory", "0-1\n");
    assert!(named("interleave_weight_node1"));
    assert_eq!(acts("interleave_weight_node1"), Acts::Yes);
}

#[test]
fn the_group_of_a_process_has_memory_protected_from_reclaim() {
    let lab = Lab::new();
    lab.write("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    lab.write("proc/self/cgroup", "0::/mine\n");
    lab.write("sys/fs/cgroup/mine/memory.low", "0\n");
    let low = Knob::find(&lab.root, "memory_low").unwrap();
    assert_eq!(low.state(&lab.root), FileState::Value("0".to_owned()));
    assert_eq!(low.acts(&lab.root), Acts::Yes);
    let reclaim = Knob::find(&lab.root, "memory_reclaim").unwrap();
    assert_eq!(reclaim.acts(&lab.root), Acts::No(NoEffect::NothingToSet));
}

#[test]
fn the_list_of_the_running_system_reads_every_named_knob_and_changes_none() {
    let root = Root::live();
    let before: Vec<_> = list(&root).into_iter().map(|knob| knob.state).collect();
    let listed = list(&root);
    assert!(listed.len() > 30, "{}", listed.len());
    let names: std::collections::BTreeSet<&str> =
        listed.iter().map(|listed| listed.name.as_str()).collect();
    assert_eq!(names.len(), listed.len(), "a name is there twice");
    let after: Vec<_> = listed.iter().map(|listed| listed.state).collect();
    assert_eq!(before, after);
}

const WEIGHTS: &str = "sys/kernel/mm/mempolicy/weighted_interleave";

#[test]
fn weights_are_saved_with_those_of_other_nodes_and_with_the_kernels_own_mode() {
    for auto in ["auto", "__auto_type"] {
        let lab = Lab::new();
        lab.write(&format!("{WEIGHTS}/node0"), "3\n");
        lab.write(&format!("{WEIGHTS}/node1"), "1\n");
        lab.write(&format!("{WEIGHTS}/{auto}"), "true\n");
        let mut tuning = Tuning::new(&lab.root).unwrap();
        lab.set(&mut tuning, "interleave_weight_node0", "5").unwrap();
        // The kernel switches its own mode off at such a write.
        lab.write(&format!("{WEIGHTS}/{auto}"), "false\n");
        let journal = lab.text(JOURNAL);
        assert!(journal.contains(auto) && journal.contains("node1"), "{journal}");
        tuning.restore().unwrap();
        assert_eq!(lab.text(&format!("{WEIGHTS}/{auto}")).trim(), "true");
        assert_eq!(lab.text(&format!("{WEIGHTS}/node0")).trim(), "3");
        let mode = Knob::find(&lab.root, "interleave_weights_auto").unwrap().state(&lab.root);
        assert_eq!(mode, FileState::Value("true".to_owned()));
    }
}

#[test]
fn settings_that_change_each_other_are_saved_together_under_any_name() {
    let saved = |name: &str, value: &str, other: &str| {
        let lab = Lab::new();
        let min_free = "proc/sys/vm/min_free_kbytes";
        for path in ["proc/sys/vm/dirty_bytes", "proc/sys/vm/dirty_ratio", min_free] {
            lab.write(path, "20\n");
        }
        lab.write(&format!("{WEIGHTS}/node0"), "3\n");
        lab.write(&format!("{WEIGHTS}/auto"), "true\n");
        for path in ["cpu1/online", "cpufreq/policy0/boost", "cpufreq/boost", "smt/control"] {
            lab.write(&format!("{CPUS}/{path}"), "1\n");
        }
        lab.write(&format!("{CPUS}/cpu0/cpufreq/scaling_governor"), "powersave\n");
        lab.write(&format!("{CPUS}/cpu0/cpufreq/energy_performance_preference"), "power\n");
        let mut tuning = Tuning::new(&lab.root).unwrap();
        lab.set(&mut tuning, name, value).unwrap();
        lab.write(other, "7\n");
        tuning.put_back(&Knob::find(&lab.root, name).unwrap()).unwrap();
        lab.text(other).trim().to_owned()
    };
    assert_eq!(saved("vm.dirty_bytes", "1000", "proc/sys/vm/dirty_ratio"), "20");
    assert_eq!(saved("thp_enabled", "always", "proc/sys/vm/min_free_kbytes"), "20");
    let auto = format!("{WEIGHTS}/auto");
    assert_eq!(saved(&format!("/{WEIGHTS}/node0"), "9", &auto), "true");
    let preference = format!("{CPUS}/cpu0/cpufreq/energy_performance_preference");
    assert_eq!(saved("governor", "performance", &preference), "power");
    assert_eq!(saved("boost", "0", &format!("{CPUS}/cpufreq/policy0/boost")), "1");
    assert_eq!(saved("smt", "off", &format!("{CPUS}/cpu1/online")), "1");
}

#[test]
fn a_weight_is_not_set_where_the_kernel_would_not_compute_it_again() {
    let lab = Lab::new();
    let auto = format!("{WEIGHTS}/auto");
    lab.write(&format!("{WEIGHTS}/node0"), "3\n");
    // A file that root can read but not write.
    symlink("/proc/sys/kernel/ostype", lab.path().join(&auto)).unwrap();
    let mut tuning = Tuning::new(&lab.root).unwrap();
    let error = lab.set(&mut tuning, "interleave_weight_node0", "5").unwrap_err();
    assert!(error.to_string().contains("could not be restored to \"Linux\""), "{error}");
    assert_eq!(
        (error.class(), lab.text(&format!("{WEIGHTS}/node0")).trim()),
        (ErrorClass::Lacking, "3")
    );
    assert!(!lab.path().join(JOURNAL).exists());
}

#[test]
fn setting_a_weight_keeps_the_kernels_own_mode() {
    let (root, live) = (Root::live(), Path::new("/").join(WEIGHTS));
    let mode = ["auto", "__auto_type"].map(|name| live.join(name)).into_iter().find(|p| p.exists());
    let Some(mode) = mode else {
        eprintln!("NOT RUN: this kernel computes no weights of interleaving");
        return;
    };
    let state =
        || (fs::read_to_string(&mode).unwrap(), fs::read_to_string(live.join("node0")).unwrap());
    let before = state();
    let Ok(mut tuning) = Tuning::new(&root) else { panic!("the journal is somebody's") };
    let knob = Knob::find(&root, "interleave_weight_node0").unwrap();
    match tuning.set(&knob, "7") {
        Ok(_) => assert_ne!(state(), before),
        Err(error) => {
            eprintln!("NOT RUN: {error}");
            return assert_eq!(state(), before);
        }
    }
    tuning.restore().unwrap();
    assert_eq!(state(), before);
}
