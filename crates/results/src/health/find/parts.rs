//! Memory and cpus of the baseline that are missing now.

use numalab_topology::Machine;

use super::Symptom;
use crate::compare::NamedRun;

/// Variation in a node's memory between boots, as a share: the memory that the kernel reserves
/// varies, but by less than the smallest module.
const KERNELS_SHARE: f64 = 0.03;

/// Returns what is missing; nothing if a side has no run.
pub(super) fn missing(baseline: &[NamedRun], candidate: &[NamedRun]) -> Vec<Symptom> {
    let (Some(before), Some(now)) = (baseline.last(), candidate.first()) else {
        return Vec::new();
    };
    let (before, now) = (&before.document.run.machine, &now.document.run.machine);
    let mut symptoms: Vec<Symptom> = memory(before, now).collect();
    let cpus = before.online_cpus().difference(&now.online_cpus());
    symptoms.extend((!cpus.is_empty()).then_some(Symptom::CpusMissing { cpus }));
    symptoms
}

fn memory<'a>(before: &'a Machine, now: &'a Machine) -> impl Iterator<Item = Symptom> + 'a {
    before.nodes.iter().filter(|node| node.memory_bytes > 0).filter_map(|node| {
        let (node, baseline_bytes) = (node.id, node.memory_bytes);
        let bytes = now.node(node).map_or(0, |node| node.memory_bytes);
        match bytes {
            0 => Some(Symptom::NodeMissing { node, baseline_bytes }),
            _ if (bytes as f64) < baseline_bytes as f64 * (1.0 - KERNELS_SHARE) => {
                Some(Symptom::MemoryMissing { node, bytes, baseline_bytes })
            }
            _ => None,
        }
    })
}
