//! Which pages a workload's memory is on, looked at while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use numalab_host::Root;
use numalab_host::proc::{descendants, field, total_page_sizes};
use numalab_record::explore::PageSizes;

/// How often it is looked. A look takes about a millisecond.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// What was seen of the pages of all processes that this one started, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PagesSeen {
    /// The most that was resident at once.
    pub(crate) resident: u64,
    /// The most in transparent huge pages.
    pub(crate) transparent_huge: u64,
    /// The most in pages of pools.
    pub(crate) reserved_huge: u64,
    /// The least that the pool of the usual huge pages had free (`HugePages_Free`).
    pub(crate) pool_free_pages: Option<u64>,
    /// How often it was looked.
    pub(crate) looks: u64,
}

/// Looks at pages in a thread of its own until it is asked what it saw.
pub(crate) struct PagesWatch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<PagesSeen>>,
}

impl PagesWatch {
    /// Begins to look.
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

    /// Ends, and gives what was seen.
    pub(crate) fn end(mut self) -> PagesSeen {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return PagesSeen::default() };
        thread.thread().unpark();
        thread.join().unwrap_or_default()
    }
}

impl PagesSeen {
    /// What is there now.
    pub(crate) fn now() -> Self {
        let mut seen = Self::default();
        seen.look();
        seen
    }

    fn look(&mut self) {
        let mut sum = PageSizes::default();
        // A process that has ended since has no pages.
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
