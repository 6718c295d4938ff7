//! Estimates the wait of a core if its lines came from other nodes. Each alternative placement has
//! a second pipeline in which the same instructions make the same accesses. One run thus shows the
//! effect of every placement, including the parts of a latency that are hidden on the actual core
//! or would be under the alternative.
//!
//! A long thread is simulated in a random sample of stretches ([`Stretches`]); at the start of
//! each, every alternative core has the same accesses in flight as the actual one.
//!
//! If all cores would be bound to one node, lines are found in shared caches as on that node, and
//! lines of remote cores count as local. A core with huge pages has separate TLBs.

use alloc::vec::Vec;

use crate::arguments::Alternative;
use crate::machine::Machine;
use crate::pipeline::flow::Flow;
use crate::pipeline::{Asked, Line, Pipeline};
use crate::predictor::Prediction;
use crate::space::{HUGE_PAGES, PAGE_BYTES, Placement};
use crate::stretches::Stretches;
use crate::tlb::{Tlbs, Translation, is_huge};

/// A program's thread under alternative placements, next to the vCPU that runs it.
#[derive(Debug)]
pub struct Shadow {
    pub(crate) thread: usize,
    /// One core for each alternative placement.
    pub(crate) cores: Vec<Elsewhere>,
    /// Position of the thread among its stretches.
    pub stretches: Stretches,
    /// True if a core may be on a wrong path.
    pub(crate) strays: bool,
}

impl Shadow {
    /// Returns true if the thread is not followed under any alternative placement.
    pub fn is_empty(&self) -> bool {
        self.cores.is_empty()
    }

    /// Returns the additional wait of the thread under each alternative placement, in ps; empty
    /// without a model of cores.
    pub fn later_ps(&self) -> Vec<i64> {
        let weight = self.stretches.weight();
        self.cores.iter().map(|core| core.before_ps + core.later_ps * weight).collect()
    }

    /// Ends a stretch of this weight. If the next one is simulated in detail, the alternative cores
    /// begin it with the accesses that the actual one has in flight.
    pub(crate) fn begins_stretch(&mut self, weight: i64, pipeline: Option<&Pipeline>) {
        self.strays = true;
        for core in &mut self.cores {
            core.before_ps += core.later_ps * weight;
            core.later_ps = 0;
            if let Some(pipeline) = pipeline.filter(|_| self.stretches.is_followed()) {
                core.pipeline.clone_from(pipeline);
            }
        }
    }

    /// Waits until everything in flight has ended, as the actual core did from `now_ps` for
    /// `waited_ps`.
    pub(crate) fn stops(&mut self, now_ps: u64, waited_ps: u64) {
        for core in &mut self.cores {
            let there_ps = now_ps.saturating_add_signed(core.later_ps);
            let there_ps = core.pipeline.stops_ps().saturating_sub(there_ps);
            core.takes(there_ps, waited_ps);
        }
    }

    /// Adds a difference in the time of the kernel's work to the placement with huge pages.
    pub fn works_longer_if_huge(&mut self, by_ps: i64) {
        let huge = self.cores.iter_mut().filter(|core| core.tlbs.is_some());
        huge.for_each(|core| core.before_ps += by_ps);
    }

    /// Looks up a translation in the TLBs of placements that have separate ones.
    pub fn translate(&self, page: u64, frame: u64, elsewhere: &[There]) {
        for (core, there) in self.cores.iter().zip(elsewhere) {
            core.translate(page, frame, *there);
        }
    }

    /// Records the actual core's prediction of the branch before the block that it is about to begin.
    #[inline]
    pub(crate) fn predicts(&mut self, actual: &Pipeline) {
        let prediction = actual.prediction();
        let strayed = core::mem::replace(&mut self.strays, actual.is_astray());
        if prediction == Prediction::Known && !self.strays && !strayed {
            return;
        }
        for core in &mut self.cores {
            core.pipeline.predicts(prediction);
            core.pipeline.strays_with(actual);
        }
    }

    /// Begins a block that the actual core reached at `now_ps`, after a wait of `waited_ps`.
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

/// A core under an alternative placement.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    pipeline: Pipeline,
    cores: Cores,
    /// Present if the placement uses huge pages.
    tlbs: Option<Tlbs>,
    /// Lag behind the actual core's time in the current stretch, in ps.
    later_ps: i64,
    /// The thread's lag in the earlier stretches and those that they stand for.
    before_ps: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Pages stay on their actual nodes.
    Stay,
    /// All on one node.
    On(usize),
    /// Threads fill one node after another.
    Packed,
}

/// The location of a page under an alternative placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct There {
    /// Position of the node.
    node: u8,
    /// True if the page is part of a huge page.
    huge: bool,
}

impl There {
    /// Returns the location on the node at this position, in a small page or as part of a huge one.
    pub fn on(node: usize, huge: bool) -> Self {
        Self { node: u8::try_from(node).unwrap_or(u8::MAX), huge }
    }

    pub(crate) fn node(self) -> usize {
        usize::from(self.node)
    }
}

/// An access of the actual core, without the latency of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Went {
    pub asked: Asked,
    /// Time at which the core reached the instruction, and its wait.
    pub reached_ps: u64,
    pub waited_ps: u64,
    /// Time of the page walk; 0 without one.
    pub walk_ps: u64,
}

impl Elsewhere {
    /// Creates a core of the machine for an alternative placement; `None` if the machine does not
    /// model cores.
    pub(crate) fn new(machine: &Machine, alternative: &Alternative) -> Option<Self> {
        let pipeline = Pipeline::new(machine.core?, machine.tlb.as_ref());
        let cores = match alternative {
            Alternative::Placed(Placement::Bind(nodes)) => Cores::On(*nodes.first()?),
            Alternative::Packed => Cores::Packed,
            Alternative::Placed(_) | Alternative::Huge | Alternative::Users => Cores::Stay,
        };
        let tlb = machine.tlb.as_ref().filter(|_| *alternative == Alternative::Huge);
        Some(Self { pipeline, cores, tlbs: tlb.map(Tlbs::new), later_ps: 0, before_ps: 0 })
    }

    /// Translates a page that would be huge but is not; returns `None` for other pages, which cost
    /// the same as on the actual core.
    pub(crate) fn translate(&self, page: u64, frame: u64, there: There) -> Option<Translation> {
        let tlbs = self.tlbs.as_ref()?;
        if !there.huge || is_huge(page, frame) {
            tlbs.translate(page, frame);
            return None;
        }
        // The two addresses have the same offset within 2 MiB, but not within 1 GiB: the page is
        // huge, but not larger.
        Some(tlbs.translate(page, page ^ (HUGE_PAGES * PAGE_BYTES)).0)
    }

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

    /// Repeats an access of the actual core under this placement, where its line takes this time to
    /// come from the place that has it.
    pub(crate) fn access(&mut self, went: Went, line: (Line, u64), takes_ps: u64) {
        let Went { asked, waited_ps, walk_ps, .. } = went;
        let reached_ps = went.reached_ps.saturating_add_signed(self.later_ps);
        let reached = self.pipeline.reaches(&asked, reached_ps, |_| walk_ps);
        let served = self.pipeline.serves(&asked, reached, line, |_| takes_ps);
        self.takes(served.goes_on_ps - reached_ps, waited_ps);
    }

    /// Adds the difference between the waits under this placement and of the actual core.
    fn takes(&mut self, there_ps: u64, here_ps: u64) {
        self.later_ps += there_ps.cast_signed() - here_ps.cast_signed();
    }
}
