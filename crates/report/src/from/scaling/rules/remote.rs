//! What remote memory costs beside local memory.

use std::collections::BTreeMap;

use numalab_record::scaling::{Scaling, ScalingStep};
use numalab_topology::NodeId;

use super::{Explanation, change, difference};
use crate::number::{count, figure, size};
use numalab_analysis::scaling::figures::mean;
use numalab_analysis::scaling::groups::cpu_node;

/// Figures by the node of the cpu and of the memory.
type ByNodes = BTreeMap<(NodeId, NodeId), Vec<f64>>;

/// Within each step, at its largest size, so that nothing else differs; steps whose ranks
/// differ in distance say something, and the one with the most ranks is told.
pub(super) fn explain(scaling: &Scaling) -> Option<Explanation> {
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
    let of = difference(&local, &remote)?;
    let size_bytes = *step.sizes_bytes.last()?;
    let unit = step.metric.unit();
    let says = match of.real {
        true => format!(
            "at {} remote memory is {}: {} {unit} over {} compared with {} {unit} over {} with local memory",
            size(size_bytes),
            change(step.metric, of.ratio),
            figure(mean(&remote)?),
            count(remote.len(), "rank"),
            figure(mean(&local)?),
            count(local.len(), "rank")
        ),
        false => format!(
            "at {} remote and local ranks do not differ beyond their spread ({} and {} {unit})",
            size(size_bytes),
            figure(mean(&remote)?),
            figure(mean(&local)?)
        ),
    };
    let evidence = by_nodes.iter().filter_map(|((cpu, memory), values)| {
        let distance = scaling.machine.as_ref().and_then(|machine| machine.distance(*cpu, *memory));
        let distance = distance.map_or_else(String::new, |d| format!(", distance {d}"));
        Some(format!(
            "{}: cpus of node {cpu}, memory of node {memory}{distance}: {} {unit} over {}",
            step.file,
            figure(mean(values)?),
            count(values.len(), "rank")
        ))
    });
    Some(Explanation::new("local and remote", says, evidence.collect()))
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
