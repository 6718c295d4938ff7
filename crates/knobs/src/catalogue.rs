//! The catalogue of named knobs.

mod pools;
pub(super) mod ranges;

use numalab_record::system::KnobNow;

use super::companions::{automatic_weights, with_companions};
use super::damon;
use super::directories::{CPUS, WEIGHTS};
use super::error::KnobError;
use super::knob::{Knob, Nature};
use numalab_host::Root;

/// The files of a named knob.
#[derive(Clone, Copy)]
enum KnobFiles {
    /// A file below `/proc/sys`.
    Sysctl(&'static str),
    /// A file below `/sys/kernel/mm`.
    Memory(&'static str),
    /// A file below `/sys/devices/system/cpu`.
    Cpu(&'static str),
    EachCpu(&'static str),
    Interrupts,
    /// The memory limit of the control group that numalab runs in.
    MemoryLimit,
    /// Another file of that group, if it is of version 2.
    Group(&'static str),
    /// DAMON's threads and schemes.
    Damon,
}
use KnobFiles::{Cpu, Damon, EachCpu, Group, Interrupts, Memory, MemoryLimit, Sysctl};

/// The knob for transparent huge pages everywhere, which an emulated machine has too.
pub const HUGE_PAGES: &str = "thp_enabled";

/// Prefix of the knobs that set nodes' interleave weights.
const WEIGHT: &str = "interleave_weight_node";
/// The knob that lets the kernel compute these weights (Linux 6.16).
const AUTOMATIC: &str = "interleave_weights_auto";

/// Name, files, description.
type KnobRow = (&'static str, KnobFiles, &'static str);

const ROWS: [KnobRow; 36] = [
    (
        "numa_balancing",
        Sysctl("kernel/numa_balancing"),
        "move memory to the node that uses it: 0, 1, 2 (tiering)",
    ),
    ("demotion", Memory("numa/demotion_enabled"), "reclaim to a lower memory tier: true, false"),
    (
        "promote_rate_limit",
        Sysctl("kernel/numa_balancing_promote_rate_limit_MBps"),
        "maximum rate of promotion between tiers, MB/s",
    ),
    (
        "damon_migrate",
        Damon,
        "DAMON promotes used memory from slower tiers (hot), and demotes memory unused for a \
         second (cold): off, hot, cold, hot,cold",
    ),
    (
        "watermark_scale_factor",
        Sysctl("vm/watermark_scale_factor"),
        "distance of the watermarks at which reclaim and demotion start and stop, in 1/10000 of \
         memory",
    ),
    (
        "min_free_kbytes",
        Sysctl("vm/min_free_kbytes"),
        "memory kept free, the base of the reclaim watermarks",
    ),
    (
        "zone_reclaim_mode",
        Sysctl("vm/zone_reclaim_mode"),
        "reclaim on the local node before going to another",
    ),
    (
        HUGE_PAGES,
        Memory("transparent_hugepage/enabled"),
        "transparent huge pages: always, madvise, never",
    ),
    (
        "thp_defrag",
        Memory("transparent_hugepage/defrag"),
        "how hard a page fault tries to get a huge page",
    ),
    (
        "thp_shmem_enabled",
        Memory("transparent_hugepage/shmem_enabled"),
        "transparent huge pages in shared memory",
    ),
    (
        "thp_use_zero_page",
        Memory("transparent_hugepage/use_zero_page"),
        "huge zero page for reads: 0, 1",
    ),
    (
        "khugepaged_defrag",
        Memory("transparent_hugepage/khugepaged/defrag"),
        "khugepaged may compact: 0, 1",
    ),
    (
        "khugepaged_pages_to_scan",
        Memory("transparent_hugepage/khugepaged/pages_to_scan"),
        "pages per scan",
    ),
    (
        "khugepaged_scan_sleep_ms",
        Memory("transparent_hugepage/khugepaged/scan_sleep_millisecs"),
        "pause between scans",
    ),
    ("compact_memory", Sysctl("vm/compact_memory"), "write 1 to compact all memory now"),
    (
        "compaction_proactiveness",
        Sysctl("vm/compaction_proactiveness"),
        "aggressiveness of background compaction, 0 to 100",
    ),
    (
        "drop_caches",
        Sysctl("vm/drop_caches"),
        "write 1, 2 or 3 to drop the page cache, slab, or both",
    ),
    (
        "swappiness",
        Sysctl("vm/swappiness"),
        "preference for reclaiming anonymous pages over page cache",
    ),
    (
        "overcommit_memory",
        Sysctl("vm/overcommit_memory"),
        "memory overcommit: 0 heuristic, 1 always, 2 never",
    ),
    ("ksm_run", Memory("ksm/run"), "merge equal pages: 0, 1"),
    ("ksm_pages_to_scan", Memory("ksm/pages_to_scan"), "pages per scan"),
    ("ksm_merge_across_nodes", Memory("ksm/merge_across_nodes"), "merge across nodes: 0, 1"),
    ("governor", EachCpu("cpufreq/scaling_governor"), "frequency governor of every cpu"),
    ("boost", Cpu("cpufreq/boost"), "frequencies beyond the nominal one: 0, 1"),
    ("no_turbo", Cpu("intel_pstate/no_turbo"), "the inverse of boost, on intel_pstate"),
    (
        "cstate1_disabled",
        EachCpu("cpuidle/state1/disable"),
        "idle state 1 of every cpu: 1 disables it",
    ),
    ("cstate2_disabled", EachCpu("cpuidle/state2/disable"), "idle state 2"),
    ("cstate3_disabled", EachCpu("cpuidle/state3/disable"), "idle state 3"),
    ("smt", Cpu("smt/control"), "sibling threads: on, off"),
    ("aslr", Sysctl("kernel/randomize_va_space"), "address space randomisation: 0, 1, 2"),
    ("irq_affinity", Interrupts, "cpus of all movable interrupts"),
    (
        "sched_autogroup",
        Sysctl("kernel/sched_autogroup_enabled"),
        "a scheduling group for each session: 0, 1",
    ),
    ("memory_limit", MemoryLimit, "bytes for this control group, or max"),
    (
        "memory_low",
        Group("memory.low"),
        "bytes of this control group protected from reclaim and demotion, or max",
    ),
    (
        "memory_reclaim",
        Group("memory.reclaim"),
        "write a number of bytes to reclaim or demote from this control group now",
    ),
    (
        "nmi_watchdog",
        Sysctl("kernel/nmi_watchdog"),
        "NMI watchdog, which occupies a performance counter on each cpu: 0, 1",
    ),
];

/// Returns the file of a place that has exactly one.
fn file_of(place: KnobFiles) -> Option<String> {
    match place {
        Sysctl(file) => Some(format!("proc/sys/{file}")),
        Memory(file) => Some(format!("sys/kernel/mm/{file}")),
        Cpu(file) => Some(format!("{CPUS}/{file}")),
        EachCpu(_) | Interrupts | MemoryLimit | Group(_) | Damon => None,
    }
}

/// Returns the kind of setting that a named knob is.
fn nature(name: &str) -> Nature {
    match name {
        "compact_memory" | "drop_caches" | "memory_reclaim" => Nature::Trigger,
        "irq_affinity" => Nature::WherePossible,
        "damon_migrate" => Nature::Damon,
        _ => Nature::Value,
    }
}

impl Knob {
    /// Finds a knob by its name in the catalogue, as a sysctl (`vm.swappiness`), or as a file below
    /// `/proc/sys`, `/proc/irq` or `/sys`. A setting that this kernel does not have is found too,
    /// as [`FileState::Absent`](super::FileState::Absent).
    ///
    /// # Errors
    /// [`KnobError::Unknown`] if the name is none of these.
    pub fn find(root: &Root, name: &str) -> Result<Self, KnobError> {
        if let Some(knob) = find(root, name) {
            return Ok(with_companions(root, knob));
        }
        let path = match name.strip_prefix('/') {
            Some(path) => path.to_owned(),
            None if name.contains('.') && !name.contains('/') => {
                format!("proc/sys/{}", name.replace('.', "/"))
            }
            None => name.to_owned(),
        };
        let places = ["proc/sys/", "proc/irq/", "sys/"];
        let stays = !path.split('/').any(|part| part.is_empty() || part == "..");
        if stays && places.iter().any(|place| path.starts_with(place)) {
            let nature = nature_of_file(&path);
            return Ok(with_companions(root, Self::new(name, vec![path], nature)));
        }
        Err(KnobError::Unknown { name: name.to_owned() })
    }
}

/// Returns every named knob with its value and whether it can have an effect here. Changes nothing.
pub fn list(root: &Root) -> Vec<KnobNow> {
    let fixed = ROWS.iter().map(|row| (knob_of(root, row), row.2.to_owned()));
    let per_size = sizes(root).into_iter().map(|size| {
        let knob = find(root, &format!("thp_{size}k_enabled"));
        (knob, format!("transparent pages of {size} KiB: always, inherit, madvise, never"))
    });
    let pools = pools::list(root).into_iter().map(|(name, summary)| (find(root, &name), summary));
    let weights = root.numbered(WEIGHTS, "node").into_iter().map(|node| {
        let knob = find(root, &format!("{WEIGHT}{node}"));
        (knob, format!("pages from node {node} in each turn of weighted interleaving, 1 to 255"))
    });
    let automatic = automatic_weights(root).map(|_| {
        (
            find(root, AUTOMATIC),
            "the kernel computes these weights from bandwidths: true, false".to_owned(),
        )
    });
    let fixed = fixed.map(|(knob, summary)| (Some(knob), summary));
    let found = fixed.chain(pools).chain(per_size).chain(weights).chain(automatic);
    found.filter_map(|(knob, summary)| Some(knob?.now(root, summary))).collect()
}

/// Finds the knob of a name: in the table, or `thp_64k_enabled`, `huge_2m_pages_node0` and the
/// like.
fn find(root: &Root, name: &str) -> Option<Knob> {
    if let Some(row) = ROWS.iter().find(|row| row.0 == name) {
        return Some(knob_of(root, row));
    }
    let middle = |prefix, suffix| name.strip_prefix(prefix)?.strip_suffix(suffix);
    if let Some(size) = middle("thp_", "k_enabled").and_then(|size| size.parse::<u64>().ok()) {
        let directory = format!("sys/kernel/mm/transparent_hugepage/hugepages-{size}kB");
        return Some(Knob::new(name, vec![format!("{directory}/enabled")], Nature::Value));
    }
    if name == AUTOMATIC {
        let file = automatic_weights(root).unwrap_or_else(|| format!("{WEIGHTS}/auto"));
        return Some(Knob::new(name, vec![file], Nature::Value));
    }
    if let Some(node) = name.strip_prefix(WEIGHT).and_then(|node| node.parse::<u32>().ok()) {
        return Some(Knob::new(name, vec![format!("{WEIGHTS}/node{node}")], Nature::Value));
    }
    pools::find(root, name)
}

/// Returns the kind of setting that a file named by its path is.
fn nature_of_file(path: &str) -> Nature {
    let named = ROWS.iter().find(|row| file_of(row.1).as_deref() == Some(path));
    named.map_or(Nature::Value, |row| nature(row.0))
}

fn knob_of(root: &Root, row: &KnobRow) -> Knob {
    let (name, place, _) = *row;
    let nature = nature(name);
    let each = |directory: &str, prefix: &str, file: &str| {
        let numbers = root.numbered(directory, prefix);
        let paths = numbers.iter().map(|number| format!("{directory}/{prefix}{number}/{file}"));
        // The directory of an offline cpu does not have the file.
        Knob::new(name, paths.filter(|path| root.path(path).exists()).collect(), nature)
    };
    match place {
        Sysctl(_) | Memory(_) | Cpu(_) => {
            Knob::new(name, file_of(place).into_iter().collect(), nature)
        }
        EachCpu(file) => each(CPUS, "cpu", file),
        Interrupts => each("proc/irq", "", "smp_affinity_list"),
        MemoryLimit => {
            Knob::new(name, numalab_host::memory_limit_file(root).into_iter().collect(), nature)
        }
        Damon => Knob::new(name, vec![damon::COUNT.to_owned()], nature),
        Group(file) => {
            Knob::new(name, numalab_host::group_file(root, file).into_iter().collect(), nature)
        }
    }
}

/// Returns the sizes in KiB of transparent huge pages that have their own setting (Linux 6.8).
fn sizes(root: &Root) -> Vec<u64> {
    let directory = "sys/kernel/mm/transparent_hugepage";
    let size = |name: &String| name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok();
    // Some sizes exist for shared memory only.
    let has_own = |name: &&String| root.path(&format!("{directory}/{name}/enabled")).exists();
    let names = root.names(directory);
    let mut sizes: Vec<u64> = names.iter().filter(has_own).filter_map(size).collect();
    sizes.sort_unstable();
    sizes
}
