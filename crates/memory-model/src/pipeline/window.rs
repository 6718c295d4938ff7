//! The reorder buffer: the distance that instructions may run ahead of unfinished ones.

use alloc::collections::VecDeque;

/// A time before which no instruction from a given one on is issued.
#[derive(Clone, Copy, Debug)]
struct Stop {
    instruction: u64,
    until_ps: u64,
    /// True if the time is the end of an access.
    access: bool,
}

/// The unfinished instructions of a core. They retire in order, so an instruction is kept only if
/// it finishes later than all before it.
#[derive(Clone, Debug)]
pub struct Window {
    length: u64,
    stops: VecDeque<Stop>,
    /// The first instruction that may have to wait.
    from: u64,
}

/// The issue of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// Time at which the instruction is issued.
    pub at_ps: u64,
    /// True if the instruction waited for the end of an access.
    pub for_access: bool,
}

impl Window {
    /// Creates an empty window of this number of instructions.
    pub fn new(length: u32) -> Self {
        Self { length: u64::from(length), stops: VecDeque::new(), from: u64::MAX }
    }

    /// Adds an instruction that finishes at this time, with or without the end of an access.
    #[inline]
    pub fn add(&mut self, instruction: u64, until_ps: u64, access: bool) {
        if self.stops.back().is_some_and(|last| last.until_ps >= until_ps) {
            return;
        }
        let instruction = instruction + self.length;
        if self.stops.is_empty() {
            self.from = instruction;
        }
        self.stops.push_back(Stop { instruction, until_ps, access });
    }

    /// Returns true if an instruction is certain to find room.
    #[inline]
    pub fn holds(&self, instruction: u64) -> bool {
        instruction < self.from
    }

    /// Returns true if an instruction that the next one may have to wait for finishes with the end
    /// of an access.
    #[inline]
    pub fn keeps_for_access(&self, instruction: u64) -> bool {
        let mut before = self.stops.iter().take_while(|stop| stop.instruction <= instruction);
        !self.holds(instruction) && before.any(|stop| stop.access)
    }

    /// Returns the issue of an instruction that could be issued at `now_ps`.
    #[inline]
    pub fn comes(&mut self, instruction: u64, now_ps: u64) -> Came {
        let mut came = Came { at_ps: now_ps, for_access: true };
        if self.holds(instruction) {
            return came;
        }
        while let Some(stop) = self.stops.front().filter(|stop| stop.instruction <= instruction) {
            if stop.until_ps > came.at_ps {
                came = Came { at_ps: stop.until_ps, for_access: stop.access };
            }
            self.stops.pop_front();
        }
        self.from = self.stops.front().map_or(u64::MAX, |stop| stop.instruction);
        came
    }

    /// Returns the issue time of an instruction of the current block without changing the window,
    /// so that it can be called again for others.
    #[inline]
    pub fn comes_ps(&self, instruction: u64, now_ps: u64) -> u64 {
        if self.holds(instruction) {
            return now_ps;
        }
        // Of the instructions it waits for, the latest one retires last.
        let before = self.stops.iter().take_while(|stop| stop.instruction <= instruction);
        before.last().map_or(now_ps, |stop| stop.until_ps.max(now_ps))
    }

    /// Returns the first instruction, from this one on, for which the reorder buffer has no room at
    /// this time.
    pub fn full(&self, instruction: u64, now_ps: u64) -> u64 {
        let unfinished = self.stops.iter().find(|stop| stop.until_ps > now_ps);
        unfinished.map_or(instruction + self.length, |stop| stop.instruction)
    }

    /// Removes all instructions.
    pub fn clear(&mut self) {
        self.stops.clear();
        self.from = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_waits_for_those_that_are_a_windows_length_before_it_to_leave_in_order() {
        let mut window = Window::new(100);
        window.add(1, 1000, true);
        window.add(2, 500, true);
        window.add(3, 1200, false);
        let mut comes = |instruction| {
            let Came { at_ps, for_access } = window.comes(instruction, 10);
            (at_ps, for_access)
        };
        assert_eq!(comes(100), (10, true));
        assert_eq!(comes(102), (1000, true), "not before the one that it stands behind");
        assert_eq!(comes(103), (1200, false));
        assert_eq!(comes(500), (10, true));
    }
}
