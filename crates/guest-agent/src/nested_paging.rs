//! Lets a guest with emulated memory talk to the emulator: it sets the size of its host's pages,
//! and reads counts of page walks.

use std::thread;

use numalab_host::{emulator_counters, pin};
use numalab_marks::mark;
use numalab_marks::pmu::{Pmu, PmuCounts};
use numalab_topology::{CpuId, CpuSet};

/// Counts of page table walks on all of this guest's cpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walks {
    pub walks: u64,
    /// Number of page table entries that walks read, including those of the host's tables.
    pub references: u64,
    /// Loads and stores.
    pub accesses: u64,
    /// Cost of address translation in ns.
    pub translation_ns: u64,
    /// The cpus' own time in ns.
    pub time_ns: u64,
    /// Largest number of entries that one walk has read since the size of the host's pages was set.
    pub longest: u64,
    /// Bytes of the host's pages, 0 without nested paging.
    pub host_page_bytes: u64,
}

impl Walks {
    fn plus(self, counts: &PmuCounts) -> Self {
        Self {
            walks: self.walks + counts.walks,
            references: self.references + counts.references,
            accesses: self.accesses + counts.loads.iter().chain(&counts.stores).sum::<u64>(),
            translation_ns: self.translation_ns + counts.translation_ns,
            time_ns: self.time_ns + counts.time_ns,
            longest: self.longest.max(counts.longest_walk),
            host_page_bytes: counts.host_page_bytes,
        }
    }
}

/// Sets the size of the host's pages in the emulator: 4 KiB (0), 2 MiB (1) or 1 GiB (2).
pub fn set_host_pages(size: u8) {
    mark::host_pages(size);
}

/// Returns the counts of all these cpus so far; `None` without an emulator that publishes them, or
/// if a cpu cannot be used.
pub fn walks(cpus: &CpuSet) -> Option<Walks> {
    let pmu = Pmu::over(emulator_counters()?)?;
    cpus.iter().try_fold(Walks::default(), |sum, cpu| Some(sum.plus(&published(pmu, cpu)?)))
}

/// Returns a cpu's counts, which only the cpu itself can publish.
fn published(pmu: Pmu<'static>, cpu: CpuId) -> Option<PmuCounts> {
    let publish = move || {
        pin(cpu).ok()?;
        mark::publish();
        pmu.counts(cpu.0)
    };
    thread::spawn(publish).join().ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_cpus_add_up_and_sizes_do_not() {
        let mut counts = PmuCounts {
            walks: 2,
            references: 48,
            translation_ns: 30,
            time_ns: 100,
            longest_walk: 24,
            host_page_bytes: 4096,
            ..PmuCounts::default()
        };
        (counts.loads, counts.stores) = ([1, 2], [3, 5]);
        let sum = Walks::default().plus(&counts).plus(&counts);
        let expected = Walks {
            walks: 4,
            references: 96,
            accesses: 22,
            translation_ns: 60,
            time_ns: 200,
            longest: 24,
            host_page_bytes: 4096,
        };
        assert_eq!(sum, expected);
    }
}
