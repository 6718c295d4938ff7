//! Peak bandwidth of the memory modules, and the share of it that the run reached.

use std::collections::BTreeSet;

use numalab_record::{Run, WorkerPlan};

use super::{Bandwidths, LoadedCurve, Oddity, RunFinding, Summary};
use crate::Finding;

/// Peak bandwidth of the machine's memory channels, from the firmware's list of modules (SMBIOS).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryPeak {
    /// The peak of all nodes together, in GB/s.
    pub gb_per_s: f64,
    /// True if this is only an upper bound, because the slots do not name their channels.
    pub is_bound: bool,
    /// The highest share of the peak that any cell reached, 0 to 1, with the peak divided equally
    /// among nodes; `None` if no cell streamed more than the caches hold.
    pub reached: Option<f64>,
}

pub(super) fn memory_peak(
    run: &Run,
    bandwidths: &Bandwidths<'_>,
    curves: &[LoadedCurve<'_>],
    cached_bytes: Option<f64>,
) -> Option<MemoryPeak> {
    let mb_s = run.environment.number("memory_peak_mb_s")?;
    let gb_per_s = mb_s / 1000.0;
    let nodes = run.machine.memory_nodes().len().max(1) as f64;
    let share = |traffic: f64, workers: &[WorkerPlan], size_bytes: u64| {
        let used: BTreeSet<_> = workers.iter().map(|worker| worker.node).collect();
        let bytes = workers.len() as f64 * size_bytes as f64;
        cached_bytes
            .is_none_or(|cached| bytes > cached)
            .then(|| traffic / (gb_per_s * used.len().max(1) as f64 / nodes))
    };
    let streams = bandwidths.rows.iter().filter_map(|row| {
        let traffic = row.figure.median * row.cell.kernel.traffic_factor();
        share(traffic, &row.cell.workers, row.cell.size_bytes)
    });
    let loads = curves
        .iter()
        .filter_map(|curve| share(curve.peak?.gb_per_s, &curve.cell.load, curve.cell.size_bytes));
    let is_bound = run.environment.fact("memory_peak_bound").is_some();
    Some(MemoryPeak { gb_per_s, is_bound, reached: streams.chain(loads).reduce(f64::max) })
}

/// Reports channels without a module, and modules that run below the speed they could.
pub(super) fn findings(summary: &Summary<'_>) -> [Option<RunFinding>; 2] {
    let fact = |name| summary.run.environment.text(name).map(str::to_owned);
    let empty = fact("memory_channels_empty").map(|channels| Oddity::ChannelsEmpty { channels });
    let slow = fact("memory_modules_slow").map(|modules| Oddity::ModulesSlow { modules });
    [empty.map(Finding::new), slow.map(Finding::new)]
}
