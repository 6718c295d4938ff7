//! Bandwidth cells: a team streams in rounds, and only the time in which every
//! worker ran counts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use numalab_membench::{Barrier, virtual_time};
use numalab_record::{BandwidthCell, Cell, Experiment, Metric, Outcome, Placement, WorkerPlan};

use super::stream::{RoundLog, Span, StreamRules, stream_over};
use super::team::{abort_on_error, give_and_join};
use super::{Give, Measured};
use crate::buffer::{Buffer, MemorySource, pinned};
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::sampling::{Reading, Samples};
use crate::share::Share;

/// Length of a round in nanoseconds: long against the start of all workers.
const ROUND_NS: f64 = 8_000_000.0;

/// What the workers of a team share.
struct TeamWork<'a> {
    context: &'a MeasureContext,
    cells: Vec<(&'a Cell, &'a BandwidthCell)>,
    share: &'a Share<'a>,
    barrier: Barrier,
    logs: Vec<Mutex<RoundLog>>,
    placements: Vec<Mutex<Option<Placement>>>,
    cell_is_over: AtomicBool,
    time_is_over: AtomicBool,
}

/// Runs cells of one team on buffers that each worker fills once.
pub(super) fn run(
    context: &MeasureContext,
    cells: &[Cell],
    share: &Share<'_>,
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
        let source = MemorySource::Node(worker.node);
        let mut buffer = Buffer::touched(self.context, first.size_bytes, first.pages, source)?;
        let claim = buffer.claim();
        for (number, &(cell, bandwidth)) in self.cells.iter().enumerate() {
            let samples =
                sender.map(|_| Samples::new(self.context, &cell.id, self.share.limit(number)));
            let ended = self.stream_one(index, bandwidth, &mut buffer, samples)?;
            let placement = claim.prove(self.context, &pinned)?;
            *lock(&self.placements[index]) = Some(placement);
            self.wait()?;
            if let (Some(sender), Some((outcome, samples))) = (sender, ended) {
                let placements = self.placements.iter().filter_map(|slot| lock(slot).take());
                let measured =
                    Measured::new(cell, outcome, placements.collect(), samples.into_taken());
                // The receiver is gone only if keeping failed, which ends the team anyway.
                let _ = sender.send((cell, measured));
                self.time_is_over.store(self.share.is_spent(), Ordering::Relaxed);
            }
            self.wait()?;
            if self.time_is_over.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// Streams round by round until the leader, who has the samples, ends the cell.
    fn stream_one(
        &self,
        index: usize,
        bandwidth: &BandwidthCell,
        buffer: &mut Buffer,
        mut samples: Option<Samples<'a>>,
    ) -> Result<Option<(Outcome, Samples<'a>)>, MeasureError> {
        let lines = buffer.lines(bandwidth.size_bytes)?;
        let mut stream = stream_over(self.context, &StreamRules::of(bandwidth), lines)?;
        stream.pass();
        loop {
            self.wait()?;
            self.align(samples.is_some())?;
            lock(&self.logs[index]).round(&mut stream, &self.context.clock, ROUND_NS)?;
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
        let spans = logs.iter().filter_map(|log| log.span());
        let Some(span) = Span::common(spans) else { return Ok(None) };
        let clock = &self.context.clock;
        let duration_ns = span.ns(clock)?;
        let bytes: f64 = logs.iter().map(|log| log.bytes_within(span, clock)).sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded down")]
        let (duration, work) = (duration_ns as u64, bytes as u64);
        let values = vec![(Metric::Bandwidth, bytes / duration_ns)];
        let disturbed = logs.iter().find_map(|log| log.disturbed.clone());
        Ok(Some((Reading { values, duration_ns: duration, work }, disturbed)))
    }
}
