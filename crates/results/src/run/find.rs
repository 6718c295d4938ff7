//! Figures and anomalies of a run, as values.

mod access;
mod bandwidth;
mod c2c;
mod cell;
mod clusters;
mod curve;
mod loaded;
mod matrix;
mod memory_peak;
mod oddity;
mod proof;
mod remote;
mod tlb;
mod walk;

use numalab_memory_model::machine::{Calls, Faults};
use numalab_record::{CoreCell, Document, Experiment, Metric, Run};
use numalab_topology::CpuId;

pub use access::{Chase, NodeAccess};
pub use bandwidth::{BandwidthRow, Bandwidths, MeasuredWeight};
pub use c2c::{CoreToCore, Home, Nearness, NearnessFigure, RoundTrips};
pub use cell::{CellState, CellSummary, Figure, MetricFigures};
pub use curve::{Curve, CurvePoint, Level, LevelName};
pub use loaded::{Doubt, LoadedCurve, LoadedPoint, Peak};
pub use matrix::{Axis, LatencyMatrix, Matrix, MatrixEntry};
pub use memory_peak::MemoryPeak;
pub use oddity::{Oddity, RunFinding, Target};
pub use proof::{Proof, is_on_node};
pub use remote::{Remote, RemoteCost, RemotePair};
pub use tlb::{Tlb, TlbLevel, TlbPoint};
pub use walk::PageWalk;

/// Relative difference below which two readings of a core's clock count as equal.
const CLOCKS_AGREE: f64 = 0.02;

/// Progress of a run, in cells and windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub planned: usize,
    /// Cells with an interval as narrow as requested.
    pub precise: usize,
    /// Cells that ran out of budget first.
    pub budget_spent: usize,
    /// Cells that could not be measured.
    pub failed: usize,
    /// Cells not finished when the run ended.
    pub unmeasured: usize,
    /// Windows with a finite value, over all metrics.
    pub windows: usize,
    /// Number of these windows that were disturbed.
    pub disturbed: usize,
}

impl Progress {
    /// Returns the share of windows that were disturbed, 0 to 1.
    pub fn disturbed_share(&self) -> f64 {
        // Counts of windows stay far below 2^52, so `f64` holds them exactly.
        if self.windows == 0 { 0.0 } else { self.disturbed as f64 / self.windows as f64 }
    }

    fn of(cells: &[CellSummary<'_>]) -> Self {
        let mut progress = Self { planned: cells.len(), ..Self::default() };
        for cell in cells {
            match cell.state {
                CellState::Precise => progress.precise += 1,
                CellState::BudgetSpent => progress.budget_spent += 1,
                CellState::Failed(_) => progress.failed += 1,
                CellState::Unmeasured => progress.unmeasured += 1,
            }
            for figures in &cell.figures {
                progress.windows += figures.windows;
                progress.disturbed += figures.disturbed;
            }
        }
        progress
    }
}

/// Returns the times of page faults on a core; `None` if they were not measured.
fn faults(cell: &CellSummary<'_>) -> Option<Faults> {
    let least = |metric| cell.figure(metric).map(|figure| figure.floor);
    let store_ns = least(Metric::FirstStore)?;
    Some(Faults {
        load_ns: least(Metric::FirstLoad)?,
        store_ns,
        copy_ns: least(Metric::PageCopy).unwrap_or(store_ns),
        file_ns: least(Metric::FileLoad).unwrap_or_default(),
        free_ns: least(Metric::PageFree).unwrap_or_default(),
        unmap_ns: least(Metric::PageUnmap).unwrap_or_default(),
        huge_ns: least(Metric::HugeStore),
    })
}

/// Returns the times of system calls on a core; `None` if they were not measured.
fn calls(cell: &CellSummary<'_>) -> Option<Calls> {
    let least = |metric| cell.figure(metric).map(|figure| figure.floor);
    let call_ns = least(Metric::SystemCall)?;
    // Of two times: other load also makes their difference smaller.
    let median = |metric| cell.figure(metric).map_or(0.0, |figure| figure.median);
    Some(Calls {
        call_ns,
        yield_ns: least(Metric::Yield).unwrap_or(call_ns),
        map_ns: least(Metric::PageMap).unwrap_or(call_ns),
        page_ns: least(Metric::FileRead).unwrap_or_default(),
        read_ns: least(Metric::Read).unwrap_or_default(),
        write_ns: least(Metric::Write).unwrap_or_default(),
        grow_ns: median(Metric::FileGrowth),
        new_page_ns: median(Metric::FilePage),
        pipe_page_ns: least(Metric::PipePage).unwrap_or_default(),
        wake_ns: least(Metric::Wake).unwrap_or_default(),
        open_ns: least(Metric::FileOpen).unwrap_or_default(),
        fork_ns: median(Metric::Fork),
        fork_page_ns: median(Metric::ForkPage),
        fork_map_ns: median(Metric::ForkMapping),
        execute_ns: least(Metric::Execute).unwrap_or_default(),
        cpuid_ns: least(Metric::Cpuid).unwrap_or_default(),
    })
}

/// Clock and latencies of one core.
#[derive(Clone, Debug, PartialEq)]
pub struct Core {
    /// The cpu measured; it represents its whole core.
    pub cpu: CpuId,
    /// L1 load-to-use latency, as a multiple of one dependent add.
    pub load_to_use: Option<Figure>,
    /// The core clock in GHz.
    pub clock_ghz: Option<Figure>,
    /// Latency of an atomic add to a line in the nearest cache, in nanoseconds.
    pub atomic_add_ns: Option<Figure>,
    /// The time of a load that needs a page walk, among independent ones, in nanoseconds.
    pub page_read_ns: Option<Figure>,
    pub faults: Option<Faults>,
    pub calls: Option<Calls>,
}

/// Everything that the records of one run show.
#[derive(Clone, Debug)]
pub struct Summary<'a> {
    /// The record with its raw samples.
    pub document: &'a Document,
    /// The head of `document`: machine, environment and plan.
    pub run: &'a Run,
    /// All anomalies, those that cast most doubt on the figures first.
    pub findings: Vec<RunFinding>,
    /// Progress in cells and windows.
    pub progress: Progress,
    /// Every cell's figures, in the plan's order.
    pub cells: Vec<CellSummary<'a>>,
    /// One entry per measured core.
    pub cores: Vec<Core>,
    /// Latency by buffer size; the curve with the most points first.
    pub curves: Vec<Curve>,
    /// TLB levels, by worker and page size.
    pub tlbs: Vec<Tlb>,
    /// Page-walk costs, by worker and page size.
    pub walks: Vec<PageWalk>,
    /// Latency from cpus to nodes; serial chases before concurrent ones.
    pub matrices: Vec<LatencyMatrix>,
    /// The cost of remote memory compared with local.
    pub remote: Remote,
    /// Bandwidth of all cells that stream.
    pub bandwidth: Bandwidths<'a>,
    /// Latency under memory load.
    pub loaded: Vec<LoadedCurve<'a>>,
    /// Peak bandwidth of the memory modules, if the firmware lists them.
    pub memory_peak: Option<MemoryPeak>,
    /// Cache-line round trips between cpus.
    pub c2c: CoreToCore,
    /// Counts of placement proofs.
    pub proof: Proof,
}

impl<'a> Summary<'a> {
    /// Computes all figures of `document`.
    ///
    /// Failed cells, and cells that an interrupted run did not finish, have no proof of placement
    /// and give no figures.
    pub fn of(document: &'a Document) -> Self {
        let run = &document.run;
        let cells: Vec<CellSummary<'a>> = document.cells.iter().map(CellSummary::of).collect();
        let matrices = matrix::latency_matrices(&cells, &run.machine);
        let (tlbs, walks) = (tlb::tlbs(&cells), walk::page_walks(&cells));
        let reaches = |pattern, pages| tlb::reaches(&tlbs, pattern, pages);
        let curves = curve::curves(&cells, &run.machine, reaches);
        let bandwidth = Bandwidths::of(&cells, &run.machine);
        let mut summary = Self {
            document,
            run,
            findings: Vec::new(),
            progress: Progress::of(&cells),
            cores: cores(&cells),
            curves,
            tlbs,
            walks,
            remote: remote::remote(&matrices, &run.machine),
            matrices,
            loaded: loaded::loaded_curves(&cells, &bandwidth, &run.machine),
            bandwidth,
            memory_peak: None,
            c2c: CoreToCore::of(&cells, &run.machine),
            proof: Proof::of(&cells),
            cells,
        };
        summary.memory_peak = memory_peak::memory_peak(
            run,
            &summary.bandwidth,
            &summary.loaded,
            summary.cached_bytes(),
        );
        summary.findings = oddity::findings(&summary);
        let modules = memory_peak::findings(&summary);
        summary.findings.extend(modules.into_iter().flatten());
        summary.findings.extend(clusters::finding(&summary));
        summary
    }

    /// Returns the core clock of `cpu` in GHz, if it was measured.
    pub fn clock_ghz(&self, cpu: CpuId) -> Option<f64> {
        let core = self.cores.iter().find(|core| core.cpu == cpu)?;
        core.clock_ghz.as_ref().map(|figure| figure.median)
    }

    /// Returns the clock of `cpu` in GHz, for converting latencies into cycles.
    ///
    /// A dependent load that hits the L1 takes a whole number of cycles, and the load-to-use ratio
    /// gives that number independently of the clock. If the measured clock contradicts it, the core
    /// ran at a different frequency during the sweep, so the clock is derived from the sweep's L1
    /// latency instead.
    pub fn cycle_clock_ghz(&self, cpu: CpuId) -> Option<f64> {
        let clock = self.clock_ghz(cpu)?;
        let core = self.cores.iter().find(|core| core.cpu == cpu)?;
        let of_cpu = self.curves.iter().find(|curve| curve.worker.cpu == cpu);
        let first = of_cpu.and_then(|curve| curve.levels.first());
        let (Some(load), Some(l1)) = (&core.load_to_use, first) else { return Some(clock) };
        let by_l1 = load.median.round() / l1.latency_ns;
        let agree = (by_l1 / clock - 1.0).abs() < CLOCKS_AGREE || l1.name != LevelName::Cache(1);
        Some(if agree { clock } else { by_l1 })
    }

    /// Reports whether caches may hold `bytes`, judged by the sweep or else by the reported sizes.
    pub fn may_be_cached(&self, bytes: u64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "compared with an estimate")]
        let bytes = bytes as f64;
        self.cached_bytes().is_some_and(|cached| bytes <= cached)
    }

    /// Returns true if the memory emulator charged the accesses.
    pub fn is_emulated(&self) -> bool {
        self.run.environment.fact("time").is_some()
    }

    /// Returns the largest size in bytes that caches may hold: the end of the sweep's last cache,
    /// or else the largest cache that the system reports. Emulated caches are not those that a guest
    /// reports, which are QEMU's.
    pub fn cached_bytes(&self) -> Option<f64> {
        let ends = self.curves.first().and_then(|curve| {
            let (memory, caches) = curve.levels.split_last()?;
            let mut caches = caches.iter().rev();
            let last = caches.find(|level| !matches!(level.name, LevelName::Tlb(_)))?;
            last.capacity_bytes.filter(|_| memory.name == LevelName::Memory)
        });
        let reported = || {
            let sizes = self.run.machine.caches.iter().filter_map(|cache| cache.size_bytes);
            sizes.max().map(|bytes| bytes as f64)
        };
        ends.or_else(|| if self.is_emulated() { None } else { reported() })
    }

    /// Returns the machine's host name, or else its processor model, or else "this machine".
    pub fn machine_name(&self) -> &'a str {
        let fact = |name| self.run.environment.text(name);
        fact("hostname").or_else(|| fact("cpu_model")).unwrap_or("this machine")
    }
}

fn cores(cells: &[CellSummary<'_>]) -> Vec<Core> {
    let core = |cell: &CellSummary<'_>| match cell.cell.experiment {
        Experiment::Core(CoreCell { cpu }) if cell.counts() => Some(Core {
            cpu,
            load_to_use: cell.figure(Metric::LoadToUse).cloned(),
            clock_ghz: cell.figure(Metric::CoreClock).cloned(),
            atomic_add_ns: cell.figure(Metric::AtomicAdd).cloned(),
            page_read_ns: cell.figure(Metric::PageRead).cloned(),
            faults: faults(cell),
            calls: calls(cell),
        }),
        _ => None,
    };
    cells.iter().filter_map(core).collect()
}
