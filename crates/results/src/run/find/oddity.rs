//! Anomalies about a machine or a run: the rules, and what they found.

mod distances;

use numalab_record::{CellId, Metric};
use numalab_stats::Sample;
use numalab_topology::NodeId;
use serde::Serialize;

use super::matrix::{Entry, Matrix};
use super::remote::Remote;
use super::tlb::{SPLIT_SHARE, Split, split};
use super::{CellSummary, LevelName, MetricFigures, State, Summary};
use crate::Finding;

/// A node is called slow if it is this many times slower than the other nodes.
const SLOWER_THAN_PEERS: f64 = 1.10;
/// A cache is reported if it is this many times larger or smaller than the system says.
const CACHE_OFF_BY: f64 = 2.0;
/// Up to this share, cells seem bursty by chance.
const BURSTY_SHARE: f64 = 0.05;
/// Up to this share, disturbed windows are ordinary.
const DISTURBED_SHARE: f64 = 0.05;

/// Something odd about a machine or a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Oddity {
    /// Workers or their memory were not where they should be.
    Misplaced {
        /// Workers with a proof of placement.
        workers: usize,
        /// Those of them that were misplaced.
        misplaced: usize,
        /// Those pinned to their cpu.
        pinned: usize,
        /// Those with all memory on its node.
        on_node: usize,
    },
    /// Cells have figures but no proof of placement.
    Unproven {
        /// How many.
        cells: usize,
    },
    /// Cells could not be measured.
    Failed {
        /// Cells planned.
        planned: usize,
        /// Why the first failed.
        reason: String,
    },
    /// The run ended before all cells did.
    Unmeasured {
        /// Cells planned.
        planned: usize,
    },
    /// A node that is nearer by distance is slower than one farther away.
    DistanceOrder {
        /// The node of the cpus.
        from: NodeId,
        /// The node that is nearer by distance.
        near: Target,
        /// The node that is farther by distance.
        far: Target,
        /// How many pairs of nodes are in the wrong order.
        pairs: usize,
    },
    /// A distance promises another ratio than was measured.
    DistanceRatio {
        /// The node of the cpus.
        from: NodeId,
        /// The node of the memory.
        to: NodeId,
        /// Remote over local latency by distance.
        promised: f64,
        /// Remote over local latency as measured.
        measured: f64,
    },
    /// A node is slower with its own memory than the other nodes are with theirs.
    SlowNode {
        /// The node.
        node: NodeId,
        /// Latency or bandwidth.
        metric: Metric,
        /// Its value in the metric's unit.
        value: f64,
        /// The median of the other nodes.
        peers: f64,
    },
    /// Huge pages were asked for and not had.
    HugePagesMissing {
        /// Cells that asked for them.
        asked: usize,
        /// Cells that got smaller pages.
        missing: usize,
    },
    /// A guest's huge pages are small ones on its host: their translations cost what those of
    /// small pages do.
    HugePagesSplit {
        /// Lines loaded, one in each 4 KiB.
        lines: u64,
        /// What the translation of each costs in huge pages, in nanoseconds.
        huge_ns: f64,
        /// The same in small pages.
        small_ns: f64,
        /// What random access costs beyond one that stays within a huge page, in nanoseconds.
        walk_ns: Option<f64>,
    },
    /// The cpus of a guest with one node fall into groups by the times between them.
    HiddenNodes {
        /// How many groups.
        groups: usize,
        /// The cpus of each: `0-3 | 4-7`.
        cpus: String,
        /// The median round trip within a group in nanoseconds.
        within_ns: f64,
        /// The median round trip between groups in nanoseconds.
        across_ns: f64,
    },
    /// A cache ends elsewhere than reported.
    CacheSize {
        /// The cache's level.
        level: u8,
        /// Where it ends by the sweep, in bytes.
        found_bytes: f64,
        /// What the system reports, in bytes.
        reported_bytes: u64,
    },
    /// Memory channels without a module.
    ChannelsEmpty {
        /// Their names, as the firmware gives them.
        channels: String,
    },
    /// Memory modules run slower than they or the others could.
    ModulesSlow {
        /// Their slots with both speeds.
        modules: String,
    },
    /// Time is emulated, and with it the machine's memory.
    EmulatedTime {
        /// How time passes.
        time: String,
    },
    /// The clock does not run evenly.
    ClockNotInvariant,
    /// Many windows were disturbed.
    Disturbed {
        /// All windows.
        windows: usize,
        /// Disturbed ones.
        disturbed: usize,
    },
    /// Windows come in bursts: intervals may be too short.
    Bursty {
        /// Cells with figures.
        cells: usize,
        /// By how many times they are too short, at the most.
        too_short: f64,
    },
    /// Intervals are wider than asked for.
    NotPrecise {
        /// Cells planned.
        planned: usize,
        /// The half width asked for, as a share of the median.
        precision: f64,
    },
}

/// A node's memory as seen from another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Target {
    /// The node.
    pub node: NodeId,
    /// Its distance.
    pub distance: u8,
    /// The latency of its memory in nanoseconds.
    pub latency_ns: f64,
}

/// Something odd, with the cells that show it.
pub type RunFinding = Finding<Oddity, CellId>;

/// All anomalies, what casts most doubt first.
pub(super) fn findings(summary: &Summary<'_>) -> Vec<RunFinding> {
    let machine = &summary.run.machine;
    let remote = match &summary.remote {
        Remote::Measured(cost) => {
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
        emulated_time(summary),
        clock(summary),
        disturbed(summary),
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

/// The cells in a state.
fn cells_in(summary: &Summary<'_>, wanted: fn(&State<'_>) -> bool) -> Vec<CellId> {
    let of = |cell: &&CellSummary<'_>| wanted(&cell.state);
    summary.cells.iter().filter(of).map(|cell| cell.cell.id.clone()).collect()
}

fn failed(summary: &Summary<'_>) -> Option<RunFinding> {
    let reason = summary.cells.iter().find_map(|cell| match cell.state {
        State::Failed(reason) => Some(reason.to_owned()),
        _ => None,
    });
    let planned = summary.progress.planned;
    let cells = cells_in(summary, |state| matches!(state, State::Failed(_)));
    Some(Finding::new(Oddity::Failed { planned, reason: reason? }).shown_by(cells))
}

fn unmeasured(summary: &Summary<'_>) -> Option<RunFinding> {
    let cells = cells_in(summary, |state| *state == State::Unmeasured);
    let planned = summary.progress.planned;
    (!cells.is_empty()).then(|| Finding::new(Oddity::Unmeasured { planned }).shown_by(cells))
}

/// The slowest node by local latency, or else by local bandwidth.
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
    let locals: Vec<(u32, &Entry)> = matrix.rows.iter().filter_map(local).collect();
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

/// Where a guest's pages are proven huge, and the TLB takes them for small ones.
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
    let fact = summary.run.environment.facts.get("clock_invariant")?;
    (fact == "no").then(|| Finding::new(Oddity::ClockNotInvariant))
}

fn emulated_time(summary: &Summary<'_>) -> Option<RunFinding> {
    let time = summary.run.environment.facts.get("time")?.clone();
    Some(Finding::new(Oddity::EmulatedTime { time }))
}

fn disturbed(summary: &Summary<'_>) -> Option<RunFinding> {
    let progress = &summary.progress;
    let (windows, disturbed) = (progress.windows, progress.disturbed);
    (progress.disturbed_share() > DISTURBED_SHARE)
        .then(|| Finding::new(Oddity::Disturbed { windows, disturbed }).over(DISTURBED_SHARE))
}

/// Cells with windows in bursts that no rule of disturbance explains.
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
    let cells = cells_in(summary, |state| *state == State::BudgetSpent);
    (!cells.is_empty()).then(|| {
        Finding::new(Oddity::NotPrecise { planned, precision }).over(precision).shown_by(cells)
    })
}
