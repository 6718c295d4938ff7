//! The predicted effect of NUMA balancing: pages move to the node that uses them, but late and at a
//! cost.
//!
//! The figures are Linux's defaults (`Documentation/admin-guide/sysctl/kernel.rst`, debugfs
//! `sched/numa_balancing`): scanning starts after a thread has run for one second, covers 256 MB
//! per second, and costs a fault at the next use of each page scanned. The costs of a fault and of
//! a migration are assumptions for current servers.

use std::collections::BTreeMap;

use numalab_record::ProgramMemory;

use super::waits::can_follow;

/// Time before the first scan, in ns (`scan_delay_ms`).
const DELAY_NS: f64 = 1e9;
/// Pages scanned per second (`scan_size_mb` over `scan_period_min_ms`).
const PAGES_A_SECOND: f64 = 256.0 * 256.0;
/// Lowest and highest cost of a hinting fault, in ns.
const FAULT_NS: [f64; 2] = [500.0, 2_000.0];
/// Lowest and highest cost of migrating a 4 KiB page, in ns.
const MOVE_NS: [f64; 2] = [2_000.0, 10_000.0];

/// Returns each thread's mean, largest and smallest saving in ns if the kernel migrates pages in
/// time; `moved_ns` is the saving with all of them in place from the start.
pub(super) fn balanced_ns(
    moved_ns: &BTreeMap<u32, f64>,
    program: &ProgramMemory,
) -> [BTreeMap<u32, f64>; 3] {
    let elapsed_ns = program.elapsed_ns as f64;
    let pages = program.regions.iter().flat_map(|region| &region.pages);
    let (all, moving) = pages.fold((0.0, 0.0), |(all, moving), alike| {
        let pages = alike.pages as f64;
        (all + pages, if can_follow(alike) { moving + pages } else { moving })
    });
    let round_ns = 1e9 * all / PAGES_A_SECOND;
    let looked_ns = (elapsed_ns - DELAY_NS).max(0.0);
    let rounds = looked_ns / round_ns.max(1e9);
    let threads = moved_ns.len().max(1) as f64;
    let price_ns = |end: usize| {
        let moves = if rounds > 0.0 { moving * MOVE_NS[end] } else { 0.0 };
        (all * rounds * FAULT_NS[end] + moves) / threads
    };
    // The share of the run in which pages are on the node that uses them.
    let part = |after_ns: f64| ((elapsed_ns - after_ns) / elapsed_ns.max(1.0)).max(0.0);
    let saves = |part: f64, price_ns: f64| {
        moved_ns.iter().map(|(thread, saved)| (*thread, saved * part - price_ns)).collect()
    };
    let mean_price_ns = f64::midpoint(price_ns(0), price_ns(1));
    [
        saves(part(DELAY_NS + round_ns), mean_price_ns),
        saves(part(DELAY_NS), price_ns(0)),
        saves(0.0, price_ns(1)),
    ]
}

#[cfg(test)]
mod tests {
    use numalab_record::{PagesAlike, Region, Sharing};

    use super::*;

    /// Returns a program of `seconds` seconds with 1 GiB on node 0 that node 1 uses.
    fn program(seconds: u64) -> ProgramMemory {
        let pages = PagesAlike {
            memory_node: 0,
            main_node: 1,
            bound: false,
            sharing: Sharing::Private,
            pages: 1 << 18,
            accesses: 1,
            waits: Vec::new(),
        };
        let region = Region { pages: vec![pages], ..Region::default() };
        ProgramMemory {
            elapsed_ns: seconds * 1_000_000_000,
            regions: vec![region],
            ..ProgramMemory::default()
        }
    }

    fn saved_s(seconds: u64) -> [f64; 3] {
        let moved_ns = BTreeMap::from([(0, 0.5e9 * seconds as f64)]);
        balanced_ns(&moved_ns, &program(seconds)).map(|saved| saved[&0] / 1e9)
    }

    #[test]
    fn a_program_that_ends_before_the_kernel_looks_saves_nothing_and_pays_nothing() {
        assert_eq!(saved_s(1), [0.0; 3]);
    }

    #[test]
    fn pages_that_come_late_save_the_rest_of_the_time_and_cost_their_moves() {
        let [mean, most, least] = saved_s(100);
        // Scanning starts after 1 s and takes 4 s for 1 GiB, on average 2 s per page. Migrating
        // 262,144 pages costs 0.5 s to 2.6 s, and the same number of faults recurs every 4 s.
        assert!((most - (49.5 - 0.52 - 3.24)).abs() < 0.1, "{most}");
        assert!((mean - (47.5 - 1.57 - 8.1)).abs() < 0.2, "{mean}");
        assert!(least < -12.0, "they may never come, and cost all the same: {least}");
    }

    #[test]
    fn memory_used_by_many_nodes_is_not_moved() {
        let mut shared = program(100);
        shared.regions[0].pages[0].sharing = Sharing::Written;
        let found = balanced_ns(&BTreeMap::from([(0, 0.0)]), &shared);
        assert!(found.iter().all(|saved| saved[&0] < 0.0), "{found:?}");
    }
}
