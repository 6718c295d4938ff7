//! Loaded latency: one chaser, and load workers that stream at the same time.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use numalab_membench::{Barrier, Stamp, Throttle, generate};
use numalab_record::{
    AccessPattern, Cell, Effort, Experiment, IsaName, LoadedCell, Metric, Pages, Placement,
    StreamKernel, WorkerPlan,
};
use numalab_topology::{CpuId, Machine, NodeId, NodeSet};

use super::{Measurement, ROUNDS, Together, cells_of, filling};
use crate::buffer::{Buffer, MemorySource, check_memory, pinned};
use crate::chase::{BuiltChase, ChaseOrder, Windows};
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::measured::{Give, Measured};
use crate::sampling::{Samples, sample_here};
use crate::scope::{Scope, all_workers};
use crate::share::Share;
use crate::stream::{StreamRules, stream_over};
use crate::survey::Survey;
use crate::target::Target;
use crate::team::{give_and_join, give_up_on_error};

/// Pauses of a load worker per [`PACED_BYTES`], from full speed to nearly idle: if time is short,
/// the least informative cells are left out.
const DELAYS: [u32; 9] = [0, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096];

/// Returns the load workers for a chaser on `cpu`: one cpu of every other core, each on memory of
/// `node`.
pub fn load_workers(machine: &Machine, scope: &Scope, cpu: CpuId, node: NodeId) -> Vec<WorkerPlan> {
    let others = all_workers(machine, scope).into_iter().filter(|worker| worker.cpu != cpu);
    others.map(|worker| WorkerPlan { node, ..worker }).collect()
}

/// Returns a curve for each kernel: a chase on the first cpu, from this node's memory or the nearest,
/// under load by one cpu of every other core; nothing if there is only one core.
///
/// # Errors
/// [`MeasureError::Scope`] if there is no such node.
pub fn loaded_curves(
    target: &Target,
    node: Option<NodeId>,
    kernels: &[StreamKernel],
    size_bytes: u64,
) -> Result<Vec<Cell>, MeasureError> {
    let Target { machine, scope, pages } = target;
    let mut chaser = target.nearest(scope.cpus.first().copied().unwrap_or_default());
    if let Some(node) = node {
        Scope::new(machine, None, Some(&NodeSet::from_iter([node])))?;
        chaser.node = node;
    }
    let load = load_workers(machine, scope, chaser.cpu, chaser.node);
    let curve = |&kernel: &StreamKernel| {
        let (load, pages) = (load.clone(), *pages);
        loaded_cells(&LoadedCell { chaser, load, kernel, delay: None, size_bytes, pages })
    };
    Ok(if load.is_empty() { Vec::new() } else { kernels.iter().flat_map(curve).collect() })
}

/// Returns the curves of a surface: `chaser` on the memory of every node in scope, loaded by cores
/// of its own node and, separately, by those of the other nodes, with every kernel.
pub fn loaded_surface(
    machine: &Machine,
    scope: &Scope,
    cpu: CpuId,
    kernels: &[StreamKernel],
    (size_bytes, pages): (u64, Pages),
) -> Vec<Cell> {
    let home = machine.cpu(cpu).and_then(|cpu| cpu.node);
    let is_near = |worker: &WorkerPlan| machine.cpu(worker.cpu).and_then(|cpu| cpu.node) == home;
    let mut cells = Vec::new();
    for &node in &scope.nodes {
        let all = load_workers(machine, scope, cpu, node);
        let (near, far): (Vec<_>, Vec<_>) = all.into_iter().partition(is_near);
        for load in [near, far].into_iter().filter(|load| !load.is_empty()) {
            for &kernel in kernels {
                let (chaser, load) = (WorkerPlan { cpu, node }, load.clone());
                let idle = LoadedCell { chaser, load, kernel, delay: None, size_bytes, pages };
                cells.extend(loaded_cells(&idle));
            }
        }
    }
    cells
}

/// Returns the cells of the curve that begins with `idle`: first without load, then with falling
/// load.
pub fn loaded_cells(idle: &LoadedCell) -> Vec<Cell> {
    // The idle cell has no load at all: even rare requests would add latency.
    let delays = std::iter::once(None).chain(DELAYS.into_iter().map(Some));
    delays.map(|delay| Cell::of(Experiment::Loaded(LoadedCell { delay, ..idle.clone() }))).collect()
}

/// Bytes that a load worker streams per set of pauses.
const PACED_BYTES: usize = 16 << 10;
/// Parts into which these bytes and their pauses are divided. Memory answers a burst with the
/// latency of the burst: from the knee on, latency rises faster than bandwidth, so the average over
/// bursts and pauses is above that of an even load. A part is a few times the bytes that a core has
/// in flight.
const PARTS: u32 = 16;
/// Chase windows in one sample: long compared with the pause between two chunks.
const WINDOWS_PER_SAMPLE: u64 = 4;

/// The state shared by chaser and load workers.
struct LoadedTeam<'a> {
    context: &'a MeasureContext,
    first: &'a LoadedCell,
    cells: Vec<(&'a Cell, &'a LoadedCell)>,
    share: &'a Share<'a>,
    barrier: Barrier,
    stop: AtomicBool,
    time_is_over: AtomicBool,
    counted_bytes: Vec<AtomicU64>,
}

/// Plans the part of `numalab measure`: the first cpu against all other cores of its node.
pub(super) fn beyond_caches(survey: &Survey<'_>, size_bytes: u64) -> Vec<Cell> {
    let chaser = survey.first_worker();
    let core_of = |cpu| survey.machine.cpu(cpu).and_then(|cpu| cpu.core);
    let load: Vec<WorkerPlan> = all_workers(survey.machine, &survey.scope)
        .into_iter()
        .filter(|worker| worker.node == chaser.node)
        // A sibling thread slows the chaser by sharing its core rather than through memory.
        .filter(|worker| {
            core_of(worker.cpu).is_none() || core_of(worker.cpu) != core_of(chaser.cpu)
        })
        .filter(|worker| worker.cpu != chaser.cpu)
        .collect();
    if load.is_empty() || survey.effort == Effort::Quick {
        return Vec::new();
    }
    let (kernel, pages) = (StreamKernel::Read, survey.pages);
    loaded_cells(&LoadedCell { chaser, load, kernel, delay: None, size_bytes, pages })
}

/// Checks whether there is memory for the buffers of all workers.
fn check_buffers(cell: &LoadedCell) -> Result<(), MeasureError> {
    let buffers = cell.load.len() + 1;
    check_memory(cell.size_bytes.saturating_mul(buffers as u64), cell.pages, None)
}

impl Measurement for LoadedCell {
    fn shares_buffers(&self, other: &Experiment) -> bool {
        other.cell().is_some_and(|other: &Self| {
            self.chaser == other.chaser
                && self.load == other.load
                && (self.kernel, self.size_bytes, self.pages)
                    == (other.kernel, other.size_bytes, other.pages)
        })
    }

    /// Runs the cells of one curve on buffers that each worker fills once.
    fn run(&self, together: Together<'_>, give: Give<'_>) -> Result<(), MeasureError> {
        check_buffers(self)?;
        let Together { context, share, .. } = together;
        let load = self.load.clone();
        let team = LoadedTeam {
            context,
            first: self,
            cells: cells_of(together.cells),
            share,
            barrier: Barrier::new(u32::try_from(load.len() + 1).unwrap_or(u32::MAX)),
            stop: AtomicBool::new(false),
            time_is_over: AtomicBool::new(false),
            counted_bytes: load.iter().map(|_| AtomicU64::new(0)).collect(),
        };
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            let team = &team;
            let mut threads = vec![scope.spawn(move || team.ending(|| team.chase(&sender)))];
            threads.extend(load.into_iter().enumerate().map(|(index, worker)| {
                scope.spawn(move || team.ending(|| team.load(index, worker)))
            }));
            give_and_join(receiver, give, &team.barrier, threads)
        })
    }

    fn check(&self, _: &[Cell]) -> Result<(), MeasureError> {
        check_buffers(self)?;
        drop(Buffer::untouched(self.size_bytes, self.pages, MemorySource::Node(self.chaser.node))?);
        Ok(())
    }

    fn building(&self, _: &[Cell]) -> Duration {
        filling(self.size_bytes)
    }

    fn sampling(&self) -> Duration {
        ROUNDS
    }
}

/// Returns the throttle of a load worker with this many pauses per [`PACED_BYTES`].
fn throttle(delay_spins: u32) -> Throttle {
    match delay_spins {
        // Without pauses there is nothing to spread.
        0 => Throttle { chunk_bytes: PACED_BYTES, delay_spins },
        _ => Throttle {
            chunk_bytes: PACED_BYTES / PARTS as usize,
            delay_spins: delay_spins.div_ceil(PARTS),
        },
    }
}

impl<'a> LoadedTeam<'a> {
    /// Runs a worker; if it fails or panics, the other workers stop waiting and loading.
    fn ending<T>(&self, work: impl FnOnce() -> Result<T, MeasureError>) -> Result<T, MeasureError> {
        let give_up = || {
            // Load workers are in their loop, which checks `stop`, or at the barrier.
            self.barrier.abort();
            self.stop.store(true, Ordering::Relaxed);
        };
        give_up_on_error(give_up, work)
    }

    fn chase(&self, sender: &Sender<(&'a Cell, Measured)>) -> Result<(), MeasureError> {
        let WorkerPlan { cpu, node } = self.first.chaser;
        let pinned = pinned(cpu)?;
        let (size, pages) = (self.first.size_bytes, self.first.pages);
        let source = MemorySource::Node(node);
        let mut buffer = Buffer::touched(self.context, size, pages, source)?;
        let claim = buffer.claim();
        let order = ChaseOrder { pattern: AccessPattern::Random, pages };
        let chase = BuiltChase::build(self.context, order, buffer.lines(size)?, Some(cpu))?;
        for (number, &(cell, loaded)) in self.cells.iter().enumerate() {
            // Read before the barrier, so that everything streamed after it counts as new.
            let before: Vec<u64> = self.counts().collect();
            self.barrier.wait()?;
            if loaded.delay.is_some() {
                self.wait_for_load(&before);
            }
            let limit = self.share.limit(number);
            let measured =
                self.sample((cell, limit), &chase, |context| claim.prove(context, &pinned));
            self.stop.store(true, Ordering::Relaxed);
            let measured = measured?;
            self.time_is_over.store(self.share.is_spent(), Ordering::Relaxed);
            self.barrier.wait()?;
            self.stop.store(false, Ordering::Relaxed);
            // The receiver is gone only if storing a cell failed, which ends the team anyway.
            let _ = sender.send((cell, measured));
            if self.time_is_over.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    fn sample(
        &self,
        (cell, limit): (&Cell, Duration),
        chase: &BuiltChase<'_>,
        prove: impl FnOnce(&MeasureContext) -> Result<Placement, MeasureError>,
    ) -> Result<Measured, MeasureError> {
        let clock = &self.context.clock;
        let mut walk = chase.walk();
        let mut windows = Windows::warmed_up(self.context, chase, &mut walk)?;
        let mut samples = Samples::new(self.context, &cell.id, limit);
        let outcome = sample_here(&mut samples, |_| {
            // Bandwidth is that of the same time as the latency.
            let (start, bytes_before) = (Stamp::now(), self.bytes_loaded());
            let mut reading = windows.take_several(self.context, WINDOWS_PER_SAMPLE)?;
            let bytes = self.bytes_loaded() - bytes_before;
            let ns = clock.ns(Stamp::now().since(start)?);
            reading.values.push((Metric::Bandwidth, bytes as f64 / ns));
            Ok(reading)
        })?;
        let placement = prove(self.context)?;
        Ok(Measured::new(cell, outcome, vec![placement], samples.into_taken()))
    }

    fn bytes_loaded(&self) -> u64 {
        self.counts().sum()
    }

    fn counts(&self) -> impl Iterator<Item = u64> {
        self.counted_bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed))
    }

    /// Waits until every load worker streams. Other work on its cpu may delay one long after the
    /// barrier, and windows until then would not be under load.
    fn wait_for_load(&self, before: &[u64]) {
        let idle = || self.counts().zip(before).any(|(now, &before)| now == before);
        while idle() && !self.barrier.is_aborted() {
            spin_loop();
        }
    }

    fn load(&self, index: usize, worker: WorkerPlan) -> Result<(), MeasureError> {
        let LoadedCell { size_bytes, pages, kernel, .. } = *self.first;
        let pinned = pinned(worker.cpu)?;
        let source = MemorySource::Node(worker.node);
        let mut buffer = Buffer::touched(self.context, size_bytes, pages, source)?;
        let claim = buffer.claim();
        // Load workers matter only by their traffic.
        let pattern = AccessPattern::Sequential;
        let rules = StreamRules { kernel, pattern, isa: IsaName::fastest() };
        let mut stream = stream_over(self.context, &rules, buffer.lines(size_bytes)?)?;
        claim.prove(self.context, &pinned)?;
        for &(_, loaded) in &self.cells {
            self.barrier.wait()?;
            if let Some(delay_spins) = loaded.delay {
                generate(
                    &mut stream,
                    throttle(delay_spins),
                    &self.stop,
                    &self.counted_bytes[index],
                );
            }
            self.barrier.wait()?;
            if self.time_is_over.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machines::{machine, whole, with_memory_alone};
    use numalab_host::base_pages;
    use numalab_record::Experiment;
    use std::collections::BTreeSet;

    #[test]
    fn pauses_are_spread_evenly_over_the_stream() {
        let per_paced = |delay: u32| {
            let throttle = throttle(delay);
            let parts = PACED_BYTES / throttle.chunk_bytes;
            (throttle.chunk_bytes, throttle.delay_spins as usize * parts)
        };
        assert_eq!(per_paced(0), (PACED_BYTES, 0));
        for delay in DELAYS.into_iter().filter(|delay| *delay > 0) {
            assert_eq!(per_paced(delay), (1024, delay as usize));
        }
    }

    #[test]
    fn a_surface_loads_the_memory_of_every_node_from_either_side_with_every_kernel() {
        let machine = with_memory_alone(machine(2, 2));
        let scope = whole(&machine);
        let kernels = [StreamKernel::Read, StreamKernel::Write];
        let cells = loaded_surface(&machine, &scope, CpuId(0), &kernels, (64, base_pages()));
        let curves: BTreeSet<_> = cells
            .iter()
            .map(|cell| match &cell.experiment {
                Experiment::Loaded(loaded) => {
                    assert!(loaded.load.iter().all(|worker| worker.node == loaded.chaser.node));
                    let cpus = loaded.load.iter().map(|worker| worker.cpu.0).collect::<Vec<_>>();
                    (loaded.chaser.node.0, cpus, loaded.kernel.name())
                }
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = (0..3).flat_map(|node| {
            [vec![1], vec![2, 3]]
                .into_iter()
                .flat_map(move |cpus| ["read", "write"].map(|kernel| (node, cpus.clone(), kernel)))
        });
        assert_eq!(curves, expected.collect());
        let names: BTreeSet<_> = cells.iter().map(|cell| &cell.id).collect();
        assert_eq!((cells.len(), names.len()), (120, 120), "no name twice");
    }
}
