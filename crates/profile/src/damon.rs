//! DAMON as a source: the used parts of a process's memory, and how often they are used.

use std::time::{Duration, Instant};

use numalab_host::{Root, base_page_bytes, monotonic_ns};
use numalab_knobs::{Knob, Tuning, WATCH_LOOKS, WATCH_SAMPLE_US, watch_hindrance, watched_regions};
use numalab_record::profile::Hindrance;

use crate::follow::Follower;
use crate::program::RangeUse;

/// The kernel's aggregation interval.
const INTERVAL: Duration = Duration::from_micros(WATCH_LOOKS * WATCH_SAMPLE_US);

/// DAMON watching a process. Its settings are restored on drop.
#[derive(Debug)]
pub(crate) struct Damon {
    root: Root,
    process: u32,
    _tuning: Tuning,
    next: Instant,
    last_ns: u64,
    /// Number of times that its regions were read.
    pub rounds: u64,
}

impl Damon {
    /// The kernel's sampling interval, in microseconds.
    pub(crate) const SAMPLE_US: u64 = WATCH_SAMPLE_US;

    pub(crate) fn begin(root: &Root, process: u32) -> Result<Self, Hindrance> {
        if let Some(why) = watch_hindrance(root) {
            return Err(why);
        }
        let unavailable = |error: &dyn std::fmt::Display| Hindrance::DamonUnavailable {
            reason: error.to_string(),
        };
        let mut tuning = Tuning::new(root).map_err(|error| unavailable(&error))?;
        let watched = tuning.set(&Knob::damon_watch(), &format!("watch:{process}"));
        watched.map_err(|error| unavailable(&error))?;
        let (root, next) = (root.clone(), Instant::now() + INTERVAL);
        Ok(Self { root, process, _tuning: tuning, next, last_ns: monotonic_ns(), rounds: 0 })
    }

    /// Returns the time until the next read.
    pub(crate) fn until_next(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Reads DAMON's latest aggregation if it is due.
    pub(crate) fn look_if_due(&mut self, follower: &mut Follower) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + INTERVAL;
        let Some(program) = follower.living.get_mut(&self.process) else { return };
        // The process may have ended meanwhile.
        let Ok(regions) = watched_regions(&self.root) else { return };
        self.rounds += 1;
        let (page_bytes, times_ns) = (base_page_bytes(), (self.last_ns, monotonic_ns()));
        self.last_ns = times_ns.1;
        for region in regions.iter().filter(|region| region.accesses > 0) {
            // DAMON's regions extend over gaps and over mapped memory that is not resident.
            for (start, end, share) in program.resident_parts(region.start, region.end) {
                let pages = (end - start) as f64 / page_bytes as f64 * share;
                let found = region.accesses.min(WATCH_LOOKS) as f64 / WATCH_LOOKS as f64;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a count of pages"
                )]
                let used = (pages * found).round() as u64;
                if used > 0 {
                    program.used((start, end), RangeUse { used, written: None }, times_ns);
                }
            }
        }
    }
}
