//! Page faults: the kernel's work where a program uses a page for the first time.

use serde::{Deserialize, Serialize};

use crate::space::HUGE_PAGES;

/// The time of a page fault by its cause, in ns, 0 to 1000000000. Pages are 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faults {
    /// A first load of private memory, which maps the page of zeros.
    pub load_ns: f64,
    /// A first store to private memory, for which a page is cleared.
    pub store_ns: f64,
    /// A first store to a page of a file or of a parent process, which is copied.
    pub copy_ns: f64,
    /// A first load from a file, which maps the 16 pages around it that are in memory.
    pub file_ns: f64,
    /// Freeing a page that was stored to, as in munmap(2).
    pub free_ns: f64,
    /// Unmapping a page of a file that was mapped.
    #[serde(default)]
    pub unmap_ns: f64,
    /// A first store to a page of 2 MiB, all of which is cleared; by default the time of 512 pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_ns: Option<f64>,
}

/// Causes of page faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A load of private memory.
    Load,
    /// A store to private memory.
    Store,
    /// A store to a page that is shared.
    Copy,
    /// A store to a page that was shared before.
    Reuse,
    /// A load from a file.
    File,
    /// A store to private memory that gets a huge page.
    Huge,
}

impl Faults {
    /// Returns the time of a fault, in ns.
    pub fn takes_ns(&self, fault: Fault) -> f64 {
        match fault {
            // Both change only one entry of a page table.
            Fault::Load | Fault::Reuse => self.load_ns,
            Fault::Store => self.store_ns,
            Fault::Copy => self.copy_ns,
            Fault::File => self.file_ns,
            Fault::Huge => self.huge_ns.unwrap_or(HUGE_PAGES as f64 * self.store_ns),
        }
    }

    /// Returns the time to free pages, and to unmap pages of files, in ns.
    pub fn frees_ns(&self, pages: u64, of_files: u64) -> f64 {
        pages as f64 * self.free_ns + of_files as f64 * self.unmap_ns
    }

    /// Returns all times, by name.
    pub(super) fn all(&self) -> [(&'static str, f64); 7] {
        [
            ("faults load_ns", self.load_ns),
            ("faults store_ns", self.store_ns),
            ("faults copy_ns", self.copy_ns),
            ("faults file_ns", self.file_ns),
            ("faults free_ns", self.free_ns),
            ("faults unmap_ns", self.unmap_ns),
            ("faults huge_ns", self.huge_ns.unwrap_or_default()),
        ]
    }
}
