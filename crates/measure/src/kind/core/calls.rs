//! System calls that programs make often, with nothing to wait for.

mod files;

use std::hint::black_box;
use std::os::unix::process::parent_id;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{current, park, scope, sleep, yield_now};
use std::time::Duration;

use numalab_host::map_and_unmap;
use numalab_membench::{Clock, Stamp};
use numalab_record::Metric;
use numalab_topology::CpuId;

use crate::buffer::pinned;
use crate::error::MeasureError;
use files::Files;

/// System calls timed in a window; fewer calls of mmap and munmap, which take several times as long.
const CALLS: u32 = 200;
const MAPPINGS: u32 = 20;
#[cfg(target_arch = "x86_64")]
const CPUIDS: u32 = 20;
const PAGE_BYTES: usize = 4 << 10;
/// Wake-ups in a window, and the pause before each, in which the cpu of the thread to wake becomes
/// idle.
const WAKES: u32 = 9;
const PAUSE: Duration = Duration::from_micros(200);

/// Files, and the cpu on which a thread is woken.
pub(super) struct Calls {
    files: Files,
    /// The cpu of a thread to wake.
    other: Option<CpuId>,
}

impl Calls {
    /// Opens the files; `other` is an idle cpu.
    pub fn new(other: Option<CpuId>) -> Self {
        Self { files: Files::new(), other }
    }

    /// Times each kind of call.
    pub fn take(&mut self, clock: &Clock) -> Result<Vec<(Metric, f64)>, MeasureError> {
        let call_ns = each_ns(clock, CALLS, || _ = black_box(parent_id()))?;
        let mut values =
            vec![(Metric::SystemCall, call_ns), (Metric::Yield, each_ns(clock, CALLS, yield_now)?)];
        let mut failed = None;
        let mapping_ns = each_ns(clock, MAPPINGS, || {
            failed = map_and_unmap(PAGE_BYTES).err().or(failed.take());
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        // One call maps, another one unmaps.
        values.push((Metric::PageMap, mapping_ns / 2.0));
        values.extend(self.files.take(clock, call_ns)?);
        #[cfg(target_arch = "x86_64")]
        {
            let cpuid_ns = each_ns(clock, CPUIDS, || _ = black_box(std::arch::x86_64::__cpuid(0)))?;
            values.push((Metric::Cpuid, cpuid_ns));
        }
        if let Some(other) = self.other {
            values.push((Metric::Wake, wake_ns(clock, other)?));
        }
        Ok(values)
    }
}

/// Returns the mean time of an action that is repeated.
fn each_ns(clock: &Clock, times: u32, mut acts: impl FnMut()) -> Result<f64, MeasureError> {
    let start = Stamp::now();
    (0..times).for_each(|_| acts());
    let ticks = Stamp::now().since(start)?;
    Ok(clock.ns(ticks) / f64::from(times))
}

/// Returns the median time in which one of two threads wakes the other one, on another cpu.
fn wake_ns(clock: &Clock, other: CpuId) -> Result<f64, MeasureError> {
    let (here, turns) = (current(), AtomicU32::new(0));
    let awaits = |turn: u32| {
        while turns.load(Ordering::Acquire) != turn {
            park();
        }
    };
    let mut round_trips_ns = Vec::new();
    scope(|scope| {
        let partner = scope.spawn(|| {
            // Where it cannot be pinned, it has to answer all the same.
            let _pinned = pinned(other);
            for wake in 0..WAKES {
                awaits(2 * wake + 1);
                turns.store(2 * wake + 2, Ordering::Release);
                here.unpark();
            }
        });
        for wake in 0..WAKES {
            sleep(PAUSE);
            let start = Stamp::now();
            turns.store(2 * wake + 1, Ordering::Release);
            partner.thread().unpark();
            awaits(2 * wake + 2);
            let ticks = Stamp::now().since(start);
            round_trips_ns.push(ticks.map(|ticks| clock.ns(ticks)));
        }
    });
    let mut round_trips_ns = round_trips_ns.into_iter().collect::<Result<Vec<f64>, _>>()?;
    round_trips_ns.sort_by(f64::total_cmp);
    Ok(round_trips_ns[round_trips_ns.len() / 2] / 2.0)
}
