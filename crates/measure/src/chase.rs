//! Builds chases and measures them in windows.

use std::num::NonZeroUsize;

use numalab_host::page_size_bytes;
use numalab_membench::{Chase, Cycle, Line, LineSize, Pattern, Walk, WordChain};
use numalab_record::{AccessPattern, Metric, Pages};
use numalab_topology::CpuId;

use crate::buffer::pinned;
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::sampling::{WindowLength, WindowValues};

/// Loads in a window, or more if the window would be shorter than [`LEAST_WINDOW_NS`].
const WINDOW_LOADS: u64 = 20_000;
/// Loads in a window of virtual time. Reading the clock is cheap and exact there, but every access
/// of the timer interrupt is charged, which takes 7 % of 2 ms.
const VIRTUAL_WINDOW_LOADS: u64 = 4_000;
/// In shorter windows the clock and the timer interrupt would dominate.
const LEAST_WINDOW_NS: f64 = 200_000.0;
/// Windows tried to find the duration of one. The shortest counts, since any of them may be
/// disturbed.
const WINDOWS_TRIED: usize = 3;
/// Loads that bring the caches into the steady state of the chase. After building they hold the end
/// of the buffer; 64 MiB of lines evict it.
const WARM_UP_LOADS: u64 = 1 << 20;
/// Smallest block of a page-local order: 64 pages of 4 KiB, which the TLB holds. Within one or a
/// few such pages prefetchers follow any order, and loads take less than half of memory's latency
/// (adjacent lines, and streams in up to 32 pages: Intel 64 and IA-32 Architectures Optimization
/// Reference Manual, "Data Prefetching").
const LEAST_BLOCK_BYTES: u64 = 256 << 10;
/// Distance of the lines of a page-local order. Prefetchers fetch the other line of a pair (Intel's manual,
/// as above: "Spatial Prefetcher") or the next line (a Zen 4), and a block fits into a cache: of all
/// lines, half had come with another one, and a Zen 4 took 88 ns for a load of memory, not 134.
const LINE_PAIR: LineSize = LineSize::Bytes128;
/// Smallest part of a cycle that is worth a thread.
const BYTES_PER_BUILDER: usize = 64 << 20;
/// More threads than this do not fill one node's memory faster.
pub(crate) const MOST_BUILDERS: usize = 8;

/// The order of a chase and the pages below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChaseOrder {
    pub pattern: AccessPattern,
    /// The pages of the buffer; a page-local order stays within each.
    pub pages: Pages,
}

impl ChaseOrder {
    /// Returns the cycle over `size_bytes`; `None` for an order over words, which needs none.
    pub(crate) fn cycle(self, size_bytes: usize, seed: u64) -> Result<Option<Cycle>, MeasureError> {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut nodes = LineSize::Bytes64;
        let pattern = match self.pattern {
            // An order over words has no cycle of lines; its list is shuffled in place.
            AccessPattern::FisherYates => return Ok(None),
            AccessPattern::Random => Pattern::Random,
            AccessPattern::PageLocal => {
                let page_bytes = page_size_bytes(self.pages);
                nodes = LINE_PAIR;
                Pattern::PageLocal { block_bytes: bytes(page_bytes.max(LEAST_BLOCK_BYTES)) }
            }
            AccessPattern::OneLinePer(apart) => {
                Pattern::OneLinePerPage { page_bytes: bytes(apart) }
            }
            AccessPattern::Stride(stride) => Pattern::Stride { stride_bytes: bytes(stride) },
            AccessPattern::Sequential => Pattern::Sequential,
        };
        Ok(Some(Cycle::new(pattern, size_bytes, nodes, seed)?))
    }
}

/// A chase built in a buffer.
#[derive(Debug)]
pub enum BuiltChase<'b> {
    /// A chase through lines, each once.
    Lines(Chase<'b>),
    /// A chase through words, eight in each line.
    Words(WordChain<'b>),
}

impl<'b> BuiltChase<'b> {
    /// Builds the chase over all of `lines` on the calling thread. If `near` is given, the cpus of
    /// its node help.
    ///
    /// # Errors
    /// [`MeasureError::Cycle`] if it cannot be built.
    pub fn build(
        context: &MeasureContext,
        order: ChaseOrder,
        lines: &'b mut [Line],
        near: Option<CpuId>,
    ) -> Result<Self, MeasureError> {
        let seed = context.settings.seed;
        let Some(cycle) = order.cycle(size_of_val(&*lines), seed)? else {
            return Ok(Self::Words(WordChain::shuffle(lines, seed)?));
        };
        Ok(Self::Lines(match near {
            Some(cpu) => build_by_helpers(context, cycle, lines, cpu)?,
            None => Chase::build(cycle, lines)?,
        }))
    }

    /// Returns a walk from its start.
    pub fn walk(&self) -> Walk<'_> {
        match self {
            Self::Lines(chase) => chase.walk(),
            Self::Words(chain) => chain.walk(),
        }
    }

    /// Returns the loads that bring the caches into the steady state of the chase: one cycle, or
    /// enough to fill any cache.
    fn warm_up_loads(&self) -> u64 {
        let nodes = match self {
            Self::Lines(chase) => chase.cycle().nodes(),
            Self::Words(chain) => chain.nodes(),
        };
        (nodes as u64).min(WARM_UP_LOADS)
    }
}

/// Builds with the cpus of the node of `cpu`, including `cpu`.
fn build_by_helpers<'a>(
    context: &MeasureContext,
    cycle: Cycle,
    lines: &'a mut [Line],
    cpu: CpuId,
) -> Result<Chase<'a>, MeasureError> {
    let helpers = context.helpers_of(cpu);
    let wanted = cycle.size_bytes() / BYTES_PER_BUILDER;
    // With more builders than cpus of the node, several would share a cpu.
    let builders = wanted.clamp(1, helpers.len().min(MOST_BUILDERS));
    let parts = cycle.parts(lines, NonZeroUsize::new(builders).unwrap_or(NonZeroUsize::MIN))?;
    let built = std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .zip(helpers.into_iter().cycle())
            .map(|(part, helper)| {
                scope.spawn(move || -> Result<_, MeasureError> {
                    // The buffer is bound to its node, so a helper's cpu that went offline or left
                    // the cpuset since the run began only makes this slower.
                    let held = pinned(helper);
                    // The worker's own cpu must be usable, since the chase is measured there.
                    let _pinned = if helper == cpu { Some(held?) } else { held.ok() };
                    Ok(part.build())
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(built) => built,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect::<Result<Vec<_>, _>>()
    })?;
    Ok(Chase::join(built)?)
}

/// A walk that has been warmed up, with the number of loads in its windows.
#[derive(Debug)]
pub struct Windows<'w, 'c> {
    walk: &'w mut Walk<'c>,
    loads: u64,
    /// Loads in the shortest useful window.
    short_loads: u64,
}

impl<'w, 'c> Windows<'w, 'c> {
    /// Warms up, and determines the loads per window.
    pub(crate) fn warmed_up(
        context: &MeasureContext,
        chase: &BuiltChase<'_>,
        walk: &'w mut Walk<'c>,
    ) -> Result<Self, MeasureError> {
        let mut windows = Self::warmed_by(chase, walk, WINDOW_LOADS);
        let (usual, tries) = match context.time_is_virtual() {
            // Virtual time has no disturbances, so one try is exact.
            true => (VIRTUAL_WINDOW_LOADS, 1),
            false => (WINDOW_LOADS, WINDOWS_TRIED),
        };
        let mut expected_ns = f64::INFINITY;
        for _ in 0..tries {
            let tried = windows.walk.window(usual)?;
            // The shortest try is the least disturbed one.
            expected_ns = expected_ns.min(tried.ns_per_load(&context.clock) * usual as f64);
        }
        let stretch = LEAST_WINDOW_NS / expected_ns.max(1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 100")]
        let longer = stretch.clamp(1.0, 100.0).ceil() as u64;
        windows.loads = usual * longer;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 20")]
        let shorter = (1.0 / stretch).clamp(1.0, 20.0) as u64;
        windows.short_loads = windows.loads / shorter;
        Ok(windows)
    }

    /// Warms up by at least `least_loads`, or by more if the chase needs more.
    pub fn warmed_by(chase: &BuiltChase<'_>, walk: &'w mut Walk<'c>, least_loads: u64) -> Self {
        walk.loads(chase.warm_up_loads().max(least_loads));
        Self { walk, loads: WINDOW_LOADS, short_loads: WINDOW_LOADS }
    }

    /// Measures the next window.
    pub(crate) fn take(
        &mut self,
        context: &MeasureContext,
        length: WindowLength,
    ) -> Result<WindowValues, MeasureError> {
        match length {
            WindowLength::Usual => self.take_several(context, 1),
            WindowLength::Short => self.take_loads(context, self.short_loads),
        }
    }

    /// Measures the next `count` windows as one.
    pub(crate) fn take_several(
        &mut self,
        context: &MeasureContext,
        count: u64,
    ) -> Result<WindowValues, MeasureError> {
        self.take_loads(context, self.loads * count)
    }

    /// Measures a window of `loads`.
    ///
    /// # Errors
    /// [`MeasureError::Clock`] if the clock steps back.
    pub fn take_loads(
        &mut self,
        context: &MeasureContext,
        loads: u64,
    ) -> Result<WindowValues, MeasureError> {
        let window = self.walk.window(loads)?;
        let value = window.ns_per_load(&context.clock);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a duration")]
        let duration_ns = context.clock.ns(window.ticks) as u64;
        Ok(WindowValues { values: vec![(Metric::Latency, value)], duration_ns, work: window.loads })
    }
}

#[cfg(test)]
mod tests {
    use numalab_topology::Cpu;

    use super::*;
    use crate::buffer::{Buffer, MemorySource};
    use numalab_host::base_pages;

    #[test]
    fn a_walk_completes_a_cycle_before_it_is_measured() {
        let node = numalab_host::allowed_now().unwrap().memory_nodes.first().unwrap_or_default();
        let context = MeasureContext::for_tests();
        let (size, pages) = (1 << 20, base_pages());
        let source = MemorySource::Node(node);
        let mut buffer = Buffer::touched(&context, size, pages, source).expect("a buffer");
        for (pattern, expected) in
            [(AccessPattern::Random, 16_384), (AccessPattern::FisherYates, 131_072)]
        {
            let lines = buffer.lines(size).expect("lines");
            let order = ChaseOrder { pattern, pages };
            let chase = BuiltChase::build(&context, order, lines, None).expect("built");
            assert_eq!(chase.warm_up_loads(), expected);
            let mut walk = chase.walk();
            let reading = Windows::warmed_by(&chase, &mut walk, 0).take_loads(&context, 40);
            let reading = reading.expect("measured");
            assert!(reading.work == 40 && reading.values[0].1 > 0.0, "{reading:?}");
        }
    }

    #[test]
    fn only_page_local_order_leaves_out_the_other_line_of_each_pair() {
        let lines = |pattern| {
            let order = ChaseOrder { pattern, pages: base_pages() };
            order.cycle(1 << 20, 1).expect("a cycle").expect("of lines").nodes()
        };
        assert_eq!(lines(AccessPattern::PageLocal), 8_192);
        assert_eq!(lines(AccessPattern::Random), 16_384);
    }

    #[test]
    fn a_cpu_that_went_offline_fails_only_its_own_cells() {
        let cpu = numalab_host::allowed_now().unwrap().cpus.first().unwrap();
        let node = numalab_host::allowed_now().unwrap().memory_nodes.first().unwrap_or_default();
        let lost = CpuId(60_000);
        let known = |id| Cpu { id, node: Some(node), online: true, ..Cpu::default() };
        let mut context = MeasureContext::for_tests();
        context.machine.cpus = vec![known(cpu), known(lost)];
        assert_eq!(context.helpers_of(cpu), [cpu, lost]);
        let (size, pages) = (2 * BYTES_PER_BUILDER as u64, base_pages());
        let mut buffer = Buffer::untouched(size, pages, MemorySource::Node(node)).unwrap();
        let order = ChaseOrder { pattern: AccessPattern::Sequential, pages };
        let lines = buffer.lines(size).unwrap();
        let built = BuiltChase::build(&context, order, lines, Some(cpu)).unwrap();
        let BuiltChase::Lines(chase) = built else { panic!("a chase through words") };
        assert_eq!(chase.verify(), Ok(()));
        let lines = buffer.lines(size).unwrap();
        let error = BuiltChase::build(&context, order, lines, Some(lost)).unwrap_err();
        assert!(error.to_string().contains("cpu 60000 is offline, absent or outside"), "{error}");
    }
}
