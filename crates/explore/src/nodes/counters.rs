//! `numastat` of a node: where allocations went (Linux `Documentation/admin-guide/numastat.rst`).

use std::time::Duration;

use serde::Serialize;

use super::moves::rate;

/// Pages since boot, or pages in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counters {
    /// Meant for this node and got there.
    pub hit: f64,
    /// Meant for another node, came here.
    pub miss: f64,
    /// Meant for this node, went elsewhere.
    pub foreign: f64,
    /// Interleaved here as meant.
    pub interleave_hit: f64,
    /// Taken by a process that ran on this node.
    pub local: f64,
    /// Taken by a process that ran elsewhere.
    pub other: f64,
}

impl Counters {
    /// Reads the file; names that are missing count as 0, none at all as `None`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut counters = Self::default();
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

    /// What happened a second from `before` until this, `passed` later.
    #[must_use]
    pub fn rates(&self, before: &Self, passed: Duration) -> Self {
        let rate = |now: f64, before: f64| rate(now, before, passed);
        Self {
            hit: rate(self.hit, before.hit),
            miss: rate(self.miss, before.miss),
            foreign: rate(self.foreign, before.foreign),
            interleave_hit: rate(self.interleave_hit, before.interleave_hit),
            local: rate(self.local, before.local),
            other: rate(self.other, before.other),
        }
    }

    /// The share of the allocations meant for this node that went elsewhere, 0 to 1.
    #[must_use]
    pub fn foreign_share(&self) -> Option<f64> {
        let meant = self.hit + self.foreign;
        (meant > 0.0).then(|| self.foreign / meant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMASTAT: &str = "numa_hit 900\nnuma_miss 7\nnuma_foreign 100\nother_node 3\n";

    #[test]
    fn what_was_meant_for_a_node_and_went_elsewhere_is_its_foreign_share() {
        let counters = Counters::read(NUMASTAT).unwrap();
        assert_eq!((counters.hit, counters.miss, counters.local), (900.0, 7.0, 0.0));
        assert_eq!(counters.foreign_share(), Some(0.1));
        assert_eq!(Counters::read("nonsense\n"), None);
    }

    #[test]
    fn rates_are_per_second_and_never_negative() {
        let before = Counters::read(NUMASTAT).unwrap();
        let now = Counters { hit: 1900.0, miss: 0.0, ..before };
        let rates = now.rates(&before, Duration::from_millis(500));
        assert_eq!((rates.hit, rates.miss, rates.foreign), (2000.0, 0.0, 0.0));
    }
}
