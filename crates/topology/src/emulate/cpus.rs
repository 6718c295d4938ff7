//! Assignment of cpus to emulated nodes.

use alloc::vec;
use alloc::vec::Vec;

use super::EmulationError;
use crate::id::{CpuId, NodeId};
use crate::machine::Machine;
use crate::order;

/// An online cpu with the groups that it should stay in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) id: CpuId,
    pub(super) node: Option<NodeId>,
    core: Option<u32>,
}

/// Returns the online cpus in order of node, package, L3 group and core, with siblings together;
/// cpus in no node come last.
pub(super) fn ordered(machine: &Machine) -> Vec<Placed> {
    let mut cpus: Vec<_> = machine.cpus.iter().filter(|cpu| cpu.online).collect();
    order::by_key(&mut cpus, |cpu| {
        let place = (cpu.package, cpu.l3_group, cpu.core, cpu.thread, cpu.id);
        (cpu.node.is_none(), cpu.node, place)
    });
    cpus.into_iter().map(|cpu| Placed { id: cpu.id, node: cpu.node, core: cpu.core }).collect()
}

/// Spreads the cpus evenly over `nodes` nodes in order. SMT siblings stay
/// together as long as there is a core for every node.
pub(super) fn spread(cpus: &[Placed], nodes: usize) -> Vec<Vec<CpuId>> {
    let cores = cores(cpus);
    let units =
        if cores.len() >= nodes { cores } else { cpus.iter().map(|cpu| vec![cpu.id]).collect() };
    let mut parts = vec![Vec::new(); nodes];
    let count = units.len();
    for (index, unit) in units.into_iter().enumerate() {
        parts[index * nodes / count].extend(unit);
    }
    parts
}

/// Assigns cpus in order: each node gets the number it requests, and those without a number get an
/// even part of the rest.
pub(super) fn deal(
    cpus: &[Placed],
    wanted: &[Option<usize>],
) -> Result<Vec<Vec<CpuId>>, EmulationError> {
    let asked: usize = wanted.iter().flatten().fold(0, |sum, &count| sum.saturating_add(count));
    let present = cpus.len();
    let Some(rest) = present.checked_sub(asked) else {
        return Err(EmulationError::Cpus { asked, present });
    };
    if wanted.iter().all(Option::is_none) {
        return Ok(spread(cpus, wanted.len()));
    }
    let open = wanted.iter().filter(|count| count.is_none()).count();
    let mut ids = cpus.iter().map(|cpu| cpu.id);
    let mut seen = 0;
    let parts = wanted.iter().map(|count| {
        let count = count.unwrap_or_else(|| {
            seen += 1;
            rest * seen / open - rest * (seen - 1) / open
        });
        ids.by_ref().take(count).collect()
    });
    Ok(parts.collect())
}

/// Returns the cpus by core, in order; a cpu without a known core counts as a core.
fn cores(cpus: &[Placed]) -> Vec<Vec<CpuId>> {
    let siblings = |a: &Placed, b: &Placed| a.core.is_some() && a.core == b.core;
    cpus.chunk_by(siblings).map(|core| core.iter().map(|cpu| cpu.id).collect()).collect()
}
