//! The lines that a core has in flight, and those that it stores past the caches.

use super::combining::Piece;
use super::prefetch::LINES_OF_PAGE;
use super::{Act, Miss, Pipeline};
use crate::counters::Kind;
use crate::machine::Core;

impl Pipeline {
    /// Returns true if no line is in flight at this time.
    #[inline]
    pub fn is_idle(&self, now_ps: u64) -> bool {
        self.fills.is_idle(now_ps)
    }

    /// Returns the arrival time of a line that is already in flight.
    #[inline]
    pub fn under_way_ps(&self, line: u64, now_ps: u64) -> Option<u64> {
        self.fills.under_way_ps(line, now_ps)
    }

    /// Returns the time at which a miss of a line that could begin at `issue_ps` has its page's translation,
    /// which an earlier access may have asked for, and gets a fill buffer and its set. Lines are given by
    /// physical and by virtual address.
    pub fn room_ps(&mut self, (miss, line): (Miss, u64), virtual_line: u64, issue_ps: u64) -> u64 {
        let issue_ps = self.walkers.known_ps(virtual_line / LINES_OF_PAGE, issue_ps);
        let of = (self.core.misses, &mut self.combining, miss);
        let begins_ps = self.fills.room_ps(of, (self.begin_ps, issue_ps));
        self.sets.room_ps(line, (self.begin_ps, begins_ps))
    }

    /// Returns the time at which a store past the caches that could begin at `issue_ps` gets a fill
    /// buffer.
    pub fn write_room_ps(&mut self, issue_ps: u64) -> u64 {
        let Core { misses, prefetch, writes, .. } = self.core;
        let most = writes.unwrap_or(misses + prefetch.unwrap_or(0));
        let miss = Miss { goes_back: false, is_far: false };
        self.fills.room_ps((most, &mut self.combining, miss), (self.begin_ps, issue_ps))
    }

    /// Adds a line in flight, requested by an access.
    pub fn fill(&mut self, line: u64, (begin_ps, done_ps): (u64, u64), by: Act) {
        self.combining.give_up(line);
        self.fills.add(line, (begin_ps, done_ps));
        self.latest_ps = self.latest_ps.max(done_ps);
        if by.kind == Kind::Store {
            self.sets.misses(line, self.queue.next());
        }
        if by.kind == Kind::Load || !self.queue.waits(done_ps) {
            self.window.add(self.slot(by.instruction), done_ps, true);
        }
    }

    /// Combines a piece of a line with others that are stored past the caches; returns whether the
    /// line was already being combined.
    pub fn joins(&mut self, piece: Piece) -> bool {
        self.combining.joins(piece)
    }

    /// Adds a line in flight to memory, past the caches.
    pub fn write(&mut self, done_ps: u64) {
        self.combining.write(done_ps);
        self.latest_ps = self.latest_ps.max(done_ps);
    }
}
