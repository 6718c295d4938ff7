//! Latency of a line from one core's caches to another's.

use std::collections::BTreeMap;

use numalab_memory_model::machine::Transfers;
use numalab_record::{Experiment, Metric};
use numalab_stats::Sample;
use numalab_topology::{Cpu, Machine};

use super::Remark;
use crate::run::Summary;

/// Returns half of the median round trip within an L3 group, and between groups by node. A kind of
/// pair that the machine does not have gets the closest kind's figure; a kind that was not measured
/// omits everything.
pub(super) fn transfers(
    summary: &Summary<'_>,
    machine: &Machine,
    remarks: &mut Vec<Remark>,
) -> Option<Transfers> {
    let found = measured(summary, machine);
    if found.is_none() {
        remarks.push(Remark::NoTransfers);
    }
    found
}

fn measured(summary: &Summary<'_>, machine: &Machine) -> Option<Transfers> {
    let nodes: Vec<_> =
        machine.nodes.iter().filter(|node| node.online).map(|node| node.id).collect();
    let place = |cpu: &Cpu| nodes.iter().position(|&node| Some(node) == cpu.node);
    let mut within = Vec::new();
    let mut between: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for cell in &summary.cells {
        let Experiment::C2c(pair) = &cell.cell.experiment else { continue };
        let Some(figure) = cell.figure(Metric::RoundTrip) else { continue };
        let Some((from, to)) = machine.cpu(pair.from).zip(machine.cpu(pair.to)) else { continue };
        let one_way_ns = figure.median / 2.0;
        match (place(from), place(to)) {
            _ if share_core(from, to) => {}
            (Some(a), Some(b)) if a != b || !share_group(from, to) => {
                between.entry((a, b)).or_default().push(one_way_ns);
                between.entry((b, a)).or_default().push(one_way_ns);
            }
            _ => within.push(one_way_ns),
        }
    }
    let median = |values: &[f64]| Sample::new(values.to_vec()).ok().map(|sample| sample.median());
    let known: BTreeMap<_, f64> =
        between.iter().filter_map(|(&at, values)| Some((at, median(values)?))).collect();
    let nearest = known.values().copied().fold(f64::INFINITY, f64::min);
    let group_ns = median(&within).or_else(|| nearest.is_finite().then_some(nearest))?;
    if (within.is_empty() && has_pair(machine, share_group)) || {
        let kinds = (0..nodes.len()).flat_map(|a| (0..nodes.len()).map(move |b| (a, b)));
        kinds.filter(|at| !known.contains_key(at)).any(|at| {
            has_pair(machine, |a, b| {
                !share_group(a, b) && (place(a), place(b)) == (Some(at.0), Some(at.1))
            })
        })
    } {
        return None;
    }
    let fallback = if nearest.is_finite() { nearest } else { group_ns };
    let entry = |from: usize, to: usize| known.get(&(from, to)).copied().unwrap_or(fallback);
    let row = |from: usize| (0..nodes.len()).map(|to| entry(from, to)).collect();
    Some(Transfers { group_ns, node_ns: (0..nodes.len()).map(row).collect() })
}

fn share_core(a: &Cpu, b: &Cpu) -> bool {
    a.core.is_some() && (a.package, a.core) == (b.package, b.core)
}

/// Returns `true` if two cpus share an L3, or, if that is unknown, a node.
fn share_group(a: &Cpu, b: &Cpu) -> bool {
    match (a.l3_group, b.l3_group) {
        (Some(first), Some(second)) => first == second,
        _ => a.node == b.node,
    }
}

/// Returns `true` if the machine has two cores of this kind.
fn has_pair(machine: &Machine, is_one: impl Fn(&Cpu, &Cpu) -> bool) -> bool {
    let online = || machine.cpus.iter().filter(|cpu| cpu.online);
    online().any(|a| online().any(|b| a.id != b.id && !share_core(a, b) && is_one(a, b)))
}
