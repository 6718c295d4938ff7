//! Which pages a workload's memory is on, looked at while it runs.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often it is looked. A look takes about a millisecond.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// What was seen of the pages of all processes that this one started, in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PagesSeen {
    /// The most that was resident at once.
    pub(crate) resident_kib: u64,
    /// The most in transparent huge pages (`AnonHugePages` of smaps).
    pub(crate) transparent_kib: u64,
    /// The most in pages of pools (`Private_Hugetlb` and `Shared_Hugetlb` of smaps).
    pub(crate) pool_kib: u64,
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
        let mut sums = BTreeMap::new();
        let mut waiting = children(std::process::id());
        while let Some(pid) = waiting.pop() {
            waiting.extend(children(pid));
            // A process that has ended since has no pages.
            let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
            for (name, kib) in fields(&text.unwrap_or_default()) {
                *sums.entry(name).or_insert(0) += kib;
            }
        }
        let sum = |name: &str| sums.get(name).copied().unwrap_or(0);
        self.resident_kib = self.resident_kib.max(sum("Rss"));
        self.transparent_kib = self.transparent_kib.max(sum("AnonHugePages"));
        let pool = sum("Private_Hugetlb") + sum("Shared_Hugetlb");
        self.pool_kib = self.pool_kib.max(pool);
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let free = fields(&meminfo).find(|(name, _)| name == "HugePages_Free");
        let free = free.map(|(_, pages)| pages);
        self.pool_free_pages = match (self.pool_free_pages, free) {
            (Some(least), Some(free)) => Some(least.min(free)),
            (least, free) => least.or(free),
        };
        self.looks += 1;
    }
}

/// `Name:  123 kB` of each line.
fn fields(text: &str) -> impl Iterator<Item = (String, u64)> + '_ {
    text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        Some((name.to_owned(), rest.split_whitespace().next()?.parse().ok()?))
    })
}

/// The processes that a process started, by any of its threads.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")));
    let list: Vec<String> = lists.map(Result::unwrap_or_default).collect();
    list.iter().flat_map(|list| list.split_whitespace()).filter_map(|id| id.parse().ok()).collect()
}
