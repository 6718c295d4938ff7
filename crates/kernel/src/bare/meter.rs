//! The current time and the cost of memory: the time stamp counter, and the emulator's counts if
//! there is an emulator.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use numalab_marks::mark;
use numalab_marks::pmu::{PMU_BYTES, Pmu, PmuCounts};
use numalab_membench::{Stamp, Ticks};
use x86_64::instructions::port::Port;

use super::address::pointer;

/// The PCI device with the emulator's counts: ivshmem, a Red Hat device of QEMU.
const IVSHMEM: u32 = 0x1110_1af4;
/// Registers of the device: command and status, and the base of its memory.
const COMMAND: u32 = 0x04;
const MEMORY_BASE: u32 = 0x18;

/// Address of the counts; 0 if there are none.
static COUNTS: AtomicU64 = AtomicU64::new(0);

/// Looks for the emulator's counts on the first bus.
///
/// # Safety
/// All addresses below `mapped_bytes` are mapped at their own addresses from now on, except page 0.
pub unsafe fn find(mapped_bytes: u64) {
    for device in 0..32_u32 {
        if config(device, 0) == IVSHMEM {
            let low = u64::from(config(device, MEMORY_BASE));
            let high = if low & 6 == 4 { u64::from(config(device, MEMORY_BASE + 4)) } else { 0 };
            let base = high << 32 | (low & !15);
            set_config(device, COMMAND, config(device, COMMAND) | 2);
            let end = base.saturating_add(PMU_BYTES as u64);
            if base != 0 && end <= mapped_bytes && pmu_at(base).is_some() {
                COUNTS.store(base, Ordering::Release);
                return;
            }
        }
    }
}

/// Returns true if an emulator is counting.
pub fn is_emulated() -> bool {
    COUNTS.load(Ordering::Acquire) != 0
}

#[derive(Clone, Copy)]
pub struct Moment {
    stamp: Stamp,
    counts: Option<PmuCounts>,
}

/// The difference between two moments.
#[derive(Clone, Copy, Default)]
pub struct Span {
    /// Ticks of the time stamp counter.
    pub ticks: u64,
    /// Time of the cpu's own clock in the emulator, in nanoseconds; 0 without an emulator.
    pub own_ns: u64,
    /// Accesses of the cpu to its own node's memory, and to that of other nodes.
    pub accesses: [u64; 2],
}

impl Moment {
    /// Returns the current moment, on the cpu with this index, which must be the current one.
    pub fn now(place: usize) -> Self {
        let base = COUNTS.load(Ordering::Acquire);
        let counts = if base == 0 {
            None
        } else {
            mark::publish();
            let vcpu = u32::try_from(place).unwrap_or(u32::MAX);
            pmu_at(base).and_then(|pmu| pmu.counts(vcpu))
        };
        Self { stamp: Stamp::now(), counts }
    }

    /// Returns the difference between an earlier moment of the same cpu and this one.
    pub fn since(&self, earlier: &Self) -> Span {
        let Ticks(ticks) = self.stamp.since(earlier.stamp).unwrap_or_default();
        let (Some(now), Some(then)) = (self.counts, earlier.counts) else {
            return Span { ticks, ..Span::default() };
        };
        let accesses = |counts: &PmuCounts, at: usize| counts.loads[at] + counts.stores[at];
        let more = |at| accesses(&now, at).saturating_sub(accesses(&then, at));
        let own_ns = now.time_ns.saturating_sub(then.time_ns);
        Span { ticks, own_ns, accesses: [more(0), more(1)] }
    }

    pub fn stamp(&self) -> Stamp {
        self.stamp
    }
}

pub fn ticks(spans: &[Span]) -> Vec<u64> {
    spans.iter().map(|span| span.ticks).collect()
}

/// Returns the cpus' own times of spans; empty without an emulator.
pub fn own_ns(spans: &[Span]) -> Vec<u64> {
    spans.iter().filter(|_| is_emulated()).map(|span| span.own_ns).collect()
}

/// Returns the accesses of spans; empty without an emulator.
pub fn accesses(spans: &[Span]) -> Vec<[u64; 2]> {
    spans.iter().filter(|_| is_emulated()).map(|span| span.accesses).collect()
}

fn pmu_at(base: u64) -> Option<Pmu<'static>> {
    // SAFETY: the device's memory is never removed, and mapped: `find` has checked that all of it is
    // below the end of the addresses that its caller promises to be. Its words may change at any
    // time, which atomics allow.
    let words = unsafe {
        core::slice::from_raw_parts(pointer::<AtomicU64>(base), PMU_BYTES / size_of::<u64>())
    };
    Pmu::over(words)
}

fn config(device: u32, register: u32) -> u32 {
    // SAFETY: reads PCI configuration space by the mechanism of every PC.
    unsafe {
        Port::<u32>::new(0xcf8).write(1 << 31 | device << 11 | register);
        Port::<u32>::new(0xcfc).read()
    }
}

fn set_config(device: u32, register: u32, value: u32) {
    // SAFETY: enables the memory of a device that has no other driver.
    unsafe {
        Port::<u32>::new(0xcf8).write(1 << 31 | device << 11 | register);
        Port::<u32>::new(0xcfc).write(value);
    }
}
