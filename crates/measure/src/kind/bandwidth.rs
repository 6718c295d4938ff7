//! Bandwidth cells: a team streams in rounds, and only the time in which every worker streams
//! counts.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use numalab_marks::virtual_time;
use numalab_membench::Barrier;
use numalab_record::{
    AccessPattern, BandwidthCell, Cell, Effort, Experiment, IsaName, Metric, Outcome, Pages,
    Placement, StreamKernel, WorkerPlan,
};
use numalab_topology::Machine;

use super::{Measurement, ROUNDS, Together, cells_of, filling};
use crate::buffer::{Buffer, MemorySource, check_memory, pinned};
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::measured::{Give, Measured};
use crate::sampling::{Samples, WindowValues};
use crate::scope::{MatrixShape, Scope, all_workers, matrix_workers};
use crate::share::Share;
use crate::stream::{RoundLog, Span, StreamRules, stream_over};
use crate::survey::Survey;
use crate::target::Target;
use crate::team::{abort_on_error, give_and_join};

/// The common properties of bandwidth cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BandwidthSpec {
    pub pattern: AccessPattern,
    pub pages: Pages,
    pub isa: IsaName,
    /// Bytes of all buffers of one worker together.
    pub size_bytes: u64,
}

/// Returns a cell for each kernel with one team.
pub fn bandwidth_cells(
    workers: &[WorkerPlan],
    kernels: &[StreamKernel],
    spec: &BandwidthSpec,
) -> Vec<Cell> {
    let one = |&kernel: &StreamKernel| {
        Cell::of(Experiment::Bandwidth(BandwidthCell {
            workers: workers.to_vec(),
            kernel,
            pattern: spec.pattern,
            size_bytes: spec.size_bytes,
            pages: spec.pages,
            isa: spec.isa.clone(),
        }))
    };
    kernels.iter().map(one).collect()
}

/// Returns every kernel on one cpu and on all; with several nodes, also the first of the kernels
/// from each node to each. No kernels mean all of them, with reads between the nodes.
pub fn bandwidth_plan(
    target: &Target,
    kernels: &[StreamKernel],
    spec: &BandwidthSpec,
) -> Vec<Cell> {
    let Target { machine, scope, .. } = target;
    let (between, kernels) = match kernels {
        [] => (StreamKernel::Read, &StreamKernel::ALL[..]),
        [first, ..] => (*first, kernels),
    };
    let all = all_workers(machine, scope);
    let mut cells = bandwidth_cells(&all[..1], kernels, spec);
    cells.extend(bandwidth_cells(&all, kernels, spec));
    if scope.nodes.len() > 1 {
        cells.extend(bandwidth_matrix(machine, scope, between, spec));
    }
    let mut seen = BTreeSet::new();
    cells.retain(|cell| seen.insert(cell.id.clone()));
    cells
}

/// Returns a cell for each pair of a node with cpus and a node with memory: all cores of the first
/// stream from the second.
pub fn bandwidth_matrix(
    machine: &Machine,
    scope: &Scope,
    kernel: StreamKernel,
    spec: &BandwidthSpec,
) -> Vec<Cell> {
    let cores = scope.one_cpu_per_core(machine);
    let node_of = |cpu| machine.cpu(cpu).and_then(|cpu| cpu.node);
    matrix_workers(machine, scope, MatrixShape::PerNode)
        .into_iter()
        .flat_map(|pair| {
            let home = node_of(pair.cpu);
            let team: Vec<WorkerPlan> = cores
                .iter()
                .filter(|&&cpu| node_of(cpu) == home)
                .map(|&cpu| WorkerPlan { cpu, node: pair.node })
                .collect();
            bandwidth_cells(&team, &[kernel], spec)
        })
        .collect()
}

/// Length of a round in nanoseconds: long compared with the start of all workers.
const ROUND_NS: f64 = 8_000_000.0;

/// The end of a cell, as the leader of its team saw it; `None` for the others.
type Ended<'a> = Option<(Outcome, Samples<'a>)>;

/// The state shared by the workers of a team.
struct TeamWork<'a> {
    context: &'a MeasureContext,
    first: &'a BandwidthCell,
    cells: Vec<(&'a Cell, &'a BandwidthCell)>,
    share: &'a Share<'a>,
    barrier: Barrier,
    logs: Vec<Mutex<RoundLog>>,
    placements: Vec<Mutex<Option<Placement>>>,
    cell_is_over: AtomicBool,
    time_is_over: AtomicBool,
}

/// Plans the part of `numalab measure`: one cpu, all cpus, and node x node.
pub(super) fn beyond_caches(survey: &Survey<'_>, size_bytes: u64) -> Vec<Cell> {
    let spec = |pattern| BandwidthSpec {
        pattern,
        pages: survey.pages,
        isa: IsaName::fastest(),
        size_bytes,
    };
    let sequential = spec(AccessPattern::Sequential);
    let (first, all) = ([survey.first_worker()], all_workers(survey.machine, &survey.scope));
    // One kernel each for reads, for writes without a read for ownership, and for both.
    let quick = [StreamKernel::Read, StreamKernel::WriteNt, StreamKernel::Triad];
    let kernels = if survey.effort == Effort::Quick { &quick[..] } else { &StreamKernel::ALL };
    let mut cells = bandwidth_cells(&first, kernels, &sequential);
    // With one core, these cells would be those of the first worker.
    if all.len() > 1 {
        cells.extend(bandwidth_cells(&all, kernels, &sequential));
    }
    if survey.effort != Effort::Quick {
        for pattern in [AccessPattern::Stride(256), AccessPattern::Random] {
            cells.extend(bandwidth_cells(&all, &[StreamKernel::Read], &spec(pattern)));
        }
    }
    if survey.scope.nodes.len() > 1 {
        let read = StreamKernel::Read;
        cells.extend(bandwidth_matrix(survey.machine, &survey.scope, read, &sequential));
    }
    // Different teams can be the same on a small machine.
    let mut seen = BTreeSet::new();
    cells.retain(|cell| seen.insert(cell.id.clone()));
    cells
}

/// Checks whether there is memory for the buffers of all workers.
fn check_buffers(cell: &BandwidthCell) -> Result<(), MeasureError> {
    let buffers = cell.workers.len();
    check_memory(cell.size_bytes.saturating_mul(buffers as u64), cell.pages, None)
}

impl Measurement for BandwidthCell {
    fn shares_buffers(&self, other: &Experiment) -> bool {
        other.cell().is_some_and(|other: &Self| {
            self.workers == other.workers
                && self.size_bytes == other.size_bytes
                && self.pages == other.pages
        })
    }

    /// Runs cells of one team on buffers that each worker fills once.
    fn run(&self, together: Together<'_>, give: Give<'_>) -> Result<(), MeasureError> {
        check_buffers(self)?;
        let Together { context, share, .. } = together;
        let workers = self.workers.clone();
        let team = TeamWork {
            context,
            first: self,
            cells: cells_of(together.cells),
            share,
            barrier: Barrier::new(u32::try_from(workers.len()).unwrap_or(u32::MAX)),
            logs: workers.iter().map(|_| Mutex::default()).collect(),
            placements: workers.iter().map(|_| Mutex::default()).collect(),
            cell_is_over: AtomicBool::new(false),
            time_is_over: AtomicBool::new(false),
        };
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            let team = &team;
            let start = |(index, worker): (usize, WorkerPlan)| {
                let sender = (index == 0).then(|| sender.clone());
                scope.spawn(move || {
                    // A worker that failed would leave the others at the barrier forever.
                    abort_on_error(&team.barrier, || team.work(index, worker, sender.as_ref()))
                })
            };
            let threads: Vec<_> = workers.into_iter().enumerate().map(start).collect();
            // The receiver ends when the last sender is gone, including this one.
            drop(sender);
            give_and_join(receiver, give, &team.barrier, threads)
        })
    }

    fn check(&self, _: &[Cell]) -> Result<(), MeasureError> {
        StreamRules::of(self).checked(0)?;
        check_buffers(self)?;
        for worker in &self.workers {
            drop(Buffer::untouched(self.size_bytes, self.pages, MemorySource::Node(worker.node))?);
        }
        Ok(())
    }

    fn building(&self, _: &[Cell]) -> Duration {
        filling(self.size_bytes)
    }

    fn sampling(&self) -> Duration {
        ROUNDS
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic poisons the lock, but is resumed when the threads are joined.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> TeamWork<'a> {
    /// Runs one worker's part of all cells; the worker with `sender` leads.
    fn work(
        &self,
        index: usize,
        worker: WorkerPlan,
        sender: Option<&Sender<(&'a Cell, Measured)>>,
    ) -> Result<(), MeasureError> {
        let pinned = pinned(worker.cpu)?;
        let (size, pages, source) =
            (self.first.size_bytes, self.first.pages, MemorySource::Node(worker.node));
        let mut buffer = Buffer::touched(self.context, size, pages, source)?;
        let claim = buffer.claim();
        for (number, &(cell, bandwidth)) in self.cells.iter().enumerate() {
            let samples =
                sender.map(|_| Samples::new(self.context, &cell.id, self.share.limit(number)));
            let (ended, isa) = self.stream_one(index, bandwidth, &mut buffer, samples)?;
            // Proven after the cell, since pages can be migrated while it runs.
            let placement = Placement { isa, ..claim.prove(self.context, &pinned)? };
            *lock(&self.placements[index]) = Some(placement);
            // Every placement is stored before the leader collects them.
            self.barrier.wait()?;
            if let (Some(sender), Some((outcome, samples))) = (sender, ended) {
                let placements = self.placements.iter().filter_map(|slot| lock(slot).take());
                let measured =
                    Measured::new(cell, outcome, placements.collect(), samples.into_taken());
                // The receiver is gone only if storing a cell failed, which ends the team anyway.
                let _ = sender.send((cell, measured));
                // Relaxed: the barrier that follows orders the store.
                self.time_is_over.store(self.share.is_spent(), Ordering::Relaxed);
            }
            // All workers read the decision after this barrier, and so agree.
            self.barrier.wait()?;
            if self.time_is_over.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// Streams in rounds until the leader, which has the samples, ends the cell. Returns what the
    /// leader found, and the instruction set that a trial chose.
    fn stream_one(
        &self,
        index: usize,
        bandwidth: &BandwidthCell,
        buffer: &mut Buffer,
        mut samples: Option<Samples<'a>>,
    ) -> Result<(Ended<'a>, Option<IsaName>), MeasureError> {
        let lines = buffer.lines(bandwidth.size_bytes)?;
        let rules = StreamRules::of(bandwidth);
        let mut stream = stream_over(self.context, &rules, lines)?;
        loop {
            self.barrier.wait()?;
            self.align(samples.is_some())?;
            lock(&self.logs[index]).round(&mut stream, &self.context.clock, ROUND_NS)?;
            // The leader reads the logs only after every worker has written its own.
            self.barrier.wait()?;
            let mut outcome = None;
            if let Some(samples) = &mut samples {
                match self.read_logs()? {
                    Some((reading, disturbed)) => samples.push(&reading, disturbed),
                    None => samples.miss(),
                }
                outcome = samples.ended()?;
                // Relaxed: the barrier that follows orders the store.
                self.cell_is_over.store(outcome.is_some(), Ordering::Relaxed);
            }
            self.barrier.wait()?;
            if self.cell_is_over.load(Ordering::Relaxed) {
                return Ok((outcome.zip(samples), rules.chosen(&stream)));
            }
        }
    }

    /// Aligns the workers' virtual clocks at the start of a round in an emulated machine.
    fn align(&self, leads: bool) -> Result<(), MeasureError> {
        if !virtual_time::in_use() {
            return Ok(());
        }
        if leads {
            virtual_time::align();
        }
        Ok(self.barrier.wait()?)
    }

    /// Returns the bandwidth of a round over the time in which all workers streamed; `None` if
    /// there was no such time because the system delayed a worker.
    fn read_logs(&self) -> Result<Option<(WindowValues, Option<String>)>, MeasureError> {
        let logs: Vec<_> = self.logs.iter().map(lock).collect();
        let spans = logs.iter().filter_map(|log| log.span());
        // Bytes count only while all workers streamed: a worker alone gets more bandwidth.
        let Some(span) = Span::common(spans) else { return Ok(None) };
        let clock = &self.context.clock;
        let duration_ns = span.ns(clock)?;
        let bytes: f64 = logs.iter().map(|log| log.bytes_within(span, clock)).sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded down")]
        let (duration, work) = (duration_ns as u64, bytes as u64);
        let values = vec![(Metric::Bandwidth, bytes / duration_ns)];
        let disturbed = logs.iter().find_map(|log| log.disturbed.clone());
        Ok(Some((WindowValues { values, duration_ns: duration, work }, disturbed)))
    }
}

#[cfg(test)]
mod tests;
