//! What a program itself binds, which no policy of its process moves.

use numalab_record::{Region, RegionAccesses};

/// Of what a thread's node waits for on a region's pages there, the part for pages that the program
/// itself bound.
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
