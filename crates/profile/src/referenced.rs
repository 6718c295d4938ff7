//! Referenced bits as a source: the part of each mapping that was used since they were cleared.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use numalab_host::proc::{
    ClearedBits, SmapsMapping, clear_bits, has_soft_dirty, memory_text, smaps, soft_dirty_pages,
};
use numalab_host::{base_page_bytes, cpu_ns_of, monotonic_ns};

use crate::follow::Follower;
use crate::program::{Program, RangeUse};

/// Time between polls; longer if polling would take too large a share of the time.
const INTERVAL: Duration = Duration::from_millis(250);
const COST: u32 = 25;
/// Larger mappings are reserved rather than used, and reading each page's bit would take too long.
const MOST_BYTES: u64 = 64 << 30;

#[derive(Debug)]
pub(crate) struct Referenced {
    next: Instant,
    begun: Instant,
    /// Time of the last poll.
    last_ns: u64,
    pub rounds: u64,
    /// Each process's cpu time at the last poll.
    ran_ns: BTreeMap<u32, u64>,
    /// True if written pages are known.
    pub soft_dirty: bool,
}

impl Referenced {
    /// Begins with a process by clearing its bits.
    pub(crate) fn begin(process: u32) -> io::Result<Self> {
        clear_bits(process, ClearedBits::Referenced)?;
        let soft_dirty = has_soft_dirty() && clear_bits(process, ClearedBits::SoftDirty).is_ok();
        let begun = Instant::now();
        let last_ns = monotonic_ns();
        let ran_ns = cpu_ns_of(process).map(|ran| (process, ran)).into_iter().collect();
        Ok(Self { next: begun + INTERVAL, begun, last_ns, rounds: 0, ran_ns, soft_dirty })
    }

    /// Returns the time until the next poll.
    pub(crate) fn until_next(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Returns the mean time between polls, in nanoseconds.
    pub(crate) fn interval_ns(&self) -> u64 {
        let all = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        all / self.rounds.max(1)
    }

    /// Polls if the interval since the last poll has passed.
    pub(crate) fn look_if_due(&mut self, follower: &mut Follower) {
        if Instant::now() >= self.next {
            self.look(follower);
        }
    }

    /// Reads the bits of every process, and clears them.
    pub(crate) fn look(&mut self, follower: &mut Follower) {
        let begun = Instant::now();
        let times_ns = (self.last_ns, monotonic_ns());
        self.last_ns = times_ns.1;
        for (process, program) in &mut follower.living {
            // A process that has ended is handled as past.
            let Some(text) = memory_text(*process, "smaps") else { continue };
            let ran_ns = cpu_ns_of(*process);
            let before_ns = ran_ns.and_then(|ran| self.ran_ns.insert(*process, ran));
            // Bits of a process that did not run are uses of its files by others.
            if ran_ns.is_none() || before_ns != ran_ns {
                let used = smaps(&text).into_iter().filter(|of| of.used_bytes() > 0);
                used.for_each(|of| take(program, &of, self.soft_dirty, times_ns));
            }
            let _ = clear_bits(*process, ClearedBits::Referenced);
            if self.soft_dirty {
                let _ = clear_bits(*process, ClearedBits::SoftDirty);
            }
        }
        self.rounds += 1;
        self.next = Instant::now() + INTERVAL.max(begun.elapsed() * COST);
    }
}

fn take(program: &mut Program, mapping: &SmapsMapping, soft_dirty: bool, times_ns: (u64, u64)) {
    let page_bytes = base_page_bytes();
    let used = mapping.used_bytes() / page_bytes;
    let written = (soft_dirty && mapping.end - mapping.start <= MOST_BYTES).then(|| {
        let pages = soft_dirty_pages(program.process, mapping.start, mapping.end);
        // The kernel also marks new pages, used or not.
        pages.map_or(0, |pages| (pages.len() as u64).min(used))
    });
    program.used((mapping.start, mapping.end), RangeUse { used, written }, times_ns);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use numalab_host::proc::Stat;
    use numalab_topology::Machine;

    use super::*;
    use crate::nodes::Nodes;
    use crate::program::Counted;

    #[test]
    fn a_process_that_sleeps_uses_no_pages_although_others_use_its_libraries() {
        let mut asleep = Command::new("sleep").arg("60").spawn().unwrap();
        let process = asleep.id();
        while Stat::of(process).is_some_and(|stat| stat.name != "sleep" || stat.state != 'S') {
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut follower = Follower::new(Nodes::of(&Machine::default()), Counted::Touch);
        follower.adopt(process);
        let mut referenced = Referenced::begin(process).unwrap();
        for _ in 0..8 {
            Command::new("sleep").arg("0").status().unwrap();
        }
        referenced.look(&mut follower);
        let uses: Vec<_> = follower.living[&process].ranges.values().copied().collect();
        asleep.kill().unwrap();
        asleep.wait().unwrap();
        assert_eq!(uses, []);
    }
}
