//! An access in a core, from its instruction to the instructions behind it. The core keeps time only:
//! what has the line, and how long the line takes, are given.

use super::{Act, Miss, Pipeline, Times};

/// An access as any core makes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// The accessing instruction.
    pub act: Act,
    /// Number of the line, and its number by virtual address, as prefetchers of the nearest cache
    /// see it.
    pub line: u64,
    pub virtual_line: u64,
}

/// Times of an access: when the core reaches it, when its instruction is issued, when it can begin,
/// and when its address is translated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reached {
    pub reached_ps: u64,
    pub came_ps: u64,
    pub issue_ps: u64,
    pub begin_ps: u64,
}

impl Reached {
    /// An access that waits for nothing.
    pub fn at(now_ps: u64) -> Self {
        Self { reached_ps: now_ps, came_ps: now_ps, issue_ps: now_ps, begin_ps: now_ps }
    }

    /// Returns the time at which the core continued after waiting for earlier accesses, given those at
    /// which later instructions continue and at which the access began.
    #[inline]
    pub fn resumes_ps(&self, goes_on_ps: u64, issue_ps: u64) -> u64 {
        if goes_on_ps == self.came_ps { self.came_ps } else { issue_ps }
    }
}

/// The place that has a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Line {
    /// Another core's caches, which it leaves after this time.
    Core { after_ps: u64 },
    /// The nearest cache.
    Nearest,
    /// Another cache or memory. If it is taken from another core, one that is in flight is an old one.
    Farther { miss: Miss, is_taken: bool },
    /// None: it is stored past the caches, and is sent to memory if this store begins it.
    Past { begins: bool },
}

/// The result of an access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    /// Time at which the access began, and the one at which later instructions continue.
    pub issue_ps: u64,
    pub goes_on_ps: u64,
    /// Time at which the access is complete.
    pub done_ps: u64,
    /// Time of the line.
    pub cost_ps: u64,
    /// True if the line was already in flight.
    pub is_under_way: bool,
}

impl Pipeline {
    /// Returns the times of an access whose instruction could be issued at `reached_ps`; `walk_ps`
    /// returns the time of a translation that begins at a time. Inlined: a call would store the result
    /// in memory and load it back in pieces of a different size, which defeats the host's store
    /// forwarding.
    #[inline(always)]
    pub(crate) fn reaches(
        &mut self,
        asked: &Asked,
        reached_ps: u64,
        walk_ps: impl FnOnce(u64) -> u64,
    ) -> Reached {
        let Asked { act, virtual_line, .. } = *asked;
        let came_ps = self.comes_ps((act.instruction, act.kind), reached_ps);
        let issue_ps = self.issue_ps(act.by, came_ps);
        let walk_ps = walk_ps(issue_ps);
        let begin_ps = self.translated_ps((act.by, virtual_line), issue_ps, walk_ps);
        Reached { reached_ps, came_ps, issue_ps, begin_ps }
    }

    /// Makes an access; `fetch` returns the time of a line that is neither in the nearest cache nor in
    /// flight, from the time at which the core asks for it.
    #[inline(always)]
    pub(crate) fn serves(
        &mut self,
        asked: &Asked,
        reached: Reached,
        (line, nearest_ps): (Line, u64),
        fetch: impl FnOnce(u64) -> u64,
    ) -> Served {
        let Asked { act, line: number, virtual_line } = *asked;
        let Reached { came_ps, mut issue_ps, mut begin_ps, .. } = reached;
        let translation_ps = begin_ps - issue_ps;
        if let Line::Past { begins } = line {
            let mut cost_ps = 0;
            if begins {
                issue_ps = self.write_room_ps(issue_ps);
                begin_ps = begin_ps.max(issue_ps);
                cost_ps = fetch(begin_ps);
                self.write(begin_ps + cost_ps);
            }
            let (goes_on_ps, done_ps) = (issue_ps, issue_ps);
            return Served { issue_ps, goes_on_ps, done_ps, cost_ps, is_under_way: false };
        }
        let under_way = self.under_way_ps(number, begin_ps);
        let cost_ps = match (line, under_way) {
            (Line::Core { after_ps }, _) => {
                begin_ps += after_ps;
                fetch(begin_ps)
            }
            (Line::Farther { miss, is_taken }, _) if is_taken || under_way.is_none() => {
                begin_ps = self.room_ps((miss, number), virtual_line, begin_ps);
                issue_ps = issue_ps.max(begin_ps - translation_ps);
                let takes = (fetch(begin_ps), nearest_ps, miss.is_far);
                let left_ps = self.left_ps((act.by, virtual_line), begin_ps, takes);
                self.fill(number, (begin_ps, begin_ps + left_ps), act);
                left_ps
            }
            _ => {
                let forwarded = act.forwarded(self);
                self.renames(forwarded, act.bytes);
                forwarded.takes_ps(begin_ps, nearest_ps, under_way)
            }
        };
        let times = Times { came_ps, issue_ps, done_ps: begin_ps + cost_ps };
        let goes_on_ps = self.goes_on_ps(act, matches!(line, Line::Core { .. }), times);
        let (done_ps, is_under_way) = (times.done_ps, under_way.is_some());
        Served { issue_ps, goes_on_ps, done_ps, cost_ps, is_under_way }
    }
}
