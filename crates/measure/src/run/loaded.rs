//! Loaded latency: one chaser, and load workers that stream beside it.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use numalab_membench::{Access, Arrays, Barrier, Isa, Stamp, Stream, Throttle, generate};
use numalab_record::{AccessPattern, Cell, Experiment, LoadedCell, Metric, Placement, WorkerPlan};

use super::chase::{BuiltChase, ChaseOrder, Windows};
use super::stream::membench_kernel;
use super::team::{give_and_join, give_up_on_error};
use super::{Give, Measured};
use crate::buffer::{Buffer, MemorySource, pinned};
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::sampling::{Samples, sample_here};
use crate::share::Share;

/// What a load worker streams between two pauses.
const CHUNK_BYTES: usize = 16 << 10;
/// Chase windows in one sample: long against the pause between two chunks.
const WINDOWS_PER_SAMPLE: u64 = 4;

/// What chaser and load workers share.
struct LoadedTeam<'a> {
    context: &'a MeasureContext,
    cells: Vec<(&'a Cell, &'a LoadedCell)>,
    share: &'a Share<'a>,
    barrier: Barrier,
    stop: AtomicBool,
    time_is_over: AtomicBool,
    counted_bytes: Vec<AtomicU64>,
}

/// Runs the cells of one curve on buffers that each worker fills once.
pub(super) fn run(
    context: &MeasureContext,
    cells: &[Cell],
    share: &Share<'_>,
    give: Give<'_>,
) -> Result<(), MeasureError> {
    let loaded_of = |cell| match cell {
        cell @ &Cell { experiment: Experiment::Loaded(ref loaded), .. } => Some((cell, loaded)),
        _ => None,
    };
    let cells: Vec<_> = cells.iter().filter_map(loaded_of).collect();
    let Some(&(_, first)) = cells.first() else {
        return Ok(());
    };
    let load = first.load.clone();
    let team = LoadedTeam {
        context,
        cells,
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
        threads.extend(
            load.into_iter().enumerate().map(|(index, worker)| {
                scope.spawn(move || team.ending(|| team.load(index, worker)))
            }),
        );
        give_and_join(receiver, give, &team.barrier, threads)
    })
}

impl<'a> LoadedTeam<'a> {
    /// Runs a worker; if it fails or panics, nobody waits for it or loads on.
    fn ending<T>(&self, work: impl FnOnce() -> Result<T, MeasureError>) -> Result<T, MeasureError> {
        let give_up = || {
            self.barrier.abort();
            self.stop.store(true, Ordering::Relaxed);
        };
        give_up_on_error(give_up, work)
    }

    fn wait(&self) -> Result<(), MeasureError> {
        self.barrier.wait().map_err(|_| MeasureError::Abandoned)
    }

    fn chase(&self, sender: &Sender<(&'a Cell, Measured)>) -> Result<(), MeasureError> {
        let Some(&(_, first)) = self.cells.first() else {
            return Ok(());
        };
        let WorkerPlan { cpu, node } = first.chaser;
        let pinned = pinned(cpu)?;
        let (size, pages, source) = (first.size_bytes, first.pages, MemorySource::Node(node));
        let mut buffer = Buffer::touched(self.context, size, pages, source)?;
        let claim = buffer.claim();
        let order = ChaseOrder { pattern: AccessPattern::Random, pages };
        let chase = BuiltChase::build(self.context, order, buffer.lines(size)?, Some(cpu))?;
        for (number, &(cell, loaded)) in self.cells.iter().enumerate() {
            let before: Vec<u64> = self.counts().collect();
            self.wait()?;
            if loaded.delay.is_some() {
                self.wait_for_load(&before);
            }
            let limit = self.share.limit(number);
            let measured =
                self.sample((cell, limit), &chase, |context| claim.prove(context, &pinned));
            self.stop.store(true, Ordering::Relaxed);
            let measured = measured?;
            self.time_is_over.store(self.share.is_spent(), Ordering::Relaxed);
            self.wait()?;
            self.stop.store(false, Ordering::Relaxed);
            // The receiver is gone only if keeping failed, which ends the team anyway.
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

    /// Waits until every load worker streams: other work on its cpu may keep it from that for
    /// long after the barrier, and what is measured then is not under load.
    fn wait_for_load(&self, before: &[u64]) {
        let idle = || self.counts().zip(before).any(|(now, &before)| now == before);
        while idle() && !self.barrier.is_aborted() {
            spin_loop();
        }
    }

    fn load(&self, index: usize, worker: WorkerPlan) -> Result<(), MeasureError> {
        let Some(&(_, first)) = self.cells.first() else {
            return Ok(());
        };
        let pinned = pinned(worker.cpu)?;
        let source = MemorySource::Node(worker.node);
        let mut buffer = Buffer::touched(self.context, first.size_bytes, first.pages, source)?;
        let claim = buffer.claim();
        let kernel = membench_kernel(first.kernel);
        let arrays = Arrays::split(kernel, buffer.lines(first.size_bytes)?)?;
        let mut stream = Stream::new(kernel, Access::Sequential, Isa::detect(), arrays)?;
        claim.prove(self.context, &pinned)?;
        for &(_, loaded) in &self.cells {
            self.wait()?;
            if let Some(delay_spins) = loaded.delay {
                let throttle = Throttle { chunk_bytes: CHUNK_BYTES, delay_spins };
                generate(&mut stream, throttle, &self.stop, &self.counted_bytes[index]);
            }
            self.wait()?;
            if self.time_is_over.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }
}
