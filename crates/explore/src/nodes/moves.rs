//! What the kernel moved between nodes and tiers: since boot, and in a second.

use std::time::Duration;

use numalab_host::proc::PageMoves;
use serde::Serialize;

/// Pages that came to a node by promotion and left it by demotion: since boot, or in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TierMoves {
    /// Promoted to this node.
    pub promoted: f64,
    /// Found hot enough to be promoted to it.
    pub candidates: f64,
    /// Demoted from this node.
    pub demoted: f64,
}

/// Pages that the kernel moved on the whole machine: since boot, or in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Migrations {
    /// By NUMA balancing, promotions included.
    pub balanced: f64,
    /// For any reason, compaction and demotion included.
    pub moved: f64,
    /// That could not be moved.
    pub failed: f64,
}

/// A number of pages, to be shown with three digits.
#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn pages(count: u64) -> f64 {
    count as f64
}

/// A second's part of what happened in this time. A counter that went back (a node that was taken
/// out and in) counts as 0.
pub(super) fn rate(now: f64, before: f64, passed: Duration) -> f64 {
    ((now - before) / passed.as_secs_f64().max(1e-3)).max(0.0)
}

impl TierMoves {
    /// Reads a node's `vmstat`; none of a kernel that does not promote.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let PageMoves { promoted, candidates, demoted, .. } = PageMoves::parse(text);
        let (candidates, demoted) = (pages(candidates), pages(demoted));
        Some(Self { promoted: pages(promoted?), candidates, demoted })
    }

    /// What happened a second from `before` until this, `passed` later.
    #[must_use]
    pub fn rates(&self, before: &Self, passed: Duration) -> Self {
        Self {
            promoted: rate(self.promoted, before.promoted, passed),
            candidates: rate(self.candidates, before.candidates, passed),
            demoted: rate(self.demoted, before.demoted, passed),
        }
    }
}

impl Migrations {
    /// Reads `/proc/vmstat`; none of a kernel that cannot migrate.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let PageMoves { balanced, moved, failed, .. } = PageMoves::parse(text);
        Some(Self { balanced: pages(balanced), moved: pages(moved?), failed: pages(failed) })
    }

    /// What happened a second from `before` until this, `passed` later.
    #[must_use]
    pub fn rates(&self, before: &Self, passed: Duration) -> Self {
        Self {
            balanced: rate(self.balanced, before.balanced, passed),
            moved: rate(self.moved, before.moved, passed),
            failed: rate(self.failed, before.failed, passed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "pgpromote_success 962\npgpromote_candidate 1000\npgdemote_kswapd 30\n\
                        pgdemote_direct 4\npgdemote_khugepaged 0\nnr_free_pages 7\n";

    #[test]
    fn a_node_tells_what_was_promoted_to_it_and_demoted_from_it() {
        let moves = TierMoves::read(NODE).unwrap();
        assert_eq!(moves, TierMoves { promoted: 962.0, candidates: 1000.0, demoted: 34.0 });
        assert_eq!(TierMoves::read("nr_free_pages 7\n"), None);
    }

    #[test]
    fn rates_are_per_second_and_never_negative() {
        let now = TierMoves::read(NODE).unwrap();
        let before = TierMoves { promoted: 462.0, demoted: 50.0, ..now };
        let rates = now.rates(&before, Duration::from_millis(500));
        assert_eq!((rates.promoted, rates.candidates, rates.demoted), (1000.0, 0.0, 0.0));
        let text = "numa_pages_migrated 12\npgmigrate_success 20\npgmigrate_fail 3\n";
        let found = Migrations::read(text).unwrap();
        assert_eq!((found.balanced, found.moved, found.failed), (12.0, 20.0, 3.0));
        let rates = found.rates(&Migrations::default(), Duration::from_secs(4));
        assert_eq!((rates.balanced, rates.moved, rates.failed), (3.0, 5.0, 0.75));
    }
}
