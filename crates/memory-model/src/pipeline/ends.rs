//! The end of a block, at which its results become known, and the end of everything in flight.

use super::Pipeline;
use super::flow::Flow;
use super::value::Value;

impl Pipeline {
    /// Waits for everything in flight, before another thread continues; returns the time.
    pub fn drain(&mut self) -> u64 {
        let latest_ps = self.settles_ps();
        self.combining.close();
        self.registers.clear();
        self.astray = None;
        latest_ps
    }

    /// Stops within a block until everything in flight has ended, as for the kernel; returns the time
    /// at which it has.
    pub fn stops_ps(&mut self) -> u64 {
        self.window.clear();
        self.schedulers.clear();
        self.latest_ps
    }

    /// Returns the time at which everything in flight ends.
    pub fn settles_ps(&mut self) -> u64 {
        self.turns_to(None, (self.begin_ps, self.last + 1));
        self.stops_ps()
    }

    /// Returns the time at which a value of the block is known.
    #[inline]
    pub(super) fn known_ps(&self, value: &Value) -> u64 {
        value.known_ps(self.begin_ps, &self.registers, &self.loads)
    }

    /// Adds the instructions of a block with operands unknown until after `least_ps` to the schedulers.
    fn add_waiting(&mut self, flow: &'static Flow, least_ps: u64) {
        for waiting in &flow.waiting {
            let until_ps = self.known_ps(&waiting.value);
            if until_ps > least_ps {
                self.schedulers.add(waiting.pool, waiting.count, until_ps);
            }
        }
    }

    /// Applies the register changes of a block, the last instruction of which was issued at
    /// `now_ps`; returns the time at which all registers are known.
    pub(super) fn finish(&mut self, flow: &'static Flow, now_ps: u64) -> u64 {
        self.results.clear();
        // What was known when the block began delays nothing in it.
        self.registers.forget_until(flow.registers, self.begin_ps);
        let mut latest_ps = 0;
        for (register, value) in &flow.results {
            let known_ps = self.known_ps(value);
            if known_ps > now_ps {
                self.results.set(usize::from(*register), known_ps);
                latest_ps = latest_ps.max(known_ps);
            }
        }
        // The operands are known no later than the results.
        if let Some(least_ps) = self.schedulers.least_ps(now_ps)
            && latest_ps > least_ps
        {
            self.add_waiting(flow, least_ps);
        }
        self.registers.replace(flow.changed, &self.results);
        latest_ps
    }
}
