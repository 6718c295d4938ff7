//! The machine, in the emulator's form and in that of placements.

use std::collections::BTreeMap;

use numalab_formats::memory_emulator::{CacheScope, Curve, EmulatedMachine};
use numalab_results::advice::{CostsKnown, CpuPlace, KernelNow, MachineCosts, TrialPlace};
use numalab_study::BackendSpec;

/// The machine that the advice is for, and the place of the trials.
pub struct Target {
    /// The emulator's model of the machine.
    pub machine: EmulatedMachine,
    /// The costs that placements need.
    pub costs: MachineCosts,
    pub place: TrialPlace,
    /// The guest to boot, if candidates are tried in one.
    pub guest: Option<BackendSpec>,
}

impl Target {
    /// Returns a machine other than this one, with a guest for the trials if they need one.
    pub fn described(
        machine: EmulatedMachine,
        place: TrialPlace,
        guest: Option<BackendSpec>,
    ) -> Self {
        // Linux enables NUMA balancing by default on several nodes.
        let balancing = guest.is_some().then_some(1);
        let mut costs = costs(&machine, CostsKnown::Described, places(&machine));
        costs.kernel = KernelNow { balancing, huge_always: false };
        let ranges = machine.nodes.iter().map(|node| node.ranges.iter());
        costs.left_bytes =
            ranges.map(|ranges| ranges.map(|(start, end)| end - start).sum()).collect();
        Self { machine, costs, place, guest }
    }
}

pub(crate) fn costs(
    machine: &EmulatedMachine,
    known: CostsKnown,
    places: Vec<CpuPlace>,
) -> MachineCosts {
    let cpus_of = |node: usize| machine.cpus.iter().filter(|of| **of == node).count();
    let levels = machine.caches.iter().filter(|level| level.scope == CacheScope::Group);
    let shared = levels.max_by_key(|level| level.level);
    let far = |rows: &[Vec<f64>]| rows.iter().flatten().copied().fold(0.0, f64::max);
    MachineCosts {
        known,
        nodes: machine.nodes.iter().map(|node| node.id).collect(),
        cpus: (0..machine.nodes.len()).map(cpus_of).collect(),
        has_memory: machine.nodes.iter().map(|node| !node.ranges.is_empty()).collect(),
        left_bytes: Vec::new(),
        places,
        latency_ns: machine.latency_ns.clone(),
        transfer_ns: machine.transfers.as_ref().map(|of| (of.group_ns, far(&of.node_ns))),
        shared_cache_ns: shared.map(|level| level.latency_ns),
        bandwidth_mb_s: bandwidths(machine),
        node_load: machine.node_load.clone().unwrap_or_default(),
        link_load: machine.link_load.clone().unwrap_or_default(),
        walks: machine.tlb.is_some(),
        kernel: KernelNow::default(),
    }
}

/// Returns the CPUs of an emulated machine, each as a separate core.
fn places(machine: &EmulatedMachine) -> Vec<CpuPlace> {
    let groups = machine.l3_groups.as_ref();
    let mut numbers: BTreeMap<usize, u32> = BTreeMap::new();
    let place = |(cpu, (at, node)): (u32, (usize, &usize))| {
        let group = groups.and_then(|groups| groups.get(at)).copied().unwrap_or(*node);
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        let group = *numbers.entry(group).or_insert(next);
        CpuPlace { cpu, node: machine.nodes[*node].id, core: cpu, group }
    };
    (0..).zip(machine.cpus.iter().enumerate()).map(place).collect()
}

/// Returns the maximum bandwidth of each node's memory, from its limit or its curve without writes.
fn bandwidths(machine: &EmulatedMachine) -> Vec<f64> {
    if let Some(limits) = &machine.node_bandwidth_mb_s {
        return limits.clone();
    }
    let most = |curves: &Vec<Curve>| {
        let points = curves.first().and_then(|curve| curve.points.last());
        points.map_or(0.0, |(mb_s, _)| *mb_s)
    };
    machine.node_load.as_ref().map_or_else(Vec::new, |nodes| nodes.iter().map(most).collect())
}

#[cfg(test)]
mod tests {
    use numalab_formats::memory_emulator::{MemoryCosts, describe};
    use numalab_topology::{EmulatedNodes, EmulationSpec, UniformMachine};

    use super::*;

    fn machine() -> EmulatedMachine {
        let whole = UniformMachine::of_packages(2, 4, 1 << 30).build().expect("a machine");
        let spec = EmulationSpec { nodes: EmulatedNodes::Equal(2), distances: None };
        let machine = spec.emulate(&whole).expect("two nodes");
        describe(&machine, &MemoryCosts::usual(None)).expect("a model")
    }

    #[test]
    fn a_described_machine_has_the_costs_that_placements_need() {
        let Target { costs, .. } = Target::described(machine(), TrialPlace::Emulation, None);
        assert_eq!((costs.nodes, costs.cpus), (vec![0, 1], vec![2, 2]));
        assert_eq!(costs.has_memory, [true, true]);
        assert_eq!(costs.left_bytes, [512 << 20, 512 << 20]);
        assert_eq!(costs.kernel.balancing, None, "no kernel runs");
        let guest = Some(BackendSpec::default());
        let target = Target::described(machine(), TrialPlace::Guest, guest);
        assert_eq!(target.costs.kernel.balancing, Some(1), "that of Linux on several nodes");
    }

    #[test]
    fn groups_of_cpus_are_numbered_from_0_and_are_nodes_where_unknown() {
        let grouped = |l3_groups| places(&EmulatedMachine { l3_groups, ..machine() });
        let groups = |places: Vec<CpuPlace>| places.iter().map(|of| of.group).collect::<Vec<_>>();
        assert_eq!(groups(grouped(Some(vec![7, 7, 9, 4]))), [0, 0, 1, 2]);
        assert_eq!(groups(grouped(None)), [0, 0, 1, 1]);
    }

    #[test]
    fn a_node_takes_at_most_what_its_limit_or_its_curve_allows() {
        let limited = EmulatedMachine { node_bandwidth_mb_s: Some(vec![9e3, 5e3]), ..machine() };
        assert_eq!(bandwidths(&limited), [9e3, 5e3]);
        let curve =
            |most| vec![Curve { writes_percent: 0.0, points: vec![(1e3, 100.0), (most, 200.0)] }];
        let curved = EmulatedMachine {
            node_bandwidth_mb_s: None,
            node_load: Some(vec![curve(8e3), Vec::new()]),
            ..machine()
        };
        assert_eq!(bandwidths(&curved), [8e3, 0.0]);
    }
}
