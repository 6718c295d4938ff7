//! Core cells: the clock frequency, L1 load-to-use latency as a multiple of a dependent add, an
//! atomic addition, page walks that overlap, page faults, system calls and processes.

mod calls;
mod faults;
mod processes;

use numalab_host::{base_pages, page_size_bytes};
use std::time::Duration;

use numalab_membench::{Adds, AtomicAdds, Line, PageTimes, Walk};
use numalab_record::{AccessPattern, Cell, CoreCell, Metric};
use numalab_stats::median;
use numalab_topology::{CpuId, Machine};

use self::calls::Calls;
use self::faults::Faults;
use super::{Measurement, Together};
use crate::buffer::{Buffer, MemorySource, pinned};
use crate::chase::{BuiltChase, ChaseOrder};
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::measured::{Give, Measured};
use crate::sampling::{Samples, WindowValues, sample_here};
use crate::team::join_all;

/// Half the smallest L1 data cache in use.
const BUFFER_BYTES: u64 = 16 << 10;
/// Windows of adds and of L1 loads in a sample, alternated, so that both run at the same frequency.
/// Most of them run without an interruption, and with the buffer in L1, from which the rest of the sample
/// before has evicted it.
const WINDOWS: u64 = 5;
/// About 20 microseconds of each.
const ADDS: u64 = 80_000;
const LOADS: u64 = 20_000;
const ATOMIC_ADDS: u64 = 20_000;
/// Most memory for the reads of one line per page; larger base pages are left out.
const MOST_PAGE_BYTES: u64 = 64 << 20;

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
        let mut buffer = Buffer::touched(context, BUFFER_BYTES, order.pages, source.clone())?;
        let claim = buffer.claim();
        let chase = BuiltChase::build(context, order, buffer.lines(BUFFER_BYTES)?, None)?;
        let mut walked = walked(context, source)?;
        let bytes = walked_bytes(context);
        let pages = walked.as_mut().map(|buffer| buffer.lines(bytes)).transpose()?;
        let mut loops = Loops {
            context,
            walk: chase.walk(),
            pages: pages.map_or(&[][..], |lines| &*lines),
            own: Line::ZERO,
            faults: Faults::new(Calls::new(other_cpu(&context.machine, cpu)))?,
        };
        let mut samples = Samples::new(context, &cell.id, limit);
        let outcome = sample_here(&mut samples, |_| loops.take())?;
        let placement = claim.prove(context, &pinned)?;
        Ok(Measured::new(cell, outcome, vec![placement], samples.into_taken()))
    };
    std::thread::scope(|scope| join_all([scope.spawn(work)])).map(|mut all| all.remove(0))
}

/// Returns another cpu, of the same node if possible.
fn other_cpu(machine: &Machine, cpu: CpuId) -> Option<CpuId> {
    let node = |cpu| machine.cpu(cpu).and_then(|cpu| cpu.node);
    let others = machine.usable_cpus();
    let others = others.iter().filter(|other| *other != cpu);
    others.min_by_key(|other| node(*other) != node(cpu))
}

fn walked_bytes(context: &MeasureContext) -> u64 {
    CoreCell::pages_read(&context.machine) * page_size_bytes(base_pages())
}

/// Returns memory of pages to walk, if base pages are small.
fn walked(context: &MeasureContext, source: MemorySource) -> Result<Option<Buffer>, MeasureError> {
    let bytes = Some(walked_bytes(context)).filter(|bytes| *bytes <= MOST_PAGE_BYTES);
    bytes.map(|bytes| Buffer::touched(context, bytes, base_pages(), source)).transpose()
}

struct Loops<'a> {
    context: &'a MeasureContext,
    walk: Walk<'a>,
    /// Memory with a line to read in each page; empty if base pages are large.
    pages: &'a [Line],
    /// A line that no other core uses.
    own: Line,
    faults: Option<Faults>,
}

impl Loops<'_> {
    /// Takes one sample of all loops, so that a change of frequency affects them alike.
    fn take(&mut self) -> Result<WindowValues, MeasureError> {
        let clock = &self.context.clock;
        let core = self.core()?;
        let atomic = AtomicAdds::window(self.own.as_atomic(), ATOMIC_ADDS)?;
        let page_bytes = usize::try_from(page_size_bytes(base_pages())).unwrap_or(usize::MAX);
        let page_lines = page_bytes / Line::SIZE_BYTES;
        // The first pass brings the lines and page tables back into the caches.
        PageTimes::of_reads(self.pages, page_lines)?;
        let reads = PageTimes::of_reads(self.pages, page_lines)?;
        let parts = [atomic.ticks, reads.ticks];
        let ns = core.ns + parts.map(|ticks| clock.ns(ticks)).iter().sum::<f64>();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a duration")]
        let duration_ns = ns as u64;
        let mut values = vec![
            (Metric::LoadToUse, core.load_to_use),
            (Metric::CoreClock, core.cycles_per_ns),
            (Metric::AtomicAdd, atomic.ns_per_add(clock)),
        ];
        if reads.pages > 0 {
            values.push((Metric::PageRead, reads.ns_per_page(clock)));
        }
        if let Some(faults) = &mut self.faults {
            values.extend(faults.take(clock)?);
        }
        Ok(WindowValues { values, duration_ns, work: WINDOWS * LOADS })
    }

    /// Alternates windows of adds and L1 loads; the median window of each counts.
    fn core(&mut self) -> Result<CoreTimes, MeasureError> {
        let clock = &self.context.clock;
        let (mut clocks, mut ratios, mut ns) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..WINDOWS {
            let adds = Adds::window(ADDS)?;
            let loads = self.walk.window(LOADS)?;
            let cycles_per_ns = adds.core_cycles_per_ns(clock);
            clocks.push(cycles_per_ns);
            ratios.push(loads.ns_per_load(clock) * cycles_per_ns);
            ns += clock.ns(adds.ticks) + clock.ns(loads.ticks);
        }
        let middle = |values: &[f64]| median(values).unwrap_or_default();
        Ok(CoreTimes { cycles_per_ns: middle(&clocks), load_to_use: middle(&ratios), ns })
    }
}

/// The clock of a core, and its L1 load-to-use latency as a multiple of an add.
struct CoreTimes {
    cycles_per_ns: f64,
    load_to_use: f64,
    /// The time that all windows took.
    ns: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machines::{allowed, machine};

    #[test]
    fn a_thread_is_woken_on_another_cpu_of_the_node_if_there_is_one() {
        assert_eq!(other_cpu(&machine(2, 2), CpuId(0)), Some(CpuId(1)));
        assert_eq!(other_cpu(&machine(2, 2), CpuId(3)), Some(CpuId(2)));
        let apart = allowed(machine(2, 2), "1,3", "0-1");
        assert_eq!(other_cpu(&apart, CpuId(1)), Some(CpuId(3)), "of another node");
        assert_eq!(other_cpu(&allowed(machine(2, 2), "1", "0"), CpuId(1)), None);
    }
}
