//! The rate of the time stamp counter.

use core::arch::x86_64::__cpuid;

use numalab_membench::{Stamp, Ticks};
use x86_64::instructions::port::Port;

/// The rate of the time-stamp counter, and how it was determined.
#[derive(Clone, Copy)]
pub struct Rate {
    /// Ticks per millisecond.
    pub khz: u64,
    /// `cpuid`, `hypervisor`, `pit` or `assumed`.
    pub source: &'static str,
}

/// Finds the rate: from the cpu or the hypervisor, otherwise by measuring against the legacy timer.
pub fn rate() -> Rate {
    if let Some(khz) = khz_from_cpuid() {
        return Rate { khz, source: "cpuid" };
    }
    if let Some(khz) = khz_from_hypervisor() {
        return Rate { khz, source: "hypervisor" };
    }
    for milliseconds in [10, 20, 40, 80] {
        if let Some(khz) = against_timer(milliseconds * 1_000_000) {
            return Rate { khz, source: "pit" };
        }
    }
    Rate { khz: 1_000_000, source: "assumed" }
}

/// Returns the rate from the crystal's rate and the ratio to it (Intel SDM volume 2, CPUID leaf
/// 15H).
fn khz_from_cpuid() -> Option<u64> {
    let leaf = (__cpuid(0).eax >= 0x15).then(|| __cpuid(0x15))?;
    let hz = u64::from(leaf.ecx) * u64::from(leaf.ebx);
    let hz = hz.checked_div(leaf.eax.into())?;
    (hz > 0).then_some(hz / 1000)
}

/// Returns the rate from the timing leaf that VMware defined, and that KVM and others have.
fn khz_from_hypervisor() -> Option<u64> {
    let is_guest = __cpuid(1).ecx >> 31 == 1;
    let last = if is_guest { __cpuid(0x4000_0000).eax } else { 0 };
    let khz = (last >= 0x4000_0010).then(|| __cpuid(0x4000_0010).eax)?;
    (khz > 0).then_some(khz.into())
}

/// Measures ticks per millisecond against the legacy timer; `None` if it does not advance, or if
/// the two halves of the time differ by more than 0.1 %, because one of the clocks stepped or runs
/// unevenly. All in integers: floating-point arithmetic would add 2 KiB of code.
fn against_timer(for_ns: u64) -> Option<u64> {
    let mut timer = Timer::start();
    let start = timer.reading();
    let middle = timer.reading_at(start.ns + for_ns / 2)?;
    let end = timer.reading_at(middle.ns + for_ns / 2)?;
    let (first, second) = (khz(&start, &middle)?, khz(&middle, &end)?);
    if first.abs_diff(second) > first / 1000 {
        return None;
    }
    khz(&start, &end)
}

fn khz(from: &ClockReading, to: &ClockReading) -> Option<u64> {
    let ticks = to.stamp.since(from.stamp).ok()?;
    let khz = (ticks.0 * 1_000_000).checked_div(to.ns - from.ns)?;
    (khz > 0).then_some(khz)
}

/// Both clocks at one moment.
struct ClockReading {
    stamp: Stamp,
    ns: u64,
    /// The time that reading the timer took.
    width: Ticks,
}

/// Number of readings; the one within the shortest interval is used.
const ATTEMPTS: u32 = 16;
/// Number of readings that may be the same: the timer counts about once for each.
const READINGS_UNTIL_STOPPED: u32 = 10_000;

/// Channel 2 of the 8254, counting down from 65,536 at 1.193182 MHz repeatedly.
struct Timer {
    last: u16,
    counts: u64,
}

impl Timer {
    fn start() -> Self {
        // SAFETY: opens the channel's gate with the speaker off, then sets mode 2, count 0
        // (65,536).
        unsafe {
            let mut gate = Port::<u8>::new(0x61);
            let value = gate.read();
            gate.write((value & !2) | 1);
            Port::<u8>::new(0x43).write(0xb4);
            Port::<u8>::new(0x42).write(0);
            Port::<u8>::new(0x42).write(0);
        }
        Self { last: Self::read(), counts: 0 }
    }

    /// Returns the tightest of several readings: the processor may have been interrupted during the
    /// others.
    fn reading(&mut self) -> ClockReading {
        let mut best = self.attempt();
        for _ in 1..ATTEMPTS {
            let next = self.attempt();
            if next.width < best.width {
                best = next;
            }
        }
        best
    }

    /// Returns a reading once the timer has passed a time; `None` if it does not advance.
    fn reading_at(&mut self, ns: u64) -> Option<ClockReading> {
        let (mut last, mut readings) = (self.now_ns(), 0);
        while last <= ns {
            let now = self.now_ns();
            readings = if now == last { readings + 1 } else { 0 };
            if readings == READINGS_UNTIL_STOPPED {
                return None;
            }
            last = now;
        }
        Some(self.reading())
    }

    fn attempt(&mut self) -> ClockReading {
        let stamp = Stamp::now();
        let ns = self.now_ns();
        let width = Stamp::now().since(stamp).unwrap_or(Ticks(u64::MAX));
        ClockReading { stamp, ns, width }
    }

    fn now_ns(&mut self) -> u64 {
        let now = Self::read();
        // Correct as long as it is called more often than every 54 ms.
        self.counts += u64::from(self.last.wrapping_sub(now));
        self.last = now;
        self.counts * 1_000_000_000 / 1_193_182
    }

    fn read() -> u16 {
        // SAFETY: latches the channel's count and reads both of its bytes.
        let bytes = unsafe {
            Port::<u8>::new(0x43).write(0x80);
            let mut channel = Port::<u8>::new(0x42);
            [channel.read(), channel.read()]
        };
        u16::from_le_bytes(bytes)
    }
}
