//! Bandwidth cells: a team streams in rounds, and only the time in which every
//! worker ran counts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use numalab_host::{Mapping, ThreadSnapshot};
use numalab_membench::{
    Access, Arrays, Barrier, Clock, Isa, Kernel, Line, Stamp, Stream, virtual_time,
};
use numalab_record::{
    AccessPattern, BandwidthCell, Cell, Experiment, Metric, Outcome, Placement, StreamKernel,
    WorkerPlan,
};

use super::team::{abort_on_error, give_and_join};
use super::worker::{memory_on, pinned, prove_placement};
use super::{Give, Measured};
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::sampling::{Reading, Samples};

/// Length of a round in nanoseconds: long against the start of all workers.
const ROUND_NS: f64 = 8_000_000.0;
/// Lines between two notes of a worker's log: 256 KiB of each array.
const LINES_PER_NOTE: usize = 4_096;

/// What one worker did in one round: counted bytes so far, by time.
#[derive(Debug, Default)]
struct Log {
    notes: Vec<(Stamp, u64)>,
    disturbed: Option<String>,
}

/// What the workers of a team share.
struct TeamWork<'a> {
    context: &'a MeasureContext,
    cells: Vec<(&'a Cell, &'a BandwidthCell)>,
    limit: Duration,
    barrier: Barrier,
    logs: Vec<Mutex<Log>>,
    placements: Vec<Mutex<Option<Placement>>>,
    cell_is_over: AtomicBool,
}

/// Runs cells of one team on buffers that each worker fills once.
pub(super) fn run(
    context: &MeasureContext,
    cells: &[Cell],
    limit: Duration,
    give: Give<'_>,
) -> Result<(), MeasureError> {
    let bandwidth_of = |cell| match cell {
        cell @ &Cell { experiment: Experiment::Bandwidth(ref bandwidth), .. } => {
            Some((cell, bandwidth))
        }
        _ => None,
    };
    let cells: Vec<_> = cells.iter().filter_map(bandwidth_of).collect();
    let Some(&(_, first)) = cells.first() else {
        return Ok(());
    };
    let workers = first.workers.clone();
    let team = TeamWork {
        context,
        cells,
        limit,
        barrier: Barrier::new(u32::try_from(workers.len()).unwrap_or(u32::MAX)),
        logs: workers.iter().map(|_| Mutex::default()).collect(),
        placements: workers.iter().map(|_| Mutex::default()).collect(),
        cell_is_over: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let team = &team;
        let start = |(index, worker): (usize, WorkerPlan)| {
            let sender = (index == 0).then(|| sender.clone());
            scope.spawn(move || {
                abort_on_error(&team.barrier, || team.work(index, worker, sender.as_ref()))
            })
        };
        let threads: Vec<_> = workers.into_iter().enumerate().map(start).collect();
        drop(sender);
        give_and_join(receiver, give, &team.barrier, threads)
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> TeamWork<'a> {
    fn wait(&self) -> Result<(), MeasureError> {
        self.barrier.wait().map_err(|_| MeasureError::Abandoned)
    }

    /// One worker's part of all cells; the one with `sender` leads.
    fn work(
        &self,
        index: usize,
        worker: WorkerPlan,
        sender: Option<&Sender<(&'a Cell, Measured)>>,
    ) -> Result<(), MeasureError> {
        let pinned = pinned(worker.cpu)?;
        let Some(&(_, first)) = self.cells.first() else {
            return Ok(());
        };
        let mut mapping = memory_on(self.context, first.size_bytes, first.pages, worker.node)?;
        let span = mapping.span();
        for &(cell, bandwidth) in &self.cells {
            let ended = self.stream_one(index, cell, bandwidth, &mut mapping, sender.is_some())?;
            let placement = prove_placement(self.context, &pinned, span, worker.node)?;
            *lock(&self.placements[index]) = Some(placement);
            self.wait()?;
            if let (Some(sender), Some((outcome, samples))) = (sender, ended) {
                let placements = self.placements.iter().filter_map(|slot| lock(slot).take());
                let measured =
                    Measured::new(cell, outcome, placements.collect(), samples.into_taken());
                // The receiver is gone only if keeping failed, which ends the team anyway.
                let _ = sender.send((cell, measured));
            }
            self.wait()?;
        }
        Ok(())
    }

    /// Streams round by round until the leader ends the cell.
    fn stream_one(
        &self,
        index: usize,
        cell: &'a Cell,
        bandwidth: &BandwidthCell,
        mapping: &mut Mapping,
        leads: bool,
    ) -> Result<Option<(Outcome, Samples<'a>)>, MeasureError> {
        let mut stream = stream_over(self.context, bandwidth, mapping)?;
        let mut samples = leads.then(|| Samples::new(self.context, &cell.id, self.limit));
        stream.pass();
        loop {
            self.wait()?;
            self.align(leads)?;
            round(&mut stream, &self.context.clock, &mut lock(&self.logs[index]))?;
            self.wait()?;
            let mut outcome = None;
            if let Some(samples) = &mut samples {
                match self.read_logs()? {
                    Some((reading, disturbed)) => samples.push(&reading, disturbed),
                    None => samples.miss(),
                }
                outcome = samples.ended()?;
                self.cell_is_over.store(outcome.is_some(), Ordering::Relaxed);
            }
            self.wait()?;
            if self.cell_is_over.load(Ordering::Relaxed) {
                return Ok(outcome.zip(samples));
            }
        }
    }

    /// In an emulated machine, makes the workers' own clocks agree at the start of a round.
    fn align(&self, leads: bool) -> Result<(), MeasureError> {
        if !virtual_time::in_use() {
            return Ok(());
        }
        if leads {
            virtual_time::align();
        }
        self.wait()
    }

    /// The bandwidth of a round over the time in which all workers ran; none if there
    /// was no such time, because the system kept one worker waiting.
    fn read_logs(&self) -> Result<Option<(Reading, Option<String>)>, MeasureError> {
        let logs: Vec<_> = self.logs.iter().map(lock).collect();
        let common = |log: &MutexGuard<'_, Log>| Some((log.notes.first()?.0, log.notes.last()?.0));
        let spans = logs.iter().filter_map(common);
        let all_ran = spans.reduce(|a, b| (a.0.max(b.0), a.1.min(b.1)));
        let Some((from, to)) = all_ran.filter(|(from, to)| from < to) else { return Ok(None) };
        let clock = &self.context.clock;
        let duration_ns = clock.ns(to.since(from)?);
        let moved = |log: &MutexGuard<'_, Log>| {
            bytes_at(&log.notes, to, clock) - bytes_at(&log.notes, from, clock)
        };
        let bytes: f64 = logs.iter().map(moved).sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded down")]
        let (duration, work) = (duration_ns as u64, bytes as u64);
        let values = vec![(Metric::Bandwidth, bytes / duration_ns)];
        let disturbed = logs.iter().find_map(|log| log.disturbed.clone());
        Ok(Some((Reading { values, duration_ns: duration, work }, disturbed)))
    }
}

fn stream_over<'m>(
    context: &MeasureContext,
    bandwidth: &BandwidthCell,
    mapping: &'m mut Mapping,
) -> Result<Stream<'m>, MeasureError> {
    let kernel = membench_kernel(bandwidth.kernel);
    let access = membench_access(bandwidth.pattern, context.settings.seed)?;
    let isa = isa_named(&bandwidth.isa.0)?;
    let arrays = Arrays::split(kernel, Line::slice_from_bytes(mapping.as_bytes_mut())?)?;
    Ok(Stream::new(kernel, access, isa, arrays)?)
}

pub(crate) fn membench_kernel(kernel: StreamKernel) -> Kernel {
    match kernel {
        StreamKernel::Read => Kernel::Read,
        StreamKernel::Write => Kernel::Write,
        StreamKernel::WriteNt => Kernel::NtWrite,
        StreamKernel::Copy => Kernel::Copy,
        StreamKernel::CopyNt => Kernel::NtCopy,
        StreamKernel::Triad => Kernel::Triad,
    }
}

pub(crate) fn membench_access(pattern: AccessPattern, seed: u64) -> Result<Access, MeasureError> {
    match pattern {
        AccessPattern::Sequential => Ok(Access::Sequential),
        AccessPattern::Random => Ok(Access::Random { seed }),
        AccessPattern::Stride(bytes) => {
            Ok(Access::Strided { stride_bytes: usize::try_from(bytes).unwrap_or(usize::MAX) })
        }
        AccessPattern::PageLocal => Err(MeasureError::NotAStream { pattern: "page-local" }),
    }
}

pub(crate) fn isa_named(name: &str) -> Result<Isa, MeasureError> {
    let available = || Isa::ALL.into_iter().filter(|isa| isa.is_available());
    available().find(|isa| crate::plan::isa_name(*isa).0 == name).ok_or_else(|| {
        let names: Vec<_> = available().map(|isa| crate::plan::isa_name(isa).0).collect();
        MeasureError::UnknownIsa { name: name.to_owned(), available: names.join(", ") }
    })
}

/// Streams for [`ROUND_NS`], noting time and bytes.
fn round(stream: &mut Stream<'_>, clock: &Clock, log: &mut Log) -> Result<(), MeasureError> {
    let before = ThreadSnapshot::take();
    log.notes.clear();
    let (start, mut bytes) = (Stamp::now(), 0);
    log.notes.push((start, 0));
    loop {
        bytes += stream.advance(LINES_PER_NOTE);
        let now = Stamp::now();
        log.notes.push((now, bytes));
        if clock.ns(now.since(start)?) >= ROUND_NS {
            break;
        }
    }
    let disturbance = ThreadSnapshot::take().disturbance_since(&before);
    log.disturbed = disturbance.map(|reason| reason.to_string());
    Ok(())
}

/// Bytes moved by `time`, between two notes in proportion.
fn bytes_at(notes: &[(Stamp, u64)], time: Stamp, clock: &Clock) -> f64 {
    let after = notes.partition_point(|&(stamp, _)| stamp < time);
    let bytes = |index: usize| notes.get(index).map_or(0.0, |&(_, bytes)| bytes as f64);
    let (Some(&(earlier, _)), Some(&(later, _))) =
        (notes.get(after.wrapping_sub(1)), notes.get(after))
    else {
        return bytes(after);
    };
    let ns = |from: Stamp, to: Stamp| to.since(from).map_or(0.0, |ticks| clock.ns(ticks));
    let share = ns(earlier, time) / ns(earlier, later).max(f64::MIN_POSITIVE);
    bytes(after - 1) + share * (bytes(after) - bytes(after - 1))
}
