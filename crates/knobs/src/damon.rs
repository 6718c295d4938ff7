//! DAMON's migration between memory tiers: a kernel thread that watches physical memory, and
//! schemes that move hot memory to the fast tier and cold memory to a slow one (Linux 6.11,
//! `Documentation/admin-guide/mm/damon/usage.rst`). This is one setting in many files, most of
//! which exist only while it is set. Only the number of threads is saved and restored, because
//! nothing else exists without threads.

use numalab_record::NoEffect;
use numalab_record::profile::Hindrance;
use numalab_topology::{Machine, NodeId};

use super::error::WriteFailure;
use super::file::{self, FileState};
use numalab_host::Root;
use numalab_host::linux_version;
use numalab_host::read_machine;

/// The number of DAMON's threads.
pub(super) const COUNT: &str = "sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds";
const THREADS: &str = "sys/kernel/mm/damon/admin/kdamonds";
/// First Linux version whose schemes migrate.
const SINCE: (u32, u32) = (6, 11);
/// Sampling interval of each region, in microseconds.
const SAMPLE_US: u64 = 5_000;
const AGGREGATION_US: u64 = 100_000;
/// Aggregations without an access after which memory counts as cold: one second.
const COLD_AGGREGATIONS: u64 = 1_000_000 / AGGREGATION_US;

/// Prefix of the values that watch a process without moving memory.
const WATCH: &str = "watch:";
const LOOK: &str = "stat";
/// First Linux version that reports the regions it saw.
const WATCH_SINCE: (u32, u32) = (6, 2);
/// Access pattern that matches every region.
const EVERYTHING: [(&str, u64); 6] = [
    ("sz/min", 0),
    ("sz/max", i64::MAX.cast_unsigned()),
    ("nr_accesses/min", 0),
    ("nr_accesses/max", u32::MAX as u64),
    ("age/min", 0),
    ("age/max", u32::MAX as u64),
];

/// The values of the setting, and the schemes of each.
const VALUES: [(&str, &[Action]); 4] = [
    ("off", &[]),
    ("hot", &[Action::Hot]),
    ("cold", &[Action::Cold]),
    ("hot,cold", &[Action::Hot, Action::Cold]),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// Moves accessed memory to the fast tier.
    Hot,
    /// Moves memory without accesses to a slow tier.
    Cold,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::Hot => "migrate_hot",
            Self::Cold => "migrate_cold",
        }
    }

    /// Returns the regions that the scheme applies to, as limits of size in bytes, of samples with
    /// an access, and of age in aggregations.
    fn pattern(self) -> [(&'static str, u64); 6] {
        let (accesses, age) = match self {
            Self::Hot => ([1, AGGREGATION_US / SAMPLE_US], 0),
            Self::Cold => ([0, 0], COLD_AGGREGATIONS),
        };
        [
            ("sz/min", 4096),
            ("sz/max", i64::MAX.cast_unsigned()),
            ("nr_accesses/min", accesses[0]),
            ("nr_accesses/max", accesses[1]),
            ("age/min", age),
            ("age/max", u64::from(u32::MAX)),
        ]
    }
}

/// Returns the value that is set, or the actions of schemes that belong to no value.
pub(super) fn state(root: &Root) -> FileState {
    match file::read(root, COUNT) {
        FileState::Value(count) if count == "0" => return FileState::Value("off".to_owned()),
        FileState::Value(_) => {}
        other => return other,
    }
    let schemes = format!("{THREADS}/0/contexts/0/schemes");
    let action = |number: u32| root.value(&format!("{schemes}/{number}/action"));
    let actions: Vec<String> =
        root.numbered(&schemes, "").into_iter().filter_map(|number| action(number).ok()).collect();
    let is = |(_, expected): &&(&str, &[Action])| {
        !expected.is_empty() && expected.iter().map(|action| action.name()).eq(actions.iter())
    };
    let value = VALUES.iter().find(is).map(|(value, _)| (*value).to_owned());
    let value = value.or_else(|| watched_process(root, &actions).map(|of| format!("{WATCH}{of}")));
    FileState::Value(value.unwrap_or_else(|| format!("schemes {}", actions.join(","))))
}

/// Returns the process whose memory is watched, if nothing else is set.
fn watched_process(root: &Root, actions: &[String]) -> Option<u32> {
    let context = format!("{THREADS}/0/contexts/0");
    let is_watch =
        actions == [LOOK] && root.value(&format!("{context}/operations")).ok()? == "vaddr";
    let target = root.value(&format!("{context}/targets/0/pid_target")).ok()?;
    target.parse().ok().filter(|_| is_watch)
}

/// Returns the reason why the setting cannot work here, if there is one.
pub(super) fn hindrance(root: &Root) -> Option<NoEffect> {
    let release = root.value("proc/sys/kernel/osrelease").unwrap_or_default();
    if linux_version(&release).is_some_and(|version| version < SINCE) {
        return Some(NoEffect::DamonTooOld(release));
    }
    in_use(root).map(NoEffect::DamonInUse).or_else(|| match read_machine(root) {
        Ok(read) if !regions(&read.machine, true).is_empty() => None,
        _ => Some(NoEffect::TiersUnreported),
    })
}

/// Describes another user's use of DAMON, whose threads would have to end.
pub(super) fn in_use(root: &Root) -> Option<String> {
    let FileState::Value(found) = state(root) else { return None };
    let is_ours = VALUES.iter().any(|(value, _)| *value == found);
    (!is_ours).then_some(found)
}

/// Returns the values of the setting, for messages.
pub(super) fn choices() -> String {
    VALUES.map(|(value, _)| value).join(" | ")
}

/// Returns the files to write for a value, in order, while no thread runs; `None` for an unknown
/// value.
pub(super) fn writes(root: &Root, value: &str) -> Option<Vec<(String, String)>> {
    if let Some(process) = value.strip_prefix(WATCH) {
        return process.parse().ok().map(watch_writes);
    }
    let (_, actions) = VALUES.iter().find(|(name, _)| *name == value)?;
    if actions.is_empty() {
        return Some(Vec::new());
    }
    let machine = read_machine(root).map(|read| read.machine).unwrap_or_default();
    let mut writes = vec![(COUNT.to_owned(), "1".to_owned())];
    let mut write = |file: &str, value: &dyn std::fmt::Display| {
        writes.push((format!("{THREADS}/0/{file}"), value.to_string()));
    };
    write("contexts/nr_contexts", &1);
    write("contexts/0/operations", &"paddr");
    write("contexts/0/monitoring_attrs/intervals/sample_us", &SAMPLE_US);
    write("contexts/0/monitoring_attrs/intervals/aggr_us", &AGGREGATION_US);
    write("contexts/0/targets/nr_targets", &1);
    // Promotion alone does not need to monitor the fast tier.
    let hot_alone = actions.iter().all(|action| *action == Action::Hot);
    let regions = regions(&machine, hot_alone);
    write("contexts/0/targets/0/regions/nr_regions", &regions.len());
    for (number, (start, end)) in regions.iter().enumerate() {
        let region = format!("contexts/0/targets/0/regions/{number}");
        write(&format!("{region}/start"), start);
        write(&format!("{region}/end"), end);
    }
    write("contexts/0/schemes/nr_schemes", &actions.len());
    for (number, action) in actions.iter().enumerate() {
        let scheme = format!("contexts/0/schemes/{number}");
        write(&format!("{scheme}/action"), &action.name());
        write(&format!("{scheme}/target_nid"), &target(&machine, *action)?.0);
        for (limit, value) in action.pattern() {
            write(&format!("{scheme}/access_pattern/{limit}"), &value);
        }
    }
    write("state", &"on");
    Some(writes)
}

/// Returns the files to write in order to watch a process's memory.
fn watch_writes(process: u32) -> Vec<(String, String)> {
    let mut writes = vec![(COUNT.to_owned(), "1".to_owned())];
    let mut write = |file: &str, value: &dyn std::fmt::Display| {
        writes.push((format!("{THREADS}/0/{file}"), value.to_string()));
    };
    write("contexts/nr_contexts", &1);
    write("contexts/0/operations", &"vaddr");
    write("contexts/0/monitoring_attrs/intervals/sample_us", &SAMPLE_US);
    write("contexts/0/monitoring_attrs/intervals/aggr_us", &AGGREGATION_US);
    // Interval at which mappings are read again. The default is a minute, but a program maps most
    // of its memory when it begins.
    write("contexts/0/monitoring_attrs/intervals/update_us", &AGGREGATION_US);
    write("contexts/0/targets/nr_targets", &1);
    write("contexts/0/targets/0/pid_target", &process);
    write("contexts/0/schemes/nr_schemes", &1);
    write("contexts/0/schemes/0/action", &LOOK);
    for (limit, value) in EVERYTHING {
        write(&format!("contexts/0/schemes/0/access_pattern/{limit}"), &value);
    }
    write("state", &"on");
    writes
}

/// A region of a process's memory as DAMON sees it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedRegion {
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// Samples with an access, out of [`WATCH_LOOKS`].
    pub accesses: u64,
}

/// Samples in one aggregation, the upper bound on an access count.
pub const WATCH_LOOKS: u64 = AGGREGATION_US / SAMPLE_US;
/// Time between samples, in microseconds.
pub const WATCH_SAMPLE_US: u64 = SAMPLE_US;

/// Returns the regions of the watched process with their latest access counts.
///
/// # Errors
/// The system's error; the process may have ended.
pub fn watched_regions(root: &Root) -> std::io::Result<Vec<WatchedRegion>> {
    let state = root.path(&format!("{THREADS}/0/state"));
    // The kernel fills the files below only on request.
    std::fs::write(state, "update_schemes_tried_regions\n")?;
    let regions = format!("{THREADS}/0/contexts/0/schemes/0/tried_regions");
    let region = |number: u32| {
        let value = |file: &str| {
            root.value(&format!("{regions}/{number}/{file}")).ok()?.parse::<u64>().ok()
        };
        let (start, end, accesses) = (value("start")?, value("end")?, value("nr_accesses")?);
        Some(WatchedRegion { start, end, accesses })
    };
    Ok(root.numbered(&regions, "").into_iter().filter_map(region).collect())
}

/// Returns the reason why DAMON cannot watch processes here, as far as can be found without setting
/// anything.
pub fn watch_hindrance(root: &Root) -> Option<Hindrance> {
    let unavailable = |reason: String| Some(Hindrance::DamonUnavailable { reason });
    match file::read(root, COUNT) {
        FileState::Absent => return Some(Hindrance::NoDamon),
        FileState::Denied(reason) => return unavailable(reason),
        FileState::WriteOnly => return unavailable(format!("/{COUNT} cannot be read")),
        FileState::Value(count) if count != "0" => {
            let offered = root.value(&format!("{THREADS}/0/contexts/0/avail_operations"));
            let operations: Vec<String> =
                offered.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
            if !operations.is_empty() && !operations.iter().any(|of| of == "vaddr") {
                return Some(Hindrance::DamonWithoutProcesses { operations });
            }
            let what = if let FileState::Value(what) = state(root) { what } else { String::new() };
            return unavailable(format!("it is in use, with {what}"));
        }
        FileState::Value(_) => {}
    }
    let release = root.value("proc/sys/kernel/osrelease").unwrap_or_default();
    if linux_version(&release).is_some_and(|version| version < WATCH_SINCE) {
        return unavailable(format!(
            "Linux {release} does not report its regions: expected 6.2 or newer"
        ));
    }
    let is_root = rustix::process::geteuid().is_root();
    (!is_root).then(|| "only root may use it".to_owned()).and_then(unavailable)
}

/// Ends all of DAMON's threads.
pub(super) fn stop(root: &Root) -> Result<(), Failed> {
    for number in root.numbered(THREADS, "") {
        let state = format!("{THREADS}/{number}/state");
        // A thread that does not run rejects `off`.
        if root.value(&state).is_ok_and(|found| found == "on") {
            write(root, &state, "off")?;
        }
    }
    match file::read(root, COUNT) {
        FileState::Value(count) if count != "0" => write(root, COUNT, "0"),
        _ => Ok(()),
    }
}

/// A write that failed: file, value, reason.
pub(super) type Failed = (String, String, WriteFailure);

pub(super) fn write(root: &Root, path: &str, value: &str) -> Result<(), Failed> {
    file::write(root, path, value).map_err(|why| (path.to_owned(), value.to_owned(), why))
}

/// Returns the node that the action moves memory to.
fn target(machine: &Machine, action: Action) -> Option<NodeId> {
    let place = usize::from(action == Action::Cold);
    machine.tiers_from_cpus().get(place)?.nodes.first()
}

/// Returns the ranges of physical memory to watch: those of slower tiers, or all.
fn regions(machine: &Machine, slower_only: bool) -> Vec<(u64, u64)> {
    let tiers = machine.tiers_from_cpus();
    let watched = tiers.get(usize::from(slower_only)..).unwrap_or_default();
    let is_watched = |node| watched.iter().any(|tier| tier.nodes.contains(node));
    let ranges = machine.ranges.iter().filter(|range| is_watched(range.node));
    ranges.filter_map(|range| Some((range.base, range.end()?))).collect()
}
