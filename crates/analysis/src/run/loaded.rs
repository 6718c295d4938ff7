//! Latency while the memory is busy.

use numalab_record::{CellId, LoadedCell, Metric};
use numalab_stats::{KNEE_FACTOR, Knee, LoadPoint, knee};

use super::cell::{CellSummary, Figure};

/// One throttle setting.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedPoint {
    /// The cell.
    pub cell: CellId,
    /// Pauses of a load worker: 0 is full speed, `None` no load.
    pub delay: Option<u32>,
    /// What the load workers achieved together, in GB/s; `None` without load.
    pub bandwidth: Option<Figure>,
    /// The chaser's latency in nanoseconds.
    pub latency: Figure,
    /// The share of its windows that other load disturbed, 0 to 1.
    pub disturbed: f64,
}

impl LoadedPoint {
    /// The bandwidth in GB/s, 0 without load.
    #[must_use]
    pub fn bandwidth_gb_per_s(&self) -> f64 {
        self.bandwidth.as_ref().map_or(0.0, |figure| figure.median)
    }
}

/// Latency over bandwidth of one chaser and its load workers.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedCurve<'a> {
    /// A cell of the curve: all of it but the delay holds for every point.
    pub cell: &'a LoadedCell,
    /// The points in order of rising load.
    pub points: Vec<LoadedPoint>,
    /// Where latency first reaches [`KNEE_FACTOR`] times that of the first point; `None` too
    /// where there is a [`Doubt`].
    pub knee: Option<Knee>,
    /// Why the curve does not tell where that is.
    pub doubt: Option<Doubt>,
}

/// Why a loaded curve is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// Other load disturbed this share of the windows without load, 0 to 1.
    Disturbed(f64),
    /// Without load it took longer than under some load.
    IdleSlower {
        /// Without load, in nanoseconds.
        idle_ns: f64,
        /// The least under load, in nanoseconds.
        loaded_ns: f64,
    },
}

/// More disturbed windows than this without load, and a curve tells nothing of load.
const MOST_DISTURBED: f64 = 0.5;
/// Idle memory that is slower than this many times memory under load was not idle.
const IDLE_SLOWER: f64 = 1.1;

/// Every loaded curve of a run.
#[must_use]
pub fn loaded_curves<'a>(cells: &[CellSummary<'a>]) -> Vec<LoadedCurve<'a>> {
    let mut curves: Vec<LoadedCurve<'a>> = Vec::new();
    for summary in cells {
        let (Some(cell), Some(latency)) = (summary.loaded(), summary.figure(Metric::Latency))
        else {
            continue;
        };
        let bandwidth = summary.figure(Metric::Bandwidth).cloned();
        if cell.delay.is_some() && bandwidth.is_none() {
            continue;
        }
        let point = LoadedPoint {
            cell: summary.cell.id.clone(),
            delay: cell.delay,
            bandwidth,
            latency: latency.clone(),
            disturbed: summary.disturbed_share(Metric::Latency),
        };
        match curves.iter_mut().find(|curve| is_same(curve.cell, cell)) {
            Some(curve) => curve.points.push(point),
            None => curves.push(LoadedCurve { cell, points: vec![point], knee: None, doubt: None }),
        }
    }
    for curve in &mut curves {
        // No load comes first, then the longest pause.
        curve.points.sort_by_key(|point| point.delay.map(core::cmp::Reverse));
        curve.doubt = doubt(&curve.points);
        curve.knee = if curve.doubt.is_none() { find_knee(&curve.points) } else { None };
    }
    curves
}

/// Whether two cells differ in delay only. Without load the load workers play no
/// part, so the idle cell may list none.
fn is_same(a: &LoadedCell, b: &LoadedCell) -> bool {
    let load = a.load == b.load || a.load.is_empty() || b.load.is_empty();
    load && (a.chaser, a.kernel, a.size_bytes, a.pages)
        == (b.chaser, b.kernel, b.size_bytes, b.pages)
}

fn doubt(points: &[LoadedPoint]) -> Option<Doubt> {
    let (idle, loaded) = points.split_first()?;
    if idle.disturbed > MOST_DISTURBED {
        return Some(Doubt::Disturbed(idle.disturbed));
    }
    let loaded_ns = loaded.iter().map(|point| point.latency.median).fold(f64::INFINITY, f64::min);
    let idle_ns = idle.latency.median;
    (idle_ns > IDLE_SLOWER * loaded_ns).then_some(Doubt::IdleSlower { idle_ns, loaded_ns })
}

fn find_knee(points: &[LoadedPoint]) -> Option<Knee> {
    let load_points: Vec<LoadPoint> = points
        .iter()
        .map(|point| LoadPoint {
            // `knee` takes positive values only, and without load there is none.
            bandwidth: point.bandwidth_gb_per_s().max(f64::MIN_POSITIVE),
            latency_ns: point.latency.median,
        })
        .collect();
    knee(&load_points, KNEE_FACTOR).ok().flatten()
}
