//! What a core would wait if lines came from other nodes: pipelines beside its own, for which the
//! same instructions make the same accesses, so that one run tells what another placement would
//! change. What is hidden of a latency now, and what of a longer one would not be, is in them.
//!
//! A core that is bound with all others to a node finds in shared caches what one node's would hold,
//! and lines of far cores near.

use crate::counters::Kind;
use crate::pipeline::Pipeline;
use crate::pipeline::flow::Flow;
use crate::space::Placement;

/// A core as it would be.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    pipeline: Pipeline,
    /// The node that all cores are on, if pages are bound to one.
    on: Option<usize>,
    /// How much later than the core's own time it is there.
    later_ps: i64,
}

/// An access as it went, apart from the latency of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Went {
    pub kind: Kind,
    /// Place of its instruction in the block, and its number.
    pub position: u32,
    pub instruction: u64,
    pub line: u64,
    /// When the instruction came up, and what it waited then.
    pub reached_ps: u64,
    pub waited_ps: u64,
    /// What a walk of page tables takes.
    pub walk_ps: u64,
}

/// Where a line comes from that is not on its way already.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Line {
    /// Another core's caches: how long after it is asked for that begins, and what it takes.
    Core { after_ps: u64, takes_ps: u64 },
    /// The nearest cache.
    Nearest,
    /// Another cache, or memory.
    Farther { takes_ps: u64 },
}

impl Elsewhere {
    pub(crate) fn new(pipeline: Pipeline, placement: &Placement) -> Self {
        let on = match placement {
            Placement::Bind(nodes) => nodes.first().copied(),
            _ => None,
        };
        Self { pipeline, on, later_ps: 0 }
    }

    /// The node that all cores are on, if there is one.
    pub(crate) fn on(&self) -> Option<usize> {
        self.on
    }

    /// How much later it is there by now.
    pub(crate) fn later_ps(&self) -> i64 {
        self.later_ps
    }

    /// A block begins to which the core has come at `now_ps`, and for which it waited so long.
    pub(crate) fn begin(
        &mut self,
        flow: Option<&'static Flow>,
        now_ps: u64,
        instruction: u64,
        waited_ps: u64,
    ) {
        let there_ps = now_ps.saturating_add_signed(self.later_ps);
        let begin_ps = self.pipeline.begin(flow, there_ps, instruction);
        self.takes(begin_ps - there_ps, waited_ps);
    }

    /// An access that the core made.
    pub(crate) fn access(&mut self, went: Went, line: Line, nearest_ps: u64) {
        let pipeline = &mut self.pipeline;
        let reached_ps = went.reached_ps.saturating_add_signed(self.later_ps);
        let mut issue_ps = pipeline.issue_ps(went.position, reached_ps);
        let mut begin_ps = match went.walk_ps {
            0 => issue_ps,
            takes_ps => pipeline.walked_ps(issue_ps, takes_ps),
        };
        let under_way = pipeline.under_way_ps(went.line, begin_ps);
        let cost_ps = match (line, under_way) {
            (Line::Core { after_ps, takes_ps }, _) => {
                begin_ps += after_ps;
                takes_ps
            }
            (_, Some(done_ps)) => (done_ps - begin_ps).max(nearest_ps),
            (Line::Nearest, None) => nearest_ps,
            (Line::Farther { takes_ps }, None) => {
                issue_ps = pipeline.room_ps(issue_ps, went.instruction);
                begin_ps = begin_ps.max(issue_ps);
                pipeline.fill(went.line, begin_ps + takes_ps, went.instruction);
                takes_ps
            }
        };
        let done_ps = begin_ps + cost_ps;
        if went.kind == Kind::Load {
            pipeline.loaded(went.position, done_ps);
        }
        let waits = matches!(line, Line::Core { .. }) || pipeline.waits(went.position);
        let goes_on_ps = if waits { done_ps } else { issue_ps };
        self.takes(goes_on_ps - reached_ps, went.waited_ps);
    }

    /// It waits so long where the core does otherwise.
    fn takes(&mut self, there_ps: u64, here_ps: u64) {
        self.later_ps += there_ps.cast_signed() - here_ps.cast_signed();
    }
}
