//! Pages that the program itself binds, which no process policy moves.

use numalab_record::{Region, RegionAccesses};

/// Returns the share of a thread's waiting on a region's pages that concerns pages bound by the
/// program.
pub(super) fn bound_part(region: &Region, accesses: &RegionAccesses) -> f64 {
    let pages = region.pages.iter().filter(|pages| pages.memory_node == accesses.memory_node);
    let waits = pages.flat_map(|pages| {
        let of_node = pages.waits.iter().filter(|waits| waits.cpu_node == accesses.cpu_node);
        of_node.map(|waits| (waits.memory_ns as f64, pages.bound))
    });
    let (all, bound) = waits.fold((0.0, 0.0), |(all, bound), (ns, is_bound)| {
        (all + ns, if is_bound { bound + ns } else { bound })
    });
    if all > 0.0 { bound / all } else { 0.0 }
}
