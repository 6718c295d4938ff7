//! The time of one vCPU in a guest with emulated memory (`crates/emulator`).
//!
//! There, an instruction takes one nanosecond, and a memory access the time given by the machine's
//! topology. The time stamp counter shows the sum over all vCPUs, which take turns; the emulator
//! publishes the time of each separately, as if they ran in parallel.

use crate::cpu_number::{cpu_number, has_cpu_number};
use crate::mark;
use crate::pmu::{PMU_BYTES, PMU_NODES, Pmu, PmuMode};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The first of the [`WORDS`] words that the emulator publishes, once they are in use.
static COUNTERS: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());
const WORDS: usize = PMU_BYTES / size_of::<AtomicU64>();

/// Makes the stamps and clocks of `membench` use the time that the emulator
/// publishes in `page` for the vCPU of the calling thread: threads that measure must be pinned. On
/// x86-64 the system's cpu numbers must be in the time stamp counter's auxiliary register, as under
/// Linux; on aarch64 Linux is queried.
///
/// Returns false, and changes nothing, if nothing is published there or the emulator does not
/// charge virtual time.
pub fn use_counters(page: &'static [AtomicU64]) -> bool {
    let Some(words) = page.get(..WORDS) else {
        return false;
    };
    let virtual_time = |pmu: Pmu<'_>| pmu.mode() == Some(PmuMode::Virtual);
    let usable = Pmu::over(words).is_some_and(virtual_time) && has_cpu_number();
    if usable {
        COUNTERS.store(words.as_ptr().cast_mut(), Ordering::Release);
    }
    usable
}

/// Returns true if times are those of single vCPUs.
#[inline]
pub fn in_use() -> bool {
    !COUNTERS.load(Ordering::Relaxed).is_null()
}

/// Sets the clocks of all vCPUs to the latest of them, so that the following work counts as
/// parallel. Does nothing outside an emulated machine.
pub fn align() {
    let counts = cpu().and_then(|cpu| published()?.counts(cpu));
    if let Some(counts) = counts {
        mark::phase(u8::try_from(counts.phase).unwrap_or(u8::MAX));
    }
}

/// Returns the accesses of the calling thread's vCPU that reached memory, by the index of its node;
/// `None` if no emulator counts them.
pub fn misses() -> Option<[u64; PMU_NODES]> {
    let cpu = cpu()?;
    Some(published()?.counts(cpu)?.misses)
}

/// Returns the time of the calling thread's vCPU, in nanoseconds.
#[inline]
pub fn now_ns() -> Option<u64> {
    if in_use() { own_time_ns() } else { None }
}

#[cold]
fn own_time_ns() -> Option<u64> {
    // Queried first, so that the time it takes is not part of the interval that begins or ends now.
    let cpu = cpu()?;
    published()?.own_time_ns(cpu)
}

/// Returns the number of the calling thread's vCPU, if times are those of single vCPUs.
#[inline]
fn cpu() -> Option<u32> {
    // SAFETY: times are those of single vCPUs only since `use_counters` has checked that the number
    // is available.
    in_use().then(|| unsafe { cpu_number() })
}

/// Returns the counters, with the current ones of this vCPU.
fn published() -> Option<Pmu<'static>> {
    let base = COUNTERS.load(Ordering::Acquire);
    if base.is_null() {
        return None;
    }
    // SAFETY: only `use_counters` stores an address, of this number of words, which are never
    // freed.
    let words = unsafe { core::slice::from_raw_parts(base, WORDS) };
    mark::publish();
    Pmu::over(words)
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
        empty[1].store(2 | 4 << 32, Ordering::Relaxed);
        empty[2].store(256 << 32, Ordering::Relaxed);
        assert!(!use_counters(empty), "it only counts");
        assert!(!in_use());
        align();
        assert_eq!(now_ns(), None);
    }
}
