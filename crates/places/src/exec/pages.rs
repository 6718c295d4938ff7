//! The page sizes of a workload's memory, sampled while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use numalab_host::Root;
use numalab_host::proc::{descendants, field, total_page_sizes};
use numalab_record::explore::PageSizes;

/// The interval between samples, each of which takes about a millisecond.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// The pages seen in all child processes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PagesSeen {
    /// The maximum resident at once.
    pub(crate) resident: u64,
    /// The maximum in transparent huge pages.
    pub(crate) transparent_huge: u64,
    /// The maximum in pages of reserved pools.
    pub(crate) reserved_huge: u64,
    /// The minimum of free pages in the pool of the default huge page size (`HugePages_Free`).
    pub(crate) pool_free_pages: Option<u64>,
    pub(crate) looks: u64,
}

/// Samples page sizes in a separate thread until asked for the result.
pub(crate) struct PagesWatch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<PagesSeen>>,
}

impl PagesWatch {
    pub(crate) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut seen = PagesSeen::default();
            while !stopped.load(Ordering::Relaxed) {
                seen.look();
                thread::park_timeout(BETWEEN_LOOKS);
            }
            seen
        });
        Self { stop, thread: Some(thread) }
    }

    pub(crate) fn end(mut self) -> PagesSeen {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return PagesSeen::default() };
        thread.thread().unpark();
        thread.join().unwrap_or_default()
    }
}

impl PagesSeen {
    pub(crate) fn now() -> Self {
        let mut seen = Self::default();
        seen.look();
        seen
    }

    fn look(&mut self) {
        let mut sum = PageSizes::default();
        // A process that has ended in the meantime has no pages.
        let sizes = descendants(std::process::id()).filter_map(total_page_sizes);
        sizes.for_each(|sizes| sum += sizes);
        self.resident = self.resident.max(sum.resident);
        self.transparent_huge = self.transparent_huge.max(sum.transparent_huge);
        self.reserved_huge = self.reserved_huge.max(sum.reserved_huge);
        let meminfo = Root::live().document("proc/meminfo").unwrap_or_default();
        let free = field(&meminfo, "HugePages_Free").and_then(|pages| pages.parse().ok());
        self.pool_free_pages = match (self.pool_free_pages, free) {
            (Some(least), Some(free)) => Some(least.min(free)),
            (least, free) => least.or(free),
        };
        self.looks += 1;
    }
}
