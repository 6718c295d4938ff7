//! Latency curves of memory and links under load.

use std::collections::{BTreeMap, BTreeSet};

use numalab_formats::machine_toml::LoadFigures;
use numalab_memory_model::curve::Curve;
use numalab_stats::median;
use numalab_topology::{Machine, NodeId, NodeSet};

use super::{NoLoad, Remark};
use crate::run::{LoadedCurve, Summary};

/// Share of a curve's traffic up to which memory is as fast as without load.
const LIGHT: f64 = 0.05;

/// The memory's node, and the cpus' node if a link was loaded.
type LoadedPath = (NodeId, Option<NodeId>);

/// Returns the saturated curves of each node's memory and of each link; of curves with the same
/// share of writes, the one with the most traffic.
pub(super) fn loads(
    summary: &Summary<'_>,
    machine: &Machine,
    remarks: &mut Vec<Remark>,
) -> Vec<LoadFigures> {
    let mut ways: BTreeMap<LoadedPath, Vec<Curve>> = BTreeMap::new();
    let mut without: BTreeMap<NodeId, NoLoad> = BTreeMap::new();
    for node in machine.nodes.iter().filter(|node| node.online && node.memory_bytes > 0) {
        without.insert(node.id, NoLoad::NotMeasured);
    }
    for loaded in &summary.loaded {
        let Some(way) = way(loaded, machine) else { continue };
        match usable(loaded) {
            Ok(curve) => add(ways.entry(way).or_default(), curve),
            Err(why) if way.1.is_none() => {
                without.insert(way.0, why);
            }
            Err(_) => {}
        }
    }
    let unmeasured = without.into_iter().filter(|&(node, _)| !ways.contains_key(&(node, None)));
    remarks.extend(unmeasured.map(|(node, why)| Remark::NoLoad { node, why }));
    let one = |node| NodeSet::from_iter([node]);
    let load = |((node, from), curves): (LoadedPath, Vec<Curve>)| LoadFigures {
        nodes: one(node),
        from: from.map(one),
        peak_mb_s: None,
        curves,
    };
    ways.into_iter().map(load).collect()
}

/// The curves of one chaser with one team of load workers, ordered by share of writes.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveFamily {
    /// The node that holds the memory.
    pub node: NodeId,
    /// The nodes of the cpus that load it.
    pub from: NodeSet,
    /// The curves, whether saturated or not.
    pub curves: Vec<Curve>,
}

impl CurveFamily {
    /// Returns the name of its file. Some tools would read a comma as a separator of two files.
    pub fn file_name(&self) -> String {
        let from = self.from.to_string().replace(',', "+");
        format!("memory_curves-node{}-from-node{from}.csv", self.node)
    }
}

/// Returns all families of curves of a run, as Mess stores them.
pub fn curve_families(summary: &Summary<'_>) -> Vec<CurveFamily> {
    let machine = &summary.run.machine;
    let family = |family: &[LoadedCurve<'_>]| {
        let first = family.first()?;
        let homes = first.cell.load.iter().filter_map(|worker| machine.cpu(worker.cpu)?.node);
        let mut curves = Vec::new();
        let as_measured = family.iter().filter_map(|loaded| curve(loaded, 0.0));
        as_measured.for_each(|curve| add(&mut curves, curve));
        let (node, from) = (first.cell.chaser.node, homes.collect());
        (!curves.is_empty()).then_some(CurveFamily { node, from, curves })
    };
    summary.loaded.chunk_by(LoadedCurve::is_of_family).filter_map(family).collect()
}

/// Returns the node's memory if its own cores load it, alone or with others, or the link if only
/// cores of one other node do.
fn way(loaded: &LoadedCurve<'_>, machine: &Machine) -> Option<LoadedPath> {
    let memory = loaded.cell.chaser.node;
    let homes: Option<BTreeSet<NodeId>> =
        loaded.cell.load.iter().map(|worker| machine.cpu(worker.cpu)?.node).collect();
    let homes = homes?;
    match homes.first() {
        _ if homes.contains(&memory) => Some((memory, None)),
        Some(&home) if homes.len() == 1 => Some((memory, Some(home))),
        _ => None,
    }
}

fn usable(loaded: &LoadedCurve<'_>) -> Result<Curve, NoLoad> {
    let most_mb_s = loaded.peak.map_or(0.0, |peak| peak.gb_per_s * 1000.0);
    match (loaded.doubt, loaded.saturation) {
        (Some(_), _) => Err(NoLoad::Doubtful),
        (None, Some(_)) => curve(loaded, others_ns(loaded)).ok_or(NoLoad::Doubtful),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a bandwidth")]
        (None, None) => Err(NoLoad::NotSaturated { most_mb_s: most_mb_s.round() as u64 }),
    }
}

/// Returns the latency that other users of the machine added to a curve: its rise under a load that is too
/// light to cause one.
fn others_ns(loaded: &LoadedCurve<'_>) -> f64 {
    let most = loaded.points.iter().map(|point| point.traffic_gb_per_s).fold(0.0, f64::max);
    let is_light = |traffic: f64| traffic > 0.0 && traffic <= LIGHT * most;
    let light = loaded.points.iter().filter(|point| is_light(point.traffic_gb_per_s));
    let light: Vec<f64> = light.map(|point| point.latency.median).collect();
    let idle = loaded.points.iter().find(|point| point.traffic_gb_per_s == 0.0);
    let both = median(&light).zip(idle);
    both.map_or(0.0, |(light_ns, idle)| (light_ns - idle.latency.median).max(0.0))
}

/// Returns points of rising traffic, with latency forced to rise as well and without this much in all points
/// under load; points beyond the peak, where more load moves less, are dropped.
fn curve(loaded: &LoadedCurve<'_>, others_ns: f64) -> Option<Curve> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for point in &loaded.points {
        let others_ns = if point.traffic_gb_per_s > 0.0 { others_ns } else { 0.0 };
        let ns = tenths(point.latency.median - others_ns);
        let mb_s = tenths(point.traffic_gb_per_s * 1000.0);
        match points.last() {
            Some(last) if mb_s <= last.0 => {}
            Some(last) => points.push((mb_s, ns.max(last.1))),
            None => points.push((mb_s, ns)),
        }
    }
    let writes_percent = tenths(100.0 - loaded.cell.kernel.read_percent());
    let found = Curve { writes_percent, points };
    Curve::check(std::slice::from_ref(&found)).is_ok().then_some(found)
}

/// Rounds to a tenth, because measured latencies have three or four significant digits.
pub(super) fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Adds a curve, replacing one with the same share of writes and less traffic.
fn add(curves: &mut Vec<Curve>, curve: Curve) {
    let most = |curve: &Curve| curve.points.last().map_or(0.0, |point| point.0);
    let at = curves.partition_point(|other| other.writes_percent < curve.writes_percent);
    match curves.get_mut(at) {
        Some(same) if same.writes_percent == curve.writes_percent => {
            if most(&curve) > most(same) {
                *same = curve;
            }
        }
        _ => curves.insert(at, curve),
    }
}
