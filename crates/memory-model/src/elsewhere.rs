//! What a core would wait if lines came from other nodes: pipelines beside its own, for which the
//! same instructions make the same accesses, so that one run tells what another placement would
//! change. What is hidden of a latency now, and what of a longer one would not be, is in them.
//!
//! A core that is bound with all others to a node finds in shared caches what one node's would hold,
//! and lines of far cores near. One with huge pages has TLBs of its own.

use alloc::vec::Vec;

use crate::arguments::Beside;
use crate::machine::Machine;
use crate::pipeline::flow::Flow;
use crate::pipeline::{Act, Pipeline, Times};
use crate::space::{HUGE_PAGES, PAGE_BYTES, Placement};
use crate::tlb::{Tlbs, Translation, is_huge};

/// A thread of a program on cores elsewhere, beside the vCPU that runs it.
#[derive(Debug)]
pub struct Shadow {
    /// Its number.
    pub(crate) thread: usize,
    /// By the placements that are watched.
    pub(crate) cores: Vec<Elsewhere>,
}

impl Shadow {
    /// How much longer the thread would have waited by each of the placements, in ps; none without a
    /// model of cores.
    pub fn later_ps(&self) -> Vec<i64> {
        self.cores.iter().map(|core| core.later_ps).collect()
    }

    /// The branch before the next block was mispredicted.
    pub(crate) fn mispredicts(&mut self) {
        self.cores.iter_mut().for_each(|core| core.pipeline.mispredicts());
    }

    /// A block begins to which the core has come at `now_ps`, and for which it waited so long.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        flow: Option<&'static Flow>,
        now_ps: u64,
        instruction: u64,
        waited_ps: u64,
    ) {
        self.cores.iter_mut().for_each(|core| core.begin(flow, now_ps, instruction, waited_ps));
    }
}

/// A core as it would be.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    pipeline: Pipeline,
    cores: Cores,
    /// If its pages are huge where they can be.
    tlbs: Option<Tlbs>,
    /// How much later than the core's own time it is there.
    later_ps: i64,
}

/// Where the cores are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Where they are.
    Stay,
    /// All on one node.
    On(usize),
    /// On one node after the other.
    Packed,
}

/// Where a page would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct There {
    /// Position of the node.
    node: u8,
    /// Whether it would be part of a huge page.
    huge: bool,
}

impl There {
    /// On the node at this position, as a small page or as part of a huge one.
    pub fn on(node: usize, huge: bool) -> Self {
        Self { node: u8::try_from(node).unwrap_or(u8::MAX), huge }
    }

    /// Position of the node.
    pub(crate) fn node(self) -> usize {
        usize::from(self.node)
    }
}

/// An access as it went, apart from the latency of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Went {
    /// By which instruction.
    pub act: Act,
    /// Number of its line.
    pub line: u64,
    /// When the instruction came up, and what it waited then.
    pub reached_ps: u64,
    pub waited_ps: u64,
    /// What a walk of page tables takes.
    pub walk_ps: u64,
}

/// When it would have come to an access, does, can issue it, and has translated its address.
#[derive(Clone, Copy, Debug)]
struct Came {
    reached_ps: u64,
    came_ps: u64,
    issue_ps: u64,
    begin_ps: u64,
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

/// What becomes of a store past the caches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Written {
    /// Its line is on its way already.
    Joined,
    /// Its line goes to memory.
    Line { takes_ps: u64 },
}

impl Elsewhere {
    /// A core of the machine, if it models cores.
    pub(crate) fn new(machine: &Machine, beside: &Beside) -> Option<Self> {
        let pipeline = Pipeline::new(machine.core?, machine.tlb.as_ref());
        let cores = match beside {
            Beside::Placed(Placement::Bind(nodes)) => Cores::On(*nodes.first()?),
            Beside::Packed => Cores::Packed,
            Beside::Placed(_) | Beside::Huge | Beside::Users => Cores::Stay,
        };
        let tlb = machine.tlb.as_ref().filter(|_| *beside == Beside::Huge);
        Some(Self { pipeline, cores, tlbs: tlb.map(Tlbs::new), later_ps: 0 })
    }

    /// How it comes to a frame of a page that would be huge and is not; others cost it what they cost
    /// the core.
    pub(crate) fn translate(&self, page: u64, frame: u64, there: There) -> Option<Translation> {
        let tlbs = self.tlbs.as_ref()?;
        if !there.huge || is_huge(page, frame) {
            tlbs.translate(page, frame);
            return None;
        }
        // The same place in 2 MiB, and not in 1 GiB.
        Some(tlbs.translate(page, page ^ (HUGE_PAGES * PAGE_BYTES)).0)
    }

    /// Where it and the others are.
    pub(crate) fn cores(&self) -> Cores {
        self.cores
    }

    fn begin(
        &mut self,
        flow: Option<&'static Flow>,
        now_ps: u64,
        instruction: u64,
        waited_ps: u64,
    ) {
        let there_ps = now_ps.saturating_add_signed(self.later_ps);
        let begin_ps = self.pipeline.begin(flow, there_ps, instruction).at_ps;
        self.takes(begin_ps - there_ps, waited_ps);
    }

    /// An access that the core made.
    pub(crate) fn access(&mut self, went: Went, line: Line, nearest_ps: u64) {
        let Came { reached_ps, came_ps, mut issue_ps, mut begin_ps } = self.reaches(&went);
        let translation_ps = begin_ps - issue_ps;
        let pipeline = &mut self.pipeline;
        let under_way = pipeline.under_way_ps(went.line, begin_ps);
        let cost_ps = match (line, under_way) {
            (Line::Core { after_ps, takes_ps }, _) => {
                begin_ps += after_ps;
                takes_ps
            }
            (Line::Nearest, _) | (_, Some(_)) => {
                went.act.forwarded(pipeline).takes_ps(begin_ps, nearest_ps, under_way)
            }
            (Line::Farther { takes_ps }, None) => {
                begin_ps = pipeline.room_ps(went.act.kind, begin_ps);
                issue_ps = issue_ps.max(begin_ps - translation_ps);
                let left_ps = pipeline.left_ps(went.line, begin_ps, takes_ps, nearest_ps);
                let times = (begin_ps, begin_ps + left_ps);
                pipeline.fill(went.line, times, went.act.instruction);
                left_ps
            }
        };
        let taken = matches!(line, Line::Core { .. });
        let times = Times { came_ps, issue_ps, done_ps: begin_ps + cost_ps };
        let goes_on_ps = pipeline.goes_on_ps(went.act, taken, times);
        self.takes(goes_on_ps - reached_ps, went.waited_ps);
    }

    /// A store past the caches that the core made.
    pub(crate) fn write(&mut self, went: Went, written: Written) {
        let Came { reached_ps, mut issue_ps, mut begin_ps, .. } = self.reaches(&went);
        let pipeline = &mut self.pipeline;
        if let Written::Line { takes_ps } = written {
            issue_ps = pipeline.write_room_ps(issue_ps);
            begin_ps = begin_ps.max(issue_ps);
            pipeline.write(begin_ps + takes_ps);
        }
        self.takes(issue_ps - reached_ps, went.waited_ps);
    }

    /// When it comes to an access, can issue it, and has translated its address.
    #[inline]
    fn reaches(&mut self, went: &Went) -> Came {
        let reached_ps = went.reached_ps.saturating_add_signed(self.later_ps);
        let came_ps = self.pipeline.comes_ps(went.act.instruction, reached_ps);
        let issue_ps = self.pipeline.issue_ps(went.act.position, came_ps);
        let begin_ps = self.pipeline.translated_ps(issue_ps, went.walk_ps);
        Came { reached_ps, came_ps, issue_ps, begin_ps }
    }

    /// It waits so long where the core does otherwise.
    fn takes(&mut self, there_ps: u64, here_ps: u64) {
        self.later_ps += there_ps.cast_signed() - here_ps.cast_signed();
    }
}
