//! Pools of huge pages: the kernel accepts any number, but reserves only the pages that it finds.

/// Writing 1 compacts all memory; the file holds no value.
pub(super) const COMPACT: &str = "proc/sys/vm/compact_memory";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) wanted: u64,
    pub(super) had: u64,
}

impl Counts {
    /// Reports whether pages are missing.
    pub(super) fn is_short(self) -> bool {
        self.had < self.wanted
    }
}

/// Returns the requested and present pages, if `path` is the file of a pool.
pub(super) fn counts(path: &str, wanted: &str, kept: &str) -> Option<Counts> {
    if !path.ends_with("/nr_hugepages") {
        return None;
    }
    Some(Counts { wanted: wanted.trim().parse().ok()?, had: kept.trim().parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pool_has_counts_of_pages() {
        let file = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
        assert_eq!(counts(file, "16", "0"), Some(Counts { wanted: 16, had: 0 }));
        assert!(counts(file, "16", "7").is_some_and(Counts::is_short));
        assert!(!counts(file, "16", "16").is_some_and(Counts::is_short));
        assert_eq!(counts(file, "many", "0"), None);
        assert_eq!(counts("proc/sys/vm/swappiness", "16", "0"), None);
    }
}
