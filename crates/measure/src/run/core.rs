//! The core itself: its clock, and L1 load-to-use as a multiple of a dependent add.

use std::time::Duration;

use numalab_membench::{Adds, Chase, Cycle, Line, LineSize, Pattern};
use numalab_record::{Cell, Metric, Pages};
use numalab_topology::CpuId;

use super::Measured;
use super::team::join_all;
use super::worker::{memory_on, pinned, prove_placement};
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::sampling::{Reading, Samples, sample_here};

/// Half the smallest L1 data cache in use.
const BUFFER_BYTES: usize = 16 << 10;
/// About 100 microseconds of each, alternated, so that both see the same clock.
const ADDS: u64 = 400_000;
const LOADS: u64 = 100_000;

/// Alternates windows of adds and of L1 loads on `cpu`.
pub(super) fn run(
    context: &MeasureContext,
    cell: &Cell,
    cpu: CpuId,
    limit: Duration,
) -> Result<Measured, MeasureError> {
    let node = context.machine.cpu(cpu).and_then(|cpu| cpu.node);
    let node = node.filter(|&node| context.machine.memory_nodes().contains(node));
    let node = node.or_else(|| context.machine.memory_nodes().first()).unwrap_or_default();
    let work = || -> Result<Measured, MeasureError> {
        let pinned = pinned(cpu)?;
        let mut mapping = memory_on(context, BUFFER_BYTES as u64, Pages::Base, node)?;
        let span = mapping.span();
        let cycle =
            Cycle::new(Pattern::Random, BUFFER_BYTES, LineSize::Bytes64, context.settings.seed)?;
        let chase = Chase::build(cycle, Line::slice_from_bytes(mapping.as_bytes_mut())?)?;
        let mut walk = chase.walk();
        walk.loads(LOADS);
        let mut samples = Samples::new(context, &cell.id, limit);
        let outcome = sample_here(&mut samples, || {
            let adds = Adds::window(ADDS)?;
            let loads = walk.window(LOADS)?;
            let cycles_per_ns = adds.core_cycles_per_ns(&context.clock);
            let load_to_use = loads.ns_per_load(&context.clock) * cycles_per_ns;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a duration"
            )]
            let duration_ns = (context.clock.ns(adds.ticks) + context.clock.ns(loads.ticks)) as u64;
            let values = vec![(Metric::LoadToUse, load_to_use), (Metric::CoreClock, cycles_per_ns)];
            Ok(Reading { values, duration_ns, work: LOADS })
        })?;
        let placement = prove_placement(context, &pinned, span, node)?;
        Ok(Measured::new(cell, outcome, vec![placement], samples.into_taken()))
    };
    std::thread::scope(|scope| join_all([scope.spawn(work)])).map(|mut all| all.remove(0))
}
