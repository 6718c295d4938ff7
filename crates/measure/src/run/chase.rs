//! Building a chase and taking its windows.

use std::num::NonZeroUsize;

use numalab_membench::{Chase, Cycle, Line, LineSize, Pattern, Walk};
use numalab_record::{AccessPattern, LatencyCell, Metric, Pages};
use numalab_topology::CpuId;

use crate::context::{MeasureContext, host_pages};
use crate::error::MeasureError;
use crate::run::worker::pinned;
use crate::sampling::Reading;

/// Loads in a window; more where a window would be shorter than [`LEAST_WINDOW_NS`].
const WINDOW_LOADS: u64 = 20_000;
/// The same where time is virtual: reading the clock costs little and its value is exact,
/// but the timer interrupt, every access of which is charged, takes 7 % of 2 ms.
const VIRTUAL_WINDOW_LOADS: u64 = 4_000;
/// Shorter windows would measure the clock and the timer interrupt.
const LEAST_WINDOW_NS: f64 = 200_000.0;
/// Loads that bring the caches into the state which the chase keeps them in: after
/// building, they hold the end of the buffer; 64 MiB of lines push that out.
const WARM_UP_LOADS: u64 = 1 << 20;
/// A thread builds at least so much of a cycle.
const BYTES_PER_BUILDER: usize = 64 << 20;
/// More threads than this do not fill one node's memory faster.
const MOST_BUILDERS: usize = 8;

/// The cycle of a latency cell.
pub(crate) fn cycle_of(seed: u64, cell: &LatencyCell) -> Result<Cycle, MeasureError> {
    let size = usize::try_from(cell.size_bytes).unwrap_or(usize::MAX);
    let pattern = membench_pattern(cell.pattern, cell.pages);
    Ok(Cycle::new(pattern, size, LineSize::Bytes64, seed)?)
}

pub(crate) fn membench_pattern(pattern: AccessPattern, pages: Pages) -> Pattern {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    match pattern {
        AccessPattern::Random => Pattern::Random,
        AccessPattern::PageLocal => {
            Pattern::PageLocal { block_bytes: bytes(host_pages(pages).page_bytes()) }
        }
        AccessPattern::Stride(stride) => Pattern::Stride { stride_bytes: bytes(stride) },
        AccessPattern::Sequential => Pattern::Sequential,
    }
}

/// Builds the chase with the cpus of the node of `cpu`, `cpu` among them.
pub(crate) fn build<'a>(
    context: &MeasureContext,
    cycle: Cycle,
    lines: &'a mut [Line],
    cpu: CpuId,
) -> Result<Chase<'a>, MeasureError> {
    let helpers = context.helpers_of(cpu);
    let wanted = cycle.size_bytes() / BYTES_PER_BUILDER;
    let builders = wanted.clamp(1, helpers.len().min(MOST_BUILDERS));
    let parts = cycle.parts(lines, NonZeroUsize::new(builders).unwrap_or(NonZeroUsize::MIN))?;
    let built = std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .zip(helpers.into_iter().cycle())
            .map(|(part, helper)| {
                scope.spawn(move || -> Result<_, MeasureError> {
                    let _pinned = pinned(helper)?;
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
pub(crate) struct Windows<'w, 'c> {
    walk: &'w mut Walk<'c>,
    loads: u64,
}

impl<'w, 'c> Windows<'w, 'c> {
    /// Warms up: once round the cycle, or far enough to reach the steady state.
    pub fn warmed_up(
        context: &MeasureContext,
        chase: &Chase<'_>,
        walk: &'w mut Walk<'c>,
    ) -> Result<Self, MeasureError> {
        let nodes = chase.cycle().nodes() as u64;
        walk.loads(nodes.clamp(WINDOW_LOADS, WARM_UP_LOADS));
        let usual = if context.time_is_virtual() { VIRTUAL_WINDOW_LOADS } else { WINDOW_LOADS };
        let first = walk.window(usual)?;
        let expected_ns = first.ns_per_load(&context.clock) * usual as f64;
        let stretch = (LEAST_WINDOW_NS / expected_ns.max(1.0)).clamp(1.0, 100.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 100")]
        let loads = usual * (stretch.ceil() as u64);
        Ok(Self { walk, loads })
    }

    /// The next window.
    pub fn take(&mut self, context: &MeasureContext) -> Result<Reading, MeasureError> {
        self.take_several(context, 1)
    }

    /// The next `count` windows as one.
    pub fn take_several(
        &mut self,
        context: &MeasureContext,
        count: u64,
    ) -> Result<Reading, MeasureError> {
        let window = self.walk.window(self.loads * count)?;
        let value = window.ns_per_load(&context.clock);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a duration")]
        let duration_ns = context.clock.ns(window.ticks) as u64;
        Ok(Reading { values: vec![(Metric::Latency, value)], duration_ns, work: window.loads })
    }
}
