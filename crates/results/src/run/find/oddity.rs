//! Rules that find anomalies of a machine or a run.

mod distances;
mod shared_cache;

use numalab_record::{CellId, Fact, Metric};
use numalab_stats::Sample;
use numalab_topology::NodeId;
use serde::Serialize;

use super::matrix::{Matrix, MatrixEntry};
use super::remote::Remote;
use super::tlb::{SPLIT_SHARE, Split, split};
use super::{CellState, CellSummary, LevelName, MetricFigures, Summary};
use crate::Finding;

/// Minimum ratio to the median of the other nodes for a node to be reported as slow.
const SLOWER_THAN_PEERS: f64 = 1.10;
/// Minimum ratio, either way, between a cache's measured and reported size to be reported.
const CACHE_OFF_BY: f64 = 2.0;
/// Share of bursty cells to expect by chance.
const BURSTY_SHARE: f64 = 0.05;
const DISTURBED_SHARE: f64 = 0.05;

/// An anomaly of a machine or a run.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Oddity {
    /// Workers or their memory were not where they should have been.
    Misplaced {
        /// Number of workers with a proof of placement.
        workers: usize,
        /// Number of misplaced workers.
        misplaced: usize,
        /// Number of workers pinned to their cpu.
        pinned: usize,
        /// Number of workers with all memory on the intended node.
        on_node: usize,
    },
    /// Cells have figures but no proof of placement.
    Unproven {
        /// Number of such cells.
        cells: usize,
    },
    /// Cells could not be measured.
    Failed {
        /// Number of cells planned.
        planned: usize,
        /// The reason for the first failure.
        reason: String,
    },
    /// The run ended before all cells did.
    Unmeasured {
        /// Number of cells planned.
        planned: usize,
    },
    /// A node is slower than one that is farther away by distance.
    DistanceOrder {
        /// The cpus' node.
        from: NodeId,
        /// The node that is closer by distance, yet slower.
        near: Target,
        /// The node that is farther by distance.
        far: Target,
        /// Number of node pairs in the wrong order.
        pairs: usize,
    },
    /// The measured remote-to-local ratio is far from the one that the distance implies.
    DistanceRatio {
        /// The cpus' node.
        from: NodeId,
        /// The memory's node.
        to: NodeId,
        /// Remote over local latency according to the distance.
        promised: f64,
        /// Remote over local latency as measured.
        measured: f64,
    },
    /// A node's local memory is slower than that of its peers.
    SlowNode {
        /// The slow node.
        node: NodeId,
        /// The metric, latency or bandwidth.
        metric: Metric,
        /// The node's value, in the metric's unit.
        value: f64,
        /// The median of the other nodes.
        peers: f64,
    },
    /// Huge pages were requested but not obtained.
    HugePagesMissing {
        /// Number of cells that requested huge pages.
        asked: usize,
        /// Number of cells that got smaller pages.
        missing: usize,
    },
    /// A guest's huge pages are backed by small ones on the host, so their translations cost as
    /// much as those of small pages.
    HugePagesSplit {
        /// Number of lines loaded, one in each 4 KiB.
        lines: u64,
        /// Translation cost per line in huge pages, in nanoseconds.
        huge_ns: f64,
        /// Translation cost per line in small pages, in nanoseconds.
        small_ns: f64,
        /// The extra latency of random access over access within a huge page, in nanoseconds.
        walk_ns: Option<f64>,
    },
    /// The cpus of a one-node guest fall into groups by the round trips between them.
    HiddenNodes {
        /// Number of groups.
        groups: usize,
        /// The cpus of each group, such as `0-3 | 4-7`.
        cpus: String,
        /// The median round trip within a group in nanoseconds.
        within_ns: f64,
        /// The median round trip between groups in nanoseconds.
        across_ns: f64,
    },
    /// Cpus that share an L3, according to the system, exchange a line far more slowly than that
    /// cache allows.
    SharedCacheFar {
        /// Number of pairs of cpus measured.
        pairs: usize,
        /// The median time of a line one way between them, in nanoseconds.
        one_way_ns: f64,
        /// The latency of the L3, in nanoseconds.
        cache_ns: f64,
        /// True in a guest, where a hypervisor places the cpus.
        is_guest: bool,
    },
    /// A cache's measured size differs from its reported one.
    CacheSize {
        /// The cache's level.
        level: u8,
        /// The size at which the cache ends in the sweep, in bytes.
        found_bytes: f64,
        /// The size that the system reports, in bytes.
        reported_bytes: u64,
    },
    /// Memory channels have no module.
    ChannelsEmpty {
        /// The channels' names, as the firmware gives them.
        channels: String,
    },
    /// Memory modules run slower than they or their neighbours could.
    ModulesSlow {
        /// The modules' slots, with current and possible speed.
        modules: String,
    },
    /// Time is emulated, and with it the memory system.
    EmulatedTime {
        /// The kind of virtual time.
        time: String,
    },
    /// The clock does not tick at a constant rate.
    ClockNotInvariant,
    /// Control groups limit the process to less than the time of all its cpus.
    CpuQuota {
        /// The cpu time that control groups allow, in cpus.
        cpus: f64,
        /// Number of cpus on which the process may run.
        usable: usize,
        /// Total number of windows.
        windows: usize,
        /// Number of disturbed windows: those in which the kernel stopped a thread, and those that
        /// other load disturbed.
        disturbed: usize,
    },
    /// Many windows were disturbed.
    Disturbed {
        /// Total number of windows.
        windows: usize,
        /// Number of disturbed windows.
        disturbed: usize,
    },
    /// Windows come in bursts, so intervals may be too short.
    Bursty {
        /// Number of cells with figures.
        cells: usize,
        /// The largest factor by which an interval is too short.
        too_short: f64,
    },
    /// Intervals are wider than requested.
    NotPrecise {
        /// Number of cells planned.
        planned: usize,
        /// The requested half width, as a share of the median.
        precision: f64,
    },
}

/// A node's memory as seen from another node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Target {
    /// The node that holds the memory.
    pub node: NodeId,
    /// The node's distance from the cpus' node.
    pub distance: u8,
    /// The latency of its memory in nanoseconds.
    pub latency_ns: f64,
}

/// An anomaly with the cells that show it.
pub type RunFinding = Finding<Oddity, CellId>;

/// Returns all anomalies, those that cast most doubt on the figures first.
pub(super) fn findings(summary: &Summary<'_>) -> Vec<RunFinding> {
    let machine = &summary.run.machine;
    let remote = match (&summary.remote, summary.matrices.first()) {
        // Latencies of caches do not follow from distances.
        (_, Some(matrix)) if summary.may_be_cached(matrix.size_bytes) => Vec::new(),
        (Remote::Measured(cost), _) => {
            vec![distances::order(summary, machine), distances::ratio(&cost.pairs, summary)]
        }
        _ => Vec::new(),
    };
    let placed = [misplaced(summary), failed(summary), unmeasured(summary)];
    let rest = [
        slow_node(summary),
        huge_pages(summary),
        split_huge_pages(summary),
        cache_size(summary),
        shared_cache::far(summary),
        emulated_time(summary),
        clock(summary),
        cpu_quota(summary).or_else(|| disturbed(summary)),
        bursty(summary),
        not_precise(summary),
    ];
    placed.into_iter().chain(remote).chain(rest).flatten().collect()
}

fn misplaced(summary: &Summary<'_>) -> Option<RunFinding> {
    let proof = &summary.proof;
    if proof.misplaced() == 0 {
        let unproven = Oddity::Unproven { cells: proof.unproven_cells };
        return (proof.unproven_cells > 0).then(|| Finding::new(unproven));
    }
    Some(Finding::new(Oddity::Misplaced {
        workers: proof.workers,
        misplaced: proof.misplaced(),
        pinned: proof.pinned,
        on_node: proof.on_node,
    }))
}

/// Returns the ids of the cells in a given state.
fn cells_in(summary: &Summary<'_>, wanted: fn(&CellState<'_>) -> bool) -> Vec<CellId> {
    let of = |cell: &&CellSummary<'_>| wanted(&cell.state);
    summary.cells.iter().filter(of).map(|cell| cell.cell.id.clone()).collect()
}

fn failed(summary: &Summary<'_>) -> Option<RunFinding> {
    let reason = summary.cells.iter().find_map(|cell| match cell.state {
        CellState::Failed(reason) => Some(reason.to_owned()),
        _ => None,
    });
    let planned = summary.progress.planned;
    let cells = cells_in(summary, |state| matches!(state, CellState::Failed(_)));
    Some(Finding::new(Oddity::Failed { planned, reason: reason? }).shown_by(cells))
}

fn unmeasured(summary: &Summary<'_>) -> Option<RunFinding> {
    let cells = cells_in(summary, |state| *state == CellState::Unmeasured);
    let planned = summary.progress.planned;
    (!cells.is_empty()).then(|| Finding::new(Oddity::Unmeasured { planned }).shown_by(cells))
}

/// Finds the slowest node by local latency, or else by local bandwidth.
fn slow_node(summary: &Summary<'_>) -> Option<RunFinding> {
    let latency = summary.matrices.first().map(|found| &found.by_node);
    let bandwidth = summary.bandwidth.by_node.as_ref();
    latency
        .and_then(|matrix| slower(matrix, Metric::Latency))
        .or_else(|| bandwidth.and_then(|matrix| slower(matrix, Metric::Bandwidth)))
}

fn slower(matrix: &Matrix, metric: Metric) -> Option<RunFinding> {
    let slowness = |value: f64, peers: f64| {
        if metric.lower_is_better() { value / peers } else { peers / value }
    };
    let local = |&node: &u32| matrix.get(node, node).map(|entry| (node, entry));
    let locals: Vec<(u32, &MatrixEntry)> = matrix.rows.iter().filter_map(local).collect();
    let compared = locals.iter().map(|&(node, entry)| {
        let others = locals.iter().filter(|(other, _)| *other != node);
        let peers = Sample::new(others.map(|(_, entry)| entry.value).collect::<Vec<f64>>());
        let peers = peers.map_or(f64::NAN, |peers| peers.median());
        (node, entry, peers, slowness(entry.value, peers))
    });
    let (node, entry, peers, factor) =
        compared.filter(|found| found.3.is_finite()).max_by(|a, b| a.3.total_cmp(&b.3))?;
    let slow = Oddity::SlowNode { node: NodeId(node), metric, value: entry.value, peers };
    (factor > SLOWER_THAN_PEERS)
        .then(|| Finding::new(slow).over(SLOWER_THAN_PEERS).shown_by(entry.cells.clone()))
}

fn huge_pages(summary: &Summary<'_>) -> Option<RunFinding> {
    let (asked, missing) = (summary.proof.huge_cells, summary.proof.not_huge_cells);
    (missing > 0).then(|| Finding::new(Oddity::HugePagesMissing { asked, missing }))
}

/// Finds pages that are proven huge in the guest but that the TLB treats as small ones.
fn split_huge_pages(summary: &Summary<'_>) -> Option<RunFinding> {
    let is_guest = summary.run.environment.facts.contains_key("hypervisor");
    if !is_guest || summary.proof.not_huge_cells > 0 {
        return None;
    }
    let Split { huge, small, pages, .. } = split(&summary.tlbs)?;
    let walk = summary.walks.iter().find(|walk| walk.pages == pages);
    let what = Oddity::HugePagesSplit {
        lines: huge.pages,
        huge_ns: huge.cost_ns(),
        small_ns: small.cost_ns(),
        walk_ns: walk.map(|walk| walk.cost_ns),
    };
    Some(Finding::new(what).over(SPLIT_SHARE).shown_by(vec![huge.cell.clone(), small.cell.clone()]))
}

#[expect(clippy::cast_precision_loss, reason = "compared by factors")]
fn cache_size(summary: &Summary<'_>) -> Option<RunFinding> {
    let curve = summary.curves.first()?;
    curve.levels.iter().find_map(|found| {
        let LevelName::Cache(level) = found.name else { return None };
        let (found_bytes, reported_bytes) = (found.capacity_bytes?, found.reported_bytes?);
        let factor = found_bytes / reported_bytes as f64;
        let cells = curve.points.iter().map(|point| point.cell.clone()).collect();
        (factor.max(factor.recip()) > CACHE_OFF_BY).then(|| {
            let size = Oddity::CacheSize { level, found_bytes, reported_bytes };
            Finding::new(size).over(CACHE_OFF_BY).shown_by(cells)
        })
    })
}

fn clock(summary: &Summary<'_>) -> Option<RunFinding> {
    let fact = summary.run.environment.fact("clock_invariant")?;
    (*fact == Fact::Flag(false)).then(|| Finding::new(Oddity::ClockNotInvariant))
}

fn emulated_time(summary: &Summary<'_>) -> Option<RunFinding> {
    let time = summary.run.environment.text("time")?.to_owned();
    Some(Finding::new(Oddity::EmulatedTime { time }))
}

/// Finds a limit of cpu time below that of all cpus on which the process may run. It explains
/// disturbed windows, so these are not reported as well.
fn cpu_quota(summary: &Summary<'_>) -> Option<RunFinding> {
    let cpus = summary.run.environment.number("cpu_quota")?;
    let usable = summary.run.machine.usable_cpus().len();
    let (windows, disturbed) = (summary.progress.windows, summary.progress.disturbed);
    let quota = Oddity::CpuQuota { cpus, usable, windows, disturbed };
    (cpus < usable as f64).then(|| Finding::new(quota))
}

fn disturbed(summary: &Summary<'_>) -> Option<RunFinding> {
    let progress = &summary.progress;
    let (windows, disturbed) = (progress.windows, progress.disturbed);
    (progress.disturbed_share() > DISTURBED_SHARE)
        .then(|| Finding::new(Oddity::Disturbed { windows, disturbed }).over(DISTURBED_SHARE))
}

/// Finds cells with bursts of windows that no rule about disturbance explains.
fn bursty(summary: &Summary<'_>) -> Option<RunFinding> {
    let with_figures = || summary.cells.iter().filter(|cell| cell.counts());
    let bursts = |cell: &CellSummary<'_>| {
        let best = cell.figures.iter().filter_map(MetricFigures::best);
        best.filter_map(|figure| figure.bursts).reduce(f64::max)
    };
    let found: Vec<(CellId, f64)> =
        with_figures().filter_map(|cell| Some((cell.cell.id.clone(), bursts(cell)?))).collect();
    let too_short = found.iter().map(|(_, factor)| *factor).reduce(f64::max)?;
    let cells = with_figures().count();
    (found.len() as f64 > BURSTY_SHARE * cells as f64).then(|| {
        let evidence = found.into_iter().map(|(cell, _)| cell).collect();
        Finding::new(Oddity::Bursty { cells, too_short }).over(BURSTY_SHARE).shown_by(evidence)
    })
}

fn not_precise(summary: &Summary<'_>) -> Option<RunFinding> {
    let (planned, precision) = (summary.progress.planned, summary.run.precision);
    let cells = cells_in(summary, |state| *state == CellState::BudgetSpent);
    (!cells.is_empty()).then(|| {
        Finding::new(Oddity::NotPrecise { planned, precision }).over(precision).shown_by(cells)
    })
}
