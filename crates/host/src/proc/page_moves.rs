//! The kernel's counters of pages moved between nodes and tiers (Linux `include/linux/mmzone.h`,
//! `include/linux/vm_event_item.h`).

use super::fields::counters;

/// Pages moved since boot, on the machine (`/proc/vmstat`) or from one node (its `vmstat`, which
/// has promotions and demotions only).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageMoves {
    /// Promoted to a faster tier; `None` on a kernel that does not promote.
    pub promoted: Option<u64>,
    /// Found hot enough to be promoted.
    pub candidates: u64,
    /// Demoted to a slower tier.
    pub demoted: u64,
    /// Moved by NUMA balancing, including promotions.
    pub balanced: u64,
    /// Moved for any reason, including compaction and demotion; `None` on a kernel that cannot
    /// migrate.
    pub moved: Option<u64>,
    /// Failed to move.
    pub failed: u64,
}

impl PageMoves {
    /// Parses the counters, skipping others.
    pub fn parse(text: &str) -> Self {
        let mut moves = Self::default();
        for (name, pages) in counters(text) {
            match name {
                "pgpromote_success" => moves.promoted = Some(pages),
                "pgpromote_candidate" => moves.candidates = pages,
                "numa_pages_migrated" => moves.balanced = pages,
                "pgmigrate_success" => moves.moved = Some(pages),
                "pgmigrate_fail" => moves.failed = pages,
                _ if name.starts_with("pgdemote_") => moves.demoted += pages,
                _ => {}
            }
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_demoting_counts_and_a_missing_counter_is_absent() {
        let text = "pgpromote_success 962\npgdemote_kswapd 30\npgdemote_direct 4\n\
                    pgdemote_proactive 2\npgmigrate_fail 3\nnr_free_pages 7\n";
        let moves = PageMoves::parse(text);
        assert_eq!((moves.promoted, moves.demoted, moves.failed), (Some(962), 36, 3));
        assert_eq!(moves.moved, None);
        assert_eq!(PageMoves::parse("nr_free_pages 7\n"), PageMoves::default());
    }
}
