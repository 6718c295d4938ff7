//! `numastat` of a node: the nodes that served allocations (Linux
//! `Documentation/admin-guide/numastat.rst`).

use std::time::Duration;

use numalab_record::explore::Counters;

use super::moves::rate;

/// Parses the file; missing counters are 0, and the result is `None` if there are none at all.
pub(super) fn read(text: &str) -> Option<Counters> {
    let mut counters = Counters::default();
    let mut any = false;
    for (name, pages) in numalab_host::proc::counters(text) {
        let field = match name {
            "numa_hit" => &mut counters.hit,
            "numa_miss" => &mut counters.miss,
            "numa_foreign" => &mut counters.foreign,
            "interleave_hit" => &mut counters.interleave_hit,
            "local_node" => &mut counters.local,
            "other_node" => &mut counters.other,
            _ => continue,
        };
        #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
        let pages = pages as f64;
        *field = pages;
        any = true;
    }
    any.then_some(counters)
}

/// Returns the counts per second from `before` to `now`, which is `passed` later.
pub(super) fn rates(now: &Counters, before: &Counters, passed: Duration) -> Counters {
    let rate = |of: fn(&Counters) -> f64| rate(of(now), of(before), passed);
    Counters {
        hit: rate(|of| of.hit),
        miss: rate(|of| of.miss),
        foreign: rate(|of| of.foreign),
        interleave_hit: rate(|of| of.interleave_hit),
        local: rate(|of| of.local),
        other: rate(|of| of.other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMASTAT: &str = "numa_hit 900\nnuma_miss 7\nnuma_foreign 100\nother_node 3\n";

    #[test]
    fn allocations_meant_for_a_node_that_went_elsewhere_are_its_foreign_share() {
        let counters = read(NUMASTAT).unwrap();
        assert_eq!((counters.hit, counters.miss, counters.local), (900.0, 7.0, 0.0));
        assert_eq!(counters.foreign_share(), Some(0.1));
        assert_eq!(read("nonsense\n"), None);
    }

    #[test]
    fn rates_are_per_second_and_never_negative() {
        let before = read(NUMASTAT).unwrap();
        let now = Counters { hit: 1900.0, miss: 0.0, ..before };
        let rates = rates(&now, &before, Duration::from_millis(500));
        assert_eq!((rates.hit, rates.miss, rates.foreign), (2000.0, 0.0, 0.0));
    }
}
