//! The time of one vCPU in a guest whose memory is emulated (`crates/emulator`).
//!
//! There, an instruction takes one nanosecond and an access to memory what the machine's
//! topology says. The time stamp counter shows the sum over all vCPUs, which take turns;
//! what the emulator publishes is the time of each by itself, as if they ran in parallel.

use crate::arch;
use crate::mark::{self, PMU_BYTES, Pmu, PmuMode};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// What the emulator publishes, once it is to be used.
static COUNTERS: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// From now on, [`Stamp`](crate::Stamp)s and [`Clock`](crate::Clock)s go by what the
/// emulator publishes in `page`, of the vCPU that the calling thread is on: threads that
/// measure must be pinned. The system's cpu numbers must be in the time stamp counter's
/// auxiliary register, as Linux keeps them.
///
/// False, and nothing is changed, if nothing is published there or the emulator does not
/// charge virtual time.
pub fn use_counters(page: &'static [AtomicU64]) -> bool {
    if size_of_val(page) < PMU_BYTES || arch::cpu_number().is_none() {
        return false;
    }
    let base = page.as_ptr().cast_mut().cast::<u8>();
    // SAFETY: so many bytes were just found there, aligned as u64 is, and they stay.
    let pmu = unsafe { Pmu::at(base) };
    let charges = pmu.is_some_and(|pmu| pmu.mode() == Some(PmuMode::Virtual));
    if charges {
        COUNTERS.store(base, Ordering::Release);
    }
    charges
}

/// Whether times are a vCPU's own.
#[must_use]
pub fn in_use() -> bool {
    !COUNTERS.load(Ordering::Relaxed).is_null()
}

/// Sets the clocks of all vCPUs to the latest of them, so that what they do from now on
/// counts as parallel. Nothing at all elsewhere than in an emulated machine.
pub fn align() {
    if let Some(counts) = own_counts() {
        mark::phase(u8::try_from(counts.phase).unwrap_or(u8::MAX));
    }
}

/// The time of the vCPU that the calling thread is on, in nanoseconds.
pub(crate) fn now_ns() -> Option<u64> {
    own_counts().map(|counts| counts.time_ns)
}

#[inline]
fn own_counts() -> Option<mark::PmuCounts> {
    let base = COUNTERS.load(Ordering::Acquire);
    if base.is_null() {
        return None;
    }
    published(base)
}

#[cold]
fn published(base: *const u8) -> Option<mark::PmuCounts> {
    // SAFETY: only `use_counters` stores the address, of a slice that stays.
    let pmu = unsafe { Pmu::at(base) }?;
    mark::publish();
    pmu.counts(arch::cpu_number()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    #[test]
    fn a_page_without_a_virtual_clock_is_not_used() {
        let page = |words: usize| -> &'static [AtomicU64] {
            let words: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
            Box::leak(words.into_boxed_slice())
        };
        assert!(!use_counters(page(8)), "too short");
        let empty = page(PMU_BYTES / 8);
        assert!(!use_counters(empty), "no magic word");
        empty[0].store(u64::from_le_bytes(*b"NUMAPMU1"), Ordering::Relaxed);
        empty[1].store(1 | 4 << 32, Ordering::Relaxed);
        empty[2].store(256 << 32, Ordering::Relaxed);
        assert!(!use_counters(empty), "it only counts");
        assert!(!in_use());
        align();
        assert_eq!(now_ns(), None);
    }
}
