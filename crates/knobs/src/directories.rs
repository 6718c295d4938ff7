//! Directories of settings.

pub(super) const CPUS: &str = "sys/devices/system/cpu";

/// Directory of the nodes' interleave weights (Linux 6.9,
/// `Documentation/ABI/testing/sysfs-kernel-mm-mempolicy-weighted-interleave`).
pub(super) const WEIGHTS: &str = "sys/kernel/mm/mempolicy/weighted_interleave";
