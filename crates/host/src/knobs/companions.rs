//! Files that change when another one is written.

use super::knob::Knob;
use crate::root::Root;

/// Where nodes' weights of interleaving are (Linux 6.9,
/// `Documentation/ABI/testing/sysfs-kernel-mm-mempolicy-weighted-interleave`).
pub(super) const WEIGHTS: &str = "sys/kernel/mm/mempolicy/weighted_interleave";

/// Settings of which a write to one changes the others, below `proc/sys`: the kernel keeps bytes or
/// a ratio and shows 0 for the other (`Documentation/admin-guide/sysctl/vm.rst`), and one watchdog
/// is the sum of two (`kernel.rst` there).
const SYSCTLS: [&[&str]; 4] = [
    &["vm/dirty_bytes", "vm/dirty_ratio"],
    &["vm/dirty_background_bytes", "vm/dirty_background_ratio"],
    &["vm/overcommit_kbytes", "vm/overcommit_ratio"],
    &["kernel/watchdog", "kernel/nmi_watchdog", "kernel/soft_watchdog"],
];

/// Transparent huge pages need more free memory: switching them on raises this.
const MIN_FREE: &str = "proc/sys/vm/min_free_kbytes";

/// How the file that says whether the kernel computes weights is called: since Linux 6.16, and by an
/// accident of its macro on 6.18.
const AUTO: [&str; 2] = ["auto", "__auto_type"];

/// The file that says whether the kernel computes the weights of interleaving, where there is one.
pub(super) fn automatic_weights(root: &Root) -> Option<String> {
    let paths = AUTO.iter().map(|name| format!("{WEIGHTS}/{name}"));
    paths.into_iter().find(|path| root.path(path).exists())
}

/// Whether a file may not take back the value that it has.
pub(super) fn may_be_one_way(path: &str) -> bool {
    AUTO.iter().any(|name| {
        path.strip_prefix(WEIGHTS).and_then(|rest| rest.strip_prefix('/')) == Some(name)
    })
}

/// The knob with the files that change with it among those that are put back.
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
        // Whoever writes one weight sets all, and whoever lets the kernel compute them does too.
        let nodes = root.numbered(WEIGHTS, "node").into_iter();
        let weights = nodes.map(|node| format!("{WEIGHTS}/node{node}"));
        return weights.chain(automatic_weights(root)).collect();
    }
    if path.starts_with("sys/kernel/mm/transparent_hugepage/") && path.ends_with("/enabled") {
        return vec![MIN_FREE.to_owned()];
    }
    let sysctl = path.strip_prefix("proc/sys/").unwrap_or_default();
    let group = SYSCTLS.iter().find(|group| group.contains(&sysctl));
    group.map_or_else(Vec::new, |group| {
        group.iter().map(|name| format!("proc/sys/{name}")).collect()
    })
}
