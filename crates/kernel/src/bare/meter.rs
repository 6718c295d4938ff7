//! What time it is, and what memory cost: the time stamp counter, and the emulator's counts
//! where there is one.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use numalab_membench::mark;
use numalab_membench::pmu::{PMU_BYTES, Pmu, PmuCounts};
use numalab_membench::{Stamp, Ticks};
use x86_64::instructions::port::Port;

use super::address::pointer;

/// The device that shows the emulator's counts: ivshmem, a Red Hat device of QEMU.
const IVSHMEM: u32 = 0x1110_1af4;
/// Its registers: command and status, and the base of its memory.
const COMMAND: u32 = 0x04;
const MEMORY_BASE: u32 = 0x18;

/// Where the counts are; 0 where there are none.
static COUNTS: AtomicU64 = AtomicU64::new(0);

/// Looks for the emulator's counts on the first bus; `mapped_bytes` is where memory ends for us.
pub fn find(mapped_bytes: u64) {
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

/// Whether an emulator counts.
pub fn is_emulated() -> bool {
    COUNTS.load(Ordering::Acquire) != 0
}

/// A moment on a cpu.
#[derive(Clone, Copy)]
pub struct Moment {
    stamp: Stamp,
    counts: Option<PmuCounts>,
}

/// What lies between two moments.
#[derive(Clone, Copy, Default)]
pub struct Span {
    /// By the time stamp counter.
    pub ticks: u64,
    /// By the cpu's own clock in the emulator, in nanoseconds; 0 without one.
    pub own_ns: u64,
    /// Accesses of the cpu to its own node's memory, and to others'.
    pub accesses: [u64; 2],
}

impl Moment {
    /// Now, on the cpu of this place, which runs this.
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

    /// What lies between an earlier moment of the same cpu and this one.
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

    /// The time stamp.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }
}

/// The ticks of spans.
pub fn ticks(spans: &[Span]) -> Vec<u64> {
    spans.iter().map(|span| span.ticks).collect()
}

/// The cpus' own times of spans; none without an emulator.
pub fn own_ns(spans: &[Span]) -> Vec<u64> {
    spans.iter().filter(|_| is_emulated()).map(|span| span.own_ns).collect()
}

/// The accesses of spans; none without an emulator.
pub fn accesses(spans: &[Span]) -> Vec<[u64; 2]> {
    spans.iter().filter(|_| is_emulated()).map(|span| span.accesses).collect()
}

fn pmu_at(base: u64) -> Option<Pmu<'static>> {
    // SAFETY: the device's memory is mapped, never goes away, and `find` saw that all of it lies
    // below the end of what is mapped; words of it may change at any time, as atomics may.
    let words = unsafe {
        core::slice::from_raw_parts(pointer::<AtomicU64>(base), PMU_BYTES / size_of::<u64>())
    };
    Pmu::over(words)
}

fn config(device: u32, register: u32) -> u32 {
    // SAFETY: reads PCI configuration space by the mechanism that every PC has.
    unsafe {
        Port::<u32>::new(0xcf8).write(1 << 31 | device << 11 | register);
        Port::<u32>::new(0xcfc).read()
    }
}

fn set_config(device: u32, register: u32, value: u32) {
    // SAFETY: switches the memory of a device on that nobody else drives.
    unsafe {
        Port::<u32>::new(0xcf8).write(1 << 31 | device << 11 | register);
        Port::<u32>::new(0xcfc).write(value);
    }
}
