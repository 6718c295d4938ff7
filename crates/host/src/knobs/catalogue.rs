//! The knobs that have names.

use super::acts::Acts;
use super::file::FileState;
use super::knob::{Knob, Nature};
use crate::cgroup;
use crate::root::Root;

/// Where a named knob's files are.
#[derive(Clone, Copy)]
enum Place {
    /// One file.
    File(&'static str),
    /// A file in each numbered directory: `sys/devices/system/cpu/cpu*`.
    Each { directory: &'static str, prefix: &'static str, file: &'static str },
    /// The pool of huge pages of this size in KiB, whose share of each node is kept.
    Pool(u64),
    /// The memory limit of the control group that numalab runs in.
    MemoryLimit,
}
use Place::{Each, File, MemoryLimit, Pool};

const CPUS: &str = "sys/devices/system/cpu";

/// Name, files, what kind of setting, what it is.
type Row = (&'static str, Place, Nature, &'static str);

const ROWS: [Row; 33] = [
    (
        "numa_balancing",
        File("proc/sys/kernel/numa_balancing"),
        Nature::Value,
        "move memory to the node that uses it: 0, 1, 2 (tiering)",
    ),
    (
        "demotion",
        File("sys/kernel/mm/numa/demotion_enabled"),
        Nature::Value,
        "reclaim to a lower memory tier: true, false",
    ),
    (
        "zone_reclaim_mode",
        File("proc/sys/vm/zone_reclaim_mode"),
        Nature::Value,
        "reclaim on the local node before going to another",
    ),
    (
        "thp_enabled",
        File("sys/kernel/mm/transparent_hugepage/enabled"),
        Nature::Value,
        "transparent huge pages: always, madvise, never",
    ),
    (
        "thp_defrag",
        File("sys/kernel/mm/transparent_hugepage/defrag"),
        Nature::Value,
        "how hard a fault tries for one",
    ),
    (
        "thp_shmem_enabled",
        File("sys/kernel/mm/transparent_hugepage/shmem_enabled"),
        Nature::Value,
        "the same for shared memory",
    ),
    (
        "thp_use_zero_page",
        File("sys/kernel/mm/transparent_hugepage/use_zero_page"),
        Nature::Value,
        "a huge zero page for reads: 0, 1",
    ),
    (
        "khugepaged_defrag",
        File("sys/kernel/mm/transparent_hugepage/khugepaged/defrag"),
        Nature::Value,
        "khugepaged may compact: 0, 1",
    ),
    (
        "khugepaged_pages_to_scan",
        File("sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan"),
        Nature::Value,
        "pages of each of its rounds",
    ),
    (
        "khugepaged_scan_sleep_ms",
        File("sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs"),
        Nature::Value,
        "rest between its rounds",
    ),
    ("huge_2m_pages", Pool(2048), Nature::Value, "pages in the pool of 2 MiB pages"),
    ("huge_1g_pages", Pool(1_048_576), Nature::Value, "pages in the pool of 1 GiB pages"),
    (
        "huge_2m_overcommit",
        File("sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages"),
        Nature::Value,
        "2 MiB pages beyond the pool",
    ),
    (
        "compact_memory",
        File("proc/sys/vm/compact_memory"),
        Nature::Trigger,
        "write 1: compact all memory now",
    ),
    (
        "compaction_proactiveness",
        File("proc/sys/vm/compaction_proactiveness"),
        Nature::Value,
        "background compaction, 0 to 100",
    ),
    (
        "drop_caches",
        File("proc/sys/vm/drop_caches"),
        Nature::Trigger,
        "write 1, 2, 3: drop page cache, slab, both",
    ),
    (
        "swappiness",
        File("proc/sys/vm/swappiness"),
        Nature::Value,
        "anonymous pages against page cache in reclaim",
    ),
    (
        "overcommit_memory",
        File("proc/sys/vm/overcommit_memory"),
        Nature::Value,
        "0 heuristic, 1 always, 2 never",
    ),
    ("ksm_run", File("sys/kernel/mm/ksm/run"), Nature::Value, "merge equal pages: 0, 1"),
    (
        "ksm_pages_to_scan",
        File("sys/kernel/mm/ksm/pages_to_scan"),
        Nature::Value,
        "pages of each of its rounds",
    ),
    (
        "ksm_merge_across_nodes",
        File("sys/kernel/mm/ksm/merge_across_nodes"),
        Nature::Value,
        "also pages of different nodes: 0, 1",
    ),
    (
        "governor",
        Each { directory: CPUS, prefix: "cpu", file: "cpufreq/scaling_governor" },
        Nature::Value,
        "who chooses the frequency, of every cpu",
    ),
    (
        "boost",
        File("sys/devices/system/cpu/cpufreq/boost"),
        Nature::Value,
        "frequencies beyond the nominal one: 0, 1",
    ),
    (
        "no_turbo",
        File("sys/devices/system/cpu/intel_pstate/no_turbo"),
        Nature::Value,
        "the same on intel_pstate, the other way round",
    ),
    (
        "cstate1_disabled",
        Each { directory: CPUS, prefix: "cpu", file: "cpuidle/state1/disable" },
        Nature::Value,
        "idle state 1 of every cpu: 1 forbids it",
    ),
    (
        "cstate2_disabled",
        Each { directory: CPUS, prefix: "cpu", file: "cpuidle/state2/disable" },
        Nature::Value,
        "idle state 2",
    ),
    (
        "cstate3_disabled",
        Each { directory: CPUS, prefix: "cpu", file: "cpuidle/state3/disable" },
        Nature::Value,
        "idle state 3",
    ),
    ("smt", File("sys/devices/system/cpu/smt/control"), Nature::Value, "sibling threads: on, off"),
    (
        "aslr",
        File("proc/sys/kernel/randomize_va_space"),
        Nature::Value,
        "random addresses: 0, 1, 2",
    ),
    (
        "irq_affinity",
        Each { directory: "proc/irq", prefix: "", file: "smp_affinity_list" },
        Nature::WherePossible,
        "cpus of all interrupts that may move",
    ),
    (
        "sched_autogroup",
        File("proc/sys/kernel/sched_autogroup_enabled"),
        Nature::Value,
        "a scheduling group for each session: 0, 1",
    ),
    ("memory_limit", MemoryLimit, Nature::Value, "bytes for this control group, or max"),
    (
        "nmi_watchdog",
        File("proc/sys/kernel/nmi_watchdog"),
        Nature::Value,
        "a counter of each cpu taken by the watchdog: 0, 1",
    ),
];

/// A named knob on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The knob.
    pub knob: Knob,
    /// What it is.
    pub summary: String,
    /// What it holds now.
    pub state: FileState,
    /// Whether a change can have an effect here.
    pub acts: Acts,
}

/// Every named knob, with its value and whether it can act here. Changes nothing.
#[must_use]
pub fn list(root: &Root) -> Vec<Listed> {
    let fixed = ROWS.iter().map(|row| (knob_of(root, row), row.3.to_owned()));
    let per_size = sizes(root).into_iter().map(|size| {
        let knob = find(root, &format!("thp_{size}k_enabled"));
        (knob, format!("transparent pages of {size} KiB: always, inherit, madvise, never"))
    });
    let per_node = node_pools(root)
        .into_iter()
        .map(|(name, node)| (find(root, &name), format!("2 MiB pages in the pool on node {node}")));
    let found = fixed.map(|(knob, summary)| (Some(knob), summary)).chain(per_size).chain(per_node);
    found
        .filter_map(|(knob, summary)| {
            let knob = knob?;
            let (state, acts) = (knob.state(root), knob.acts(root));
            Some(Listed { knob, summary, state, acts })
        })
        .collect()
}

/// The knob of this name: of the table, `thp_64k_enabled`, `huge_2m_pages_node0`.
pub(super) fn find(root: &Root, name: &str) -> Option<Knob> {
    if let Some(row) = ROWS.iter().find(|row| row.0 == name) {
        return Some(knob_of(root, row));
    }
    let middle = |prefix, suffix| name.strip_prefix(prefix)?.strip_suffix(suffix);
    if let Some(size) = middle("thp_", "k_enabled").and_then(|size| size.parse::<u64>().ok()) {
        let directory = format!("sys/kernel/mm/transparent_hugepage/hugepages-{size}kB");
        return Some(Knob::new(name, vec![format!("{directory}/enabled")], Nature::Value));
    }
    for (prefix, kib) in [("huge_2m_pages_node", 2048), ("huge_1g_pages_node", 1_048_576)] {
        if let Some(node) = name.strip_prefix(prefix).and_then(|node| node.parse().ok()) {
            return Some(Knob::new(name, vec![node_pool(node, kib)], Nature::Value));
        }
    }
    None
}

/// What kind of setting a file is that was named by its path.
pub(super) fn nature_of_file(path: &str) -> Nature {
    let named = ROWS.iter().find(|row| matches!(row.1, File(file) if file == path));
    named.map_or(Nature::Value, |row| row.2)
}

fn knob_of(root: &Root, row: &Row) -> Knob {
    let (name, place, nature, _) = *row;
    match place {
        File(file) => Knob::new(name, vec![file.to_owned()], nature),
        Each { directory, prefix, file } => {
            let numbers = root.numbered(directory, prefix);
            let paths = numbers.iter().map(|number| format!("{directory}/{prefix}{number}/{file}"));
            // An offline cpu's directory has no such file.
            let paths = paths.filter(|path| root.path(path).exists()).collect();
            Knob::new(name, paths, nature)
        }
        Pool(kib) => {
            let all = format!("sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages");
            let mut knob = Knob::new(name, vec![all], nature);
            let nodes = root.numbered("sys/devices/system/node", "node");
            let shares: Vec<String> = nodes.into_iter().map(|node| node_pool(node, kib)).collect();
            // Writing the sum deals pages to nodes anew, so each share is kept.
            if !shares.is_empty() && shares.iter().all(|path| root.path(path).exists()) {
                knob.saves = shares;
            }
            knob
        }
        MemoryLimit => {
            Knob::new(name, cgroup::memory_limit_file(root).into_iter().collect(), nature)
        }
    }
}

fn node_pool(node: u32, kib: u64) -> String {
    format!("sys/devices/system/node/node{node}/hugepages/hugepages-{kib}kB/nr_hugepages")
}

/// The sizes in KiB that transparent pages can have by themselves (Linux 6.8).
fn sizes(root: &Root) -> Vec<u64> {
    let directory = "sys/kernel/mm/transparent_hugepage";
    let size = |name: &String| name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok();
    // Some sizes are for shared memory only.
    let has_own = |name: &&String| root.path(&format!("{directory}/{name}/enabled")).exists();
    let names = root.names(directory);
    let mut sizes: Vec<u64> = names.iter().filter(has_own).filter_map(size).collect();
    sizes.sort_unstable();
    sizes
}

fn node_pools(root: &Root) -> Vec<(String, u32)> {
    let nodes = root.numbered("sys/devices/system/node", "node");
    nodes.into_iter().map(|node| (format!("huge_2m_pages_node{node}"), node)).collect()
}
