//! Groups of ranks: by rank, core, CCD and node.

use std::collections::BTreeMap;

use numalab_record::scaling::{RankPlace, Scaling, ScalingMetric, ScalingStep};
use numalab_topology::{Machine, NodeId};
use serde::Serialize;

use super::figures::{mean, same_series, series, series_name};

/// The criterion for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupKind {
    /// A single rank on one core.
    Rank,
    /// The ranks of an L3 group (CCD).
    Ccd,
    /// The ranks on the cpus of a node.
    CpuNode,
    /// The ranks with memory on a node.
    MemoryNode,
}

/// A group of ranks.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Group {
    /// The series' name.
    pub series: String,
    /// The metric of the figures.
    pub metric: ScalingMetric,
    /// Total number of ranks of the step.
    pub step_ranks: usize,
    /// Buffer size of each rank, in bytes.
    pub size_bytes: u64,
    /// The criterion for the group.
    pub kind: GroupKind,
    /// The number of the rank, CCD or node.
    pub number: u32,
    /// The rank's placement, for groups of one.
    pub place: Option<RankPlace>,
    /// Number of ranks in the group.
    pub ranks: usize,
    /// The mean over the ranks.
    pub mean: f64,
    /// The lowest value.
    pub min: f64,
    /// The highest value.
    pub max: f64,
}

/// Returns the step with the most ranks of the series of `first`.
pub fn fullest<'a>(scaling: &'a Scaling, first: &ScalingStep) -> Option<&'a ScalingStep> {
    let same = scaling.steps.iter().filter(|step| same_series(step, first));
    same.max_by_key(|step| step.ranks())
}

/// Returns the node of a rank's cpu: as recorded, or else from the machine.
pub fn cpu_node(place: RankPlace, machine: Option<&Machine>) -> Option<NodeId> {
    place.cpu_node.or_else(|| machine?.cpu(place.cpu)?.node)
}

/// Returns all groups of the fullest step of each series.
pub fn all(scaling: &Scaling) -> Vec<Group> {
    let steps = series(scaling).into_iter().filter_map(|first| fullest(scaling, first));
    steps.flat_map(|step| groups_of_step(scaling, step)).collect()
}

fn groups_of_step(scaling: &Scaling, step: &ScalingStep) -> Vec<Group> {
    let Some(&size_bytes) = step.sizes_bytes.last() else { return Vec::new() };
    let Some(values) = step.at(size_bytes) else { return Vec::new() };
    let machine = scaling.machine.as_ref();
    let mut members: BTreeMap<(GroupKind, u32), Vec<usize>> = BTreeMap::new();
    for rank in 0..values.len() {
        let place = step.places.get(rank).copied().flatten();
        let numbers = [
            (GroupKind::Rank, u32::try_from(rank).ok()),
            (GroupKind::Ccd, step.l3_group(rank, machine)),
            (GroupKind::CpuNode, place.and_then(|place| cpu_node(place, machine)).map(|n| n.0)),
            (GroupKind::MemoryNode, place.and_then(|place| place.memory_node).map(|n| n.0)),
        ];
        for (kind, number) in numbers {
            if let Some(number) = number {
                members.entry((kind, number)).or_default().push(rank);
            }
        }
    }
    let group = |((kind, number), ranks): ((GroupKind, u32), Vec<usize>)| {
        let own: Vec<f64> = ranks.iter().map(|&rank| values[rank]).collect();
        Some(Group {
            series: series_name(step),
            metric: step.metric,
            step_ranks: step.ranks(),
            size_bytes,
            kind,
            number,
            place: ranks
                .first()
                .filter(|_| kind == GroupKind::Rank)
                .and_then(|&rank| step.places.get(rank).copied().flatten()),
            ranks: own.len(),
            mean: mean(&own)?,
            min: own.iter().copied().fold(f64::INFINITY, f64::min),
            max: own.iter().copied().fold(0.0, f64::max),
        })
    };
    members.into_iter().filter_map(group).collect()
}
