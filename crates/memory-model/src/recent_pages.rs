//! The pages from which a core has last read lines of memory. Memory is faster in these pages than
//! elsewhere: their rows are open, and prefetchers that stay within a page fetch neighbouring
//! lines. Chases through one page at a time, from which a machine's latency is taken, show only the
//! faster case.

const PAGE_SHIFT: u32 = 12;
/// Number of pages that a program reads in turn without leaving them; assumed.
const PAGES: usize = 16;

/// The pages, most recent first.
#[derive(Debug, Default)]
pub(crate) struct RecentPages {
    /// Their numbers plus one; 0 for none.
    pages: [u64; PAGES],
}

impl RecentPages {
    /// Records a read at an address; returns true if its page is not one of the recent ones.
    pub fn enters(&mut self, address: u64) -> bool {
        let page = (address >> PAGE_SHIFT) + 1;
        let held = self.pages.iter().position(|&other| other == page);
        self.pages[..=held.unwrap_or(PAGES - 1)].rotate_right(1);
        self.pages[0] = page;
        held.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_up_to_the_number_kept_can_be_read_in_turn() {
        let entered = |pages: u64| {
            let mut recent = RecentPages::default();
            (0..1000).filter(|at| recent.enters((at % pages) << PAGE_SHIFT | 0x40)).count()
        };
        assert_eq!([entered(1), entered(16), entered(17)], [1, 16, 1000]);
    }
}
