//! Ranges of numbers that the kernel documents for its settings
//! (`Documentation/admin-guide/sysctl/vm.rst` and `kernel.rst`, `mm/transhuge.rst`, `mm/ksm.rst`,
//! `cpu-freq`, `ABI/testing/sysfs-kernel-mm-mempolicy-weighted-interleave`).

use std::ops::RangeInclusive;

use crate::directories::{CPUS, WEIGHTS};

const I32: u64 = i32::MAX as u64;
const U32: u64 = u32::MAX as u64;

/// Files with the smallest and the largest number that they take.
const RANGES: [(&str, u64, u64); 22] = [
    // 1 and 2 may be combined (Linux 5.18).
    ("proc/sys/kernel/numa_balancing", 0, 3),
    ("proc/sys/kernel/randomize_va_space", 0, 2),
    ("proc/sys/kernel/sched_autogroup_enabled", 0, 1),
    ("proc/sys/kernel/nmi_watchdog", 0, 1),
    ("proc/sys/kernel/numa_balancing_promote_rate_limit_MBps", 0, I32),
    ("proc/sys/vm/min_free_kbytes", 0, I32),
    ("proc/sys/vm/watermark_scale_factor", 1, 3000),
    // A sum of 1, 2 and 4.
    ("proc/sys/vm/zone_reclaim_mode", 0, 7),
    ("proc/sys/vm/compact_memory", 1, 1),
    ("proc/sys/vm/compaction_proactiveness", 0, 100),
    // 4 suppresses the kernel's log line about it.
    ("proc/sys/vm/drop_caches", 1, 4),
    ("proc/sys/vm/swappiness", 0, 200),
    ("proc/sys/vm/overcommit_memory", 0, 2),
    ("sys/kernel/mm/transparent_hugepage/use_zero_page", 0, 1),
    ("sys/kernel/mm/transparent_hugepage/khugepaged/defrag", 0, 1),
    ("sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan", 1, U32),
    ("sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs", 0, U32),
    // 2 separates all merged pages.
    ("sys/kernel/mm/ksm/run", 0, 2),
    ("sys/kernel/mm/ksm/pages_to_scan", 0, U32),
    ("sys/kernel/mm/ksm/merge_across_nodes", 0, 1),
    ("sys/devices/system/cpu/cpufreq/boost", 0, 1),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", 0, 1),
];

/// Returns the numbers that a setting's file takes, as far as the kernel documents them.
pub(crate) fn of_file(path: &str) -> Option<RangeInclusive<u64>> {
    if let Some((_, least, most)) = RANGES.iter().find(|(file, ..)| *file == path) {
        return Some(*least..=*most);
    }
    let (directory, file) = path.rsplit_once('/')?;
    let is_state = directory.starts_with(CPUS) && directory.contains("/cpuidle/state");
    match file {
        "disable" if is_state => Some(0..=1),
        // 0 restores the kernel's own weight.
        "nr_hugepages" | "nr_overcommit_hugepages" => Some(0..=u64::MAX),
        _ if directory == WEIGHTS && file.starts_with("node") => Some(0..=255),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{ROWS, file_of};

    #[test]
    fn every_range_is_of_a_file_of_the_catalogue() {
        let files: Vec<String> = ROWS.iter().filter_map(|row| file_of(row.1)).collect();
        for (file, least, most) in RANGES {
            assert!(files.iter().any(|known| known == file), "{file}");
            assert!(least <= most, "{file}");
        }
        assert_eq!(of_file("sys/devices/system/cpu/cpu3/cpuidle/state2/disable"), Some(0..=1));
        assert_eq!(of_file("sys/devices/system/cpu/cpu3/online"), None);
        assert_eq!(of_file(&format!("{WEIGHTS}/node3")), Some(0..=255));
    }
}
