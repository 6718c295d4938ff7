//! Core cells: the clock frequency, L1 load-to-use latency as a multiple of a dependent add, and an
//! atomic addition.

use numalab_host::base_pages;
use std::time::Duration;

use numalab_membench::{Adds, AtomicAdds, Line};
use numalab_record::{AccessPattern, Cell, CoreCell, Metric};
use numalab_topology::CpuId;

use super::{Measurement, Together};
use crate::buffer::{Buffer, MemorySource, pinned};
use crate::chase::{BuiltChase, ChaseOrder};
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::measured::{Give, Measured};
use crate::sampling::{Reading, Samples, sample_here};
use crate::team::join_all;

/// Half the smallest L1 data cache in use.
const BUFFER_BYTES: u64 = 16 << 10;
/// About 100 microseconds of each, alternated, so that both run at the same frequency.
const ADDS: u64 = 400_000;
const LOADS: u64 = 100_000;
const ATOMIC_ADDS: u64 = 20_000;

impl Measurement for CoreCell {
    fn run(&self, together: Together<'_>, give: Give<'_>) -> Result<(), MeasureError> {
        let Together { context, cells, share } = together;
        cells.iter().try_for_each(|cell| give(cell, run(context, cell, self.cpu, share.limit(0))?))
    }
}

/// Alternates windows of adds, L1 loads and atomic additions on `cpu`.
fn run(
    context: &MeasureContext,
    cell: &Cell,
    cpu: CpuId,
    limit: Duration,
) -> Result<Measured, MeasureError> {
    let node = context.machine.cpu(cpu).and_then(|cpu| cpu.node);
    // A cpu's node may have no memory; the buffer is in L1, so any node will do.
    let node = node.filter(|&node| context.machine.memory_nodes().contains(node));
    let node = node.or_else(|| context.machine.memory_nodes().first()).unwrap_or_default();
    let work = || -> Result<Measured, MeasureError> {
        let pinned = pinned(cpu)?;
        let order = ChaseOrder { pattern: AccessPattern::Random, pages: base_pages() };
        let source = MemorySource::Node(node);
        let mut buffer = Buffer::touched(context, BUFFER_BYTES, order.pages, source)?;
        let claim = buffer.claim();
        let chase = BuiltChase::build(context, order, buffer.lines(BUFFER_BYTES)?, None)?;
        let mut walk = chase.walk();
        // Brings the buffer into L1 before the first window.
        walk.loads(LOADS);
        let mut own = Line::ZERO;
        let own = own.as_atomic();
        let mut samples = Samples::new(context, &cell.id, limit);
        let outcome = sample_here(&mut samples, |_| {
            // All three within one sample, so that a change of frequency affects them alike.
            let adds = Adds::window(ADDS)?;
            let loads = walk.window(LOADS)?;
            let atomic = AtomicAdds::window(own, ATOMIC_ADDS)?;
            let cycles_per_ns = adds.core_cycles_per_ns(&context.clock);
            let load_to_use = loads.ns_per_load(&context.clock) * cycles_per_ns;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a duration"
            )]
            let duration_ns = [adds.ticks, loads.ticks, atomic.ticks]
                .map(|ticks| context.clock.ns(ticks))
                .iter()
                .sum::<f64>() as u64;
            let values = vec![
                (Metric::LoadToUse, load_to_use),
                (Metric::CoreClock, cycles_per_ns),
                (Metric::AtomicAdd, atomic.ns_per_add(&context.clock)),
            ];
            Ok(Reading { values, duration_ns, work: LOADS })
        })?;
        let placement = claim.prove(context, &pinned)?;
        Ok(Measured::new(cell, outcome, vec![placement], samples.into_taken()))
    };
    std::thread::scope(|scope| join_all([scope.spawn(work)])).map(|mut all| all.remove(0))
}
