//! The cost of remote memory compared with local memory.

use std::collections::BTreeMap;

use numalab_record::scaling::{Scaling, ScalingStep};
use numalab_topology::NodeId;

use super::{
    Finding, LEAST_DIFFERENCE, ScalingEvidence, ScalingFinding, ScalingObservation, difference,
};
use crate::scaling::RankSide;
use crate::scaling::find::figures::mean;
use crate::scaling::find::groups::cpu_node;

/// Figures by cpu node and memory node.
type ByNodes = BTreeMap<(NodeId, NodeId), Vec<f64>>;

/// Compares within each step at its largest size, so that nothing else differs. Only steps with
/// both local and remote ranks qualify; the one with the most ranks is reported.
pub(super) fn find(scaling: &Scaling) -> Option<ScalingFinding> {
    let mixed = scaling.steps.iter().filter_map(|step| {
        let by_nodes = by_nodes(scaling, step)?;
        let local = by_nodes.keys().any(|(cpu, memory)| cpu == memory);
        let remote = by_nodes.keys().any(|(cpu, memory)| cpu != memory);
        (local && remote).then_some((step, by_nodes))
    });
    let (step, by_nodes) = mixed.max_by_key(|(step, _)| step.ranks())?;
    let side = |is_local: bool| -> Vec<f64> {
        let side = by_nodes.iter().filter(|((cpu, memory), _)| (cpu == memory) == is_local);
        side.flat_map(|(_, values)| values.iter().copied()).collect()
    };
    let (local, remote) = (side(true), side(false));
    let kind = |values: &[f64]| Some(RankSide { ranks: values.len(), mean: mean(values)? });
    let what = ScalingObservation::LocalAndRemote {
        size_bytes: *step.sizes_bytes.last()?,
        local: kind(&local)?,
        remote: kind(&remote)?,
        difference: difference(step.metric, &local, &remote)?,
    };
    let evidence = by_nodes.iter().filter_map(|(&(cpu_node, memory_node), values)| {
        Some(ScalingEvidence::Nodes {
            file: step.file.clone(),
            cpu_node,
            memory_node,
            distance: scaling.machine.as_ref().and_then(|m| m.distance(cpu_node, memory_node)),
            metric: step.metric,
            ranks: values.len(),
            mean: mean(values)?,
        })
    });
    Some(Finding::new(what).over(LEAST_DIFFERENCE).shown_by(evidence.collect()))
}

fn by_nodes(scaling: &Scaling, step: &ScalingStep) -> Option<ByNodes> {
    let values = step.at(*step.sizes_bytes.last()?)?;
    let machine = scaling.machine.as_ref();
    let mut by_nodes = ByNodes::new();
    for (rank, value) in values.iter().enumerate() {
        let place = step.places.get(rank).copied().flatten()?;
        let nodes = (cpu_node(place, machine)?, place.memory_node?);
        by_nodes.entry(nodes).or_default().push(*value);
    }
    Some(by_nodes)
}
