//! Latency under memory load.

use std::collections::BTreeSet;

use numalab_record::{AccessPattern, CellId, LoadedCell, Metric, WorkerPlan};
use numalab_stats::{KNEE_FACTOR, Knee, LoadPoint, knee};
use numalab_topology::{CpuId, CpuSet, Machine};
use serde::{Serialize, Serializer};

use super::bandwidth::{BandwidthRow, Bandwidths};
use super::cell::{CellSummary, Figure};

/// One throttle setting of the load workers.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LoadedPoint {
    /// The id of the cell measured.
    pub cell: CellId,
    /// Pauses between a load worker's accesses: 0 is full speed, `None` no load.
    #[serde(skip)]
    pub delay: Option<u32>,
    /// The chaser's median latency in nanoseconds.
    #[serde(rename = "latency_ns")]
    #[schemars(with = "f64")]
    pub latency: Figure,
    /// The bandwidth of all load workers together, in GB/s; `None` (0 in documents) without load.
    #[serde(rename = "bandwidth_gb_per_s", serialize_with = "or_zero")]
    #[schemars(with = "f64")]
    pub bandwidth: Option<Figure>,
    /// Memory traffic in GB/s: the bytes requested, plus the lines that stores read first
    /// (write-allocate); 0 without load.
    pub traffic_gb_per_s: f64,
    /// The share of the chaser's windows that other load disturbed, 0 to 1.
    #[serde(skip)]
    pub disturbed: f64,
}

impl LoadedPoint {
    /// Returns the bandwidth of the load workers in GB/s, 0 without load.
    pub fn bandwidth_gb_per_s(&self) -> f64 {
        self.bandwidth.as_ref().map_or(0.0, |figure| figure.median)
    }
}

fn or_zero<S: Serializer>(figure: &Option<Figure>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(figure.as_ref().map_or(0.0, |figure| figure.median))
}

/// A latency at a given memory traffic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Peak {
    /// The traffic in GB/s.
    pub gb_per_s: f64,
    /// The latency at that traffic, in nanoseconds.
    pub latency_ns: f64,
}

/// Latency by bandwidth of one chaser and its load workers.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedCurve<'a> {
    /// A cell of the curve; all its parameters except the delay hold for every point.
    pub cell: &'a LoadedCell,
    /// The points, lowest load first.
    pub points: Vec<LoadedPoint>,
    /// The point of highest traffic; `None` without a point under load.
    pub peak: Option<Peak>,
    /// The first point within 5 % of the peak, if more load only adds waiting there: latency
    /// exceeds [`KNEE_FACTOR`] times that of the first point, or more cores add hardly any traffic.
    /// `None` if the load workers never reach it, or if there is a [`Doubt`].
    pub saturation: Option<Peak>,
    /// The traffic at which latency first reaches [`KNEE_FACTOR`] times that of the first point;
    /// `None` if there is a [`Doubt`].
    pub knee: Option<Knee>,
    /// The reason not to trust the curve.
    pub doubt: Option<Doubt>,
}

impl LoadedCurve<'_> {
    /// Returns `true` if two curves differ only in the kernel and so belong to one family.
    pub fn is_of_family(&self, other: &Self) -> bool {
        is_same_but_kernel(self.cell, other.cell)
    }

    fn find_ends(&mut self, bandwidths: &Bandwidths<'_>, machine: &Machine) {
        let traffic: Vec<Peak> = self
            .points
            .iter()
            .filter(|point| point.delay.is_some())
            .map(|point| Peak {
                gb_per_s: point.traffic_gb_per_s,
                latency_ns: point.latency.median,
            })
            .collect();
        self.peak = traffic.iter().copied().max_by(|a, b| a.gb_per_s.total_cmp(&b.gb_per_s));
        self.doubt = doubt(&self.points);
        if self.doubt.is_some() {
            return;
        }
        self.knee = find_knee(&self.points);
        let most = self.peak.map_or(0.0, |peak| peak.gb_per_s);
        let is_full = bandwidths.rows.iter().any(|row| self.is_the_most(row, machine));
        let slow_ns = match self.points.first() {
            _ if is_full => 0.0,
            idle => idle.map_or(f64::INFINITY, |idle| KNEE_FACTOR * idle.latency.median),
        };
        self.saturation = traffic
            .into_iter()
            .find(|at| at.gb_per_s >= NEAR_PEAK * most && at.latency_ns >= slow_ns);
    }

    /// Returns `true` if `row`, which adds cores to the load workers, moves hardly more data than
    /// the load workers alone. The chaser's latency may then stay low, because no core requests
    /// more than it gets.
    fn is_the_most(&self, row: &BandwidthRow<'_>, machine: &Machine) -> bool {
        let cpus = |workers: &[WorkerPlan]| workers.iter().map(|of| of.cpu).collect::<CpuSet>();
        let (load, more) = (cpus(&self.cell.load), cpus(&row.cell.workers));
        let is_same = row.cell.kernel == self.cell.kernel
            && row.cell.pattern == AccessPattern::Sequential
            && row.cell.workers.iter().all(|worker| worker.node == self.cell.chaser.node);
        if !is_same || load.is_empty() || !load.is_subset(&more) {
            return false;
        }
        let alone = self.points.iter().map(LoadedPoint::bandwidth_gb_per_s).fold(0.0, f64::max);
        let gain = row.figure.median / alone - 1.0;
        let gain_if_idle = cores(&more, machine) as f64 / cores(&load, machine) as f64 - 1.0;
        gain_if_idle > 0.0 && gain <= LEAST_GAIN * gain_if_idle
    }
}

/// Counts the cores of `cpus`; a cpu of unknown core counts as one.
fn cores(cpus: &CpuSet, machine: &Machine) -> usize {
    let core = |cpu: CpuId| machine.cpu(cpu).and_then(|cpu| cpu.core).unwrap_or(cpu.0);
    cpus.iter().map(core).collect::<BTreeSet<u32>>().len()
}

/// A reason not to trust a loaded-latency curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// Other load disturbed this share of the idle windows, 0 to 1.
    Disturbed(f64),
    /// Latency without load was higher than under some load.
    IdleSlower {
        /// The latency without load, in nanoseconds.
        idle_ns: f64,
        /// The lowest latency under load, in nanoseconds.
        loaded_ns: f64,
    },
}

/// Maximum share of disturbed idle windows for a curve to be evidence of load.
const MOST_DISTURBED: f64 = 0.5;
/// Idle latency above this multiple of a loaded latency means that the memory was not idle.
const IDLE_SLOWER: f64 = 1.1;
/// Share of the peak that counts as reaching it.
const NEAR_PEAK: f64 = 0.95;
/// Share of the ideal gain from more cores below which the memory counts as saturated.
const LEAST_GAIN: f64 = 0.25;

/// Returns all loaded-latency curves of a run.
pub fn loaded_curves<'a>(
    cells: &[CellSummary<'a>],
    bandwidths: &Bandwidths<'_>,
    machine: &Machine,
) -> Vec<LoadedCurve<'a>> {
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
        let asked = bandwidth.as_ref().map_or(0.0, |figure| figure.median);
        let point = LoadedPoint {
            cell: summary.cell.id.clone(),
            delay: cell.delay,
            bandwidth,
            traffic_gb_per_s: asked * cell.kernel.traffic_factor(),
            latency: latency.clone(),
            disturbed: summary.disturbed_share(Metric::Latency),
        };
        match curves.iter_mut().find(|curve| is_same(curve.cell, cell)) {
            Some(curve) => curve.points.push(point),
            None => curves.push(LoadedCurve {
                cell,
                points: vec![point],
                peak: None,
                saturation: None,
                knee: None,
                doubt: None,
            }),
        }
    }
    for curve in &mut curves {
        // The point without load comes first, then the longest pause.
        curve.points.sort_by_key(|point| point.delay.map(core::cmp::Reverse));
        curve.find_ends(bandwidths, machine);
    }
    curves
}

/// Returns `true` if two cells differ only in delay. Load workers are irrelevant without load, so
/// an idle cell may list none.
fn is_same(a: &LoadedCell, b: &LoadedCell) -> bool {
    a.kernel == b.kernel && is_same_but_kernel(a, b)
}

fn is_same_but_kernel(a: &LoadedCell, b: &LoadedCell) -> bool {
    let load = a.load == b.load || a.load.is_empty() || b.load.is_empty();
    load && (a.chaser, a.size_bytes, a.pages) == (b.chaser, b.size_bytes, b.pages)
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
            // `knee` accepts positive values only, and traffic without load is 0.
            bandwidth: point.traffic_gb_per_s.max(f64::MIN_POSITIVE),
            latency_ns: point.latency.median,
        })
        .collect();
    knee(&load_points, KNEE_FACTOR).ok().flatten()
}
