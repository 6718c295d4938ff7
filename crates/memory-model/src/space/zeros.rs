//! Pages that were only read: they map the kernel's page of zeros.

use alloc::vec::Vec;
use core::ops::Range;

use super::{Page, Placement, Space};

/// Number of pages of zeros on cores whose nearest cache holds a line under one address only: twice
/// the number for which a cache of 32 KiB has room.
pub(super) const PAGES: usize = 16;

impl Space {
    /// Maps the page of zeros for a thread on node `home` that reads private memory which was never
    /// written: the kernel places such a page only when it is written. Returns the page of zeros,
    /// or `None` if the machine's memory is exhausted.
    pub fn read_zeros(&mut self, number: u64, home: usize) -> Option<Page> {
        let at = usize::try_from(number % self.zeros.len() as u64).unwrap_or(0);
        if self.zeros[at].is_none() {
            // Linux's page of zeros is part of the kernel, which is in the first node's memory.
            let found = self.place(number, 0, &Placement::Local, false)?;
            self.zeros[at] = Some(Page { bound: true, ..found });
        }
        let table = self.table_of(number).unwrap_or(home);
        self.zeroed.insert(number, table);
        self.zeros[at].map(|zeros| Page { table, ..zeros })
    }

    /// Returns true if a page was read, but not written.
    pub fn is_zeroed(&self, number: u64) -> bool {
        self.zeroed.contains_key(&number)
    }

    /// Returns true if any of these pages was read, but not written.
    pub fn has_zeros(&self, numbers: Range<u64>) -> bool {
        self.zeroed.range(numbers).next().is_some()
    }

    /// Returns which of these pages were read, but not written.
    pub fn zeroed(&self, numbers: Range<u64>) -> Vec<u64> {
        self.zeroed.range(numbers).map(|(number, _)| *number).collect()
    }

    /// Makes the next access to pages that were only read a first access.
    pub fn forget_zeros(&mut self, numbers: Range<u64>) {
        self.zeroed(numbers).iter().for_each(|number| _ = self.zeroed.remove(number));
    }
}
