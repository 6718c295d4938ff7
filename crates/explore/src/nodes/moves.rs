//! Pages that the kernel moved between nodes and tiers: since boot, and per second.

use std::time::Duration;

use numalab_host::proc::PageMoves;
use numalab_record::explore::{Migrations, TierMoves};

/// Converts a number of pages, which is shown with three digits.
#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn pages(count: u64) -> f64 {
    count as f64
}

/// Returns the rate per second in this time. A counter that decreased (because a node was removed
/// and added again) gives 0.
pub(super) fn rate(now: f64, before: f64, passed: Duration) -> f64 {
    ((now - before) / passed.as_secs_f64().max(1e-3)).max(0.0)
}

/// Parses a node's `vmstat`; `None` for a kernel without promotion.
pub(super) fn read(text: &str) -> Option<TierMoves> {
    let PageMoves { promoted, candidates, demoted, .. } = PageMoves::parse(text);
    let (candidates, demoted) = (pages(candidates), pages(demoted));
    Some(TierMoves { promoted: pages(promoted?), candidates, demoted })
}

/// Returns the counts per second from `before` to `now`, which is `passed` later.
pub(super) fn rates(now: &TierMoves, before: &TierMoves, passed: Duration) -> TierMoves {
    TierMoves {
        promoted: rate(now.promoted, before.promoted, passed),
        candidates: rate(now.candidates, before.candidates, passed),
        demoted: rate(now.demoted, before.demoted, passed),
    }
}

/// Parses `/proc/vmstat`; `None` for a kernel without migration.
pub(super) fn read_migrations(text: &str) -> Option<Migrations> {
    let PageMoves { balanced, moved, failed, .. } = PageMoves::parse(text);
    Some(Migrations { balanced: pages(balanced), moved: pages(moved?), failed: pages(failed) })
}

/// Returns the counts per second from `before` to `now`, which is `passed` later.
pub(super) fn migration_rates(
    now: &Migrations,
    before: &Migrations,
    passed: Duration,
) -> Migrations {
    Migrations {
        balanced: rate(now.balanced, before.balanced, passed),
        moved: rate(now.moved, before.moved, passed),
        failed: rate(now.failed, before.failed, passed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "pgpromote_success 962\npgpromote_candidate 1000\npgdemote_kswapd 30\n\
                        pgdemote_direct 4\npgdemote_khugepaged 0\nnr_free_pages 7\n";

    #[test]
    fn a_node_counts_promotions_to_it_and_demotions_from_it() {
        let moves = read(NODE).unwrap();
        assert_eq!(moves, TierMoves { promoted: 962.0, candidates: 1000.0, demoted: 34.0 });
        assert_eq!(read("nr_free_pages 7\n"), None);
    }

    #[test]
    fn rates_are_per_second_and_never_negative() {
        let now = read(NODE).unwrap();
        let before = TierMoves { promoted: 462.0, demoted: 50.0, ..now };
        let rates = rates(&now, &before, Duration::from_millis(500));
        assert_eq!((rates.promoted, rates.candidates, rates.demoted), (1000.0, 0.0, 0.0));
        let text = "numa_pages_migrated 12\npgmigrate_success 20\npgmigrate_fail 3\n";
        let found = read_migrations(text).unwrap();
        assert_eq!((found.balanced, found.moved, found.failed), (12.0, 20.0, 3.0));
        let rates = migration_rates(&found, &Migrations::default(), Duration::from_secs(4));
        assert_eq!((rates.balanced, rates.moved, rates.failed), (3.0, 5.0, 0.75));
    }
}
