//! A program's behaviour over time, in stretches that grow longer with time.

use numalab_record::{Stretch, StretchAccesses};

use super::seats::Seats;
use super::thread::Thread;

/// Maximum number of stretches; more are joined in pairs. Fewer than a screen has columns.
const MOST: usize = 240;
/// Initial length of a stretch, in ps.
const FIRST_PS: u64 = 10_000_000;

/// A thread's figures at the end of the last stretch.
#[derive(Clone, Debug, Default)]
struct Seen {
    busy_ps: u64,
    waited_ps: u64,
    misses: u64,
    /// Accesses by region and node, as in the thread's account.
    accesses: Vec<u64>,
}

/// The stretches so far, with region numbers.
#[derive(Debug)]
pub struct TimeLine {
    width_ps: u64,
    /// End of the current stretch, in ps.
    next_ps: u64,
    stretches: Vec<Stretch>,
    /// The figures of threads by seat.
    seen: Vec<Seen>,
}

impl Default for TimeLine {
    fn default() -> Self {
        Self { width_ps: FIRST_PS, next_ps: FIRST_PS, stretches: Vec::new(), seen: Vec::new() }
    }
}

impl TimeLine {
    /// Returns true if the current stretch is over at this time.
    #[inline]
    pub fn is_due(&self, now_ps: u64) -> bool {
        now_ps >= self.next_ps
    }

    /// Ends the current stretch, with the work of these threads since the last one; their accesses
    /// must be settled.
    pub fn end(&mut self, now_ps: u64, threads: &Seats<Thread>, nodes: usize) {
        let mut stretch = Stretch {
            end_ns: now_ps / 1000,
            waited_ns: Some(0),
            misses: Some(0),
            ..Stretch::default()
        };
        self.seen.resize_with(threads.len().max(self.seen.len()), Seen::default);
        for (thread, seen) in threads.iter().zip(&mut self.seen) {
            seen.goes_on(thread, nodes, &mut stretch);
        }
        match self.stretches.last_mut() {
            // A thread that is behind the others adds to the last stretch.
            Some(last) if last.end_ns >= stretch.end_ns => last.join(&stretch),
            _ => self.stretches.push(stretch),
        }
        if self.stretches.len() > MOST {
            self.stretches = Stretch::joined(&self.stretches);
            self.width_ps *= 2;
        }
        self.next_ps = now_ps + self.width_ps;
    }

    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }
}

impl Seen {
    /// Adds what the thread did since the last stretch.
    fn goes_on(&mut self, thread: &Thread, nodes: usize, stretch: &mut Stretch) {
        let (mut waited_ps, mut misses) = (0, 0);
        let all = thread.account.all();
        self.accesses.resize(all.len().max(self.accesses.len()), 0);
        for (slot, (done, before)) in all.iter().zip(&mut self.accesses).enumerate() {
            waited_ps += done.waited_ps;
            misses += done.misses;
            let count = done.accesses.iter().sum::<u64>() - *before;
            if count > 0 {
                *before += count;
                let (region, local) = (slot / nodes, slot % nodes == thread.home);
                let [local, remote] = if local { [count, 0] } else { [0, count] };
                stretch.add(StretchAccesses { region, local, remote, unplaced: 0 });
            }
        }
        let more_ns = |new_ps: u64, before_ps: &mut u64| {
            let more = (new_ps / 1000).saturating_sub(*before_ps / 1000);
            *before_ps = new_ps;
            more
        };
        stretch.busy_ns += more_ns(thread.busy_ps(), &mut self.busy_ps);
        let waited_ns = more_ns(waited_ps, &mut self.waited_ps);
        stretch.waited_ns = stretch.waited_ns.map(|sum| sum + waited_ns);
        let more = misses.saturating_sub(std::mem::replace(&mut self.misses, misses));
        stretch.misses = stretch.misses.map(|sum| sum + more);
    }
}
