//! Settings that change when another one is written.

use super::directories::WEIGHTS;
use super::knob::Knob;
use numalab_host::Root;

/// Groups of settings below `proc/sys` that change each other: the kernel keeps either bytes or a
/// ratio and shows 0 for the other (`Documentation/admin-guide/sysctl/vm.rst`), and one watchdog
/// setting is the sum of two (`kernel.rst` there).
const SYSCTLS: [&[&str]; 4] = [
    &["vm/dirty_bytes", "vm/dirty_ratio"],
    &["vm/dirty_background_bytes", "vm/dirty_background_ratio"],
    &["vm/overcommit_kbytes", "vm/overcommit_ratio"],
    &["kernel/watchdog", "kernel/nmi_watchdog", "kernel/soft_watchdog"],
];

/// Enabling transparent huge pages raises this reserve.
const MIN_FREE: &str = "proc/sys/vm/min_free_kbytes";

/// Name of the file that lets the kernel compute the weights: `auto` since Linux 6.16; 6.18 has
/// `__auto_type` by an error in a macro.
const AUTO: [&str; 2] = ["auto", "__auto_type"];

/// Returns the file that lets the kernel compute interleave weights, if there is one.
pub(super) fn automatic_weights(root: &Root) -> Option<String> {
    let paths = AUTO.iter().map(|name| format!("{WEIGHTS}/{name}"));
    paths.into_iter().find(|path| root.path(path).exists())
}

/// Reports whether a file may reject its own current value.
pub(super) fn may_be_one_way(path: &str) -> bool {
    AUTO.iter().any(|name| {
        path.strip_prefix(WEIGHTS).and_then(|rest| rest.strip_prefix('/')) == Some(name)
    })
}

/// Adds the files that change with the knob to those that are saved and restored.
pub(super) fn with_companions(root: &Root, mut knob: Knob) -> Knob {
    for path in knob.writes.clone() {
        for companion in companions(root, &path) {
            if !knob.saves.contains(&companion) && root.path(&companion).exists() {
                knob.saves.push(companion);
            }
        }
    }
    knob
}

fn companions(root: &Root, path: &str) -> Vec<String> {
    if path.starts_with(WEIGHTS) {
        // Writing one weight sets all of them, and so does letting the kernel compute them.
        let nodes = root.numbered(WEIGHTS, "node").into_iter();
        let weights = nodes.map(|node| format!("{WEIGHTS}/node{node}"));
        return weights.chain(automatic_weights(root)).collect();
    }
    if path.starts_with("sys/kernel/mm/transparent_hugepage/") && path.ends_with("/enabled") {
        return vec![MIN_FREE.to_owned()];
    }
    if let Some(of_cpu) = path.strip_suffix("/scaling_governor") {
        // Switching to the governor `performance` also sets the energy preference of processors
        // that choose their own frequency (intel_pstate).
        return vec![format!("{of_cpu}/energy_performance_preference")];
    }
    if let Some(cpus) = path.strip_suffix("/cpufreq/boost") {
        // The setting of all processors overwrites that of each (Linux 6.11).
        let policies = root.numbered(&format!("{cpus}/cpufreq"), "policy").into_iter();
        return policies.map(|policy| format!("{cpus}/cpufreq/policy{policy}/boost")).collect();
    }
    if let Some(cpus) = path.strip_suffix("/smt/control") {
        // All sibling threads come back online, including those that were taken offline before.
        let numbers = root.numbered(cpus, "cpu").into_iter();
        return numbers.map(|cpu| format!("{cpus}/cpu{cpu}/online")).collect();
    }
    let sysctl = path.strip_prefix("proc/sys/").unwrap_or_default();
    let group = SYSCTLS.iter().find(|group| group.contains(&sysctl));
    group.map_or_else(Vec::new, |group| {
        group.iter().map(|name| format!("proc/sys/{name}")).collect()
    })
}
