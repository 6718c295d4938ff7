//! The tiers of a machine's memory, and the placement of a working set on them.

use numalab_topology::{Cpu, CpuId, Machine, NodeId, NodeSet};

use crate::error::MeasureError;

/// The placement of memory before it is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierPlace {
    /// On this tier, counted from 0, the fastest.
    Tier(usize),
    /// By first touch: on the fast tier while it has room.
    FirstTouch,
}

/// The tiers of a machine's memory, as seen from its cpus.
#[derive(Clone, Debug, PartialEq)]
pub struct Tiers {
    /// The first cpu of the fastest tier.
    pub cpu: CpuId,
    pub fast: NodeSet,
    pub slow: NodeSet,
    /// The nodes of each tier, fastest first.
    pub each: Vec<NodeSet>,
}

impl Tiers {
    /// Returns the tiers of a machine, with room for a working set at `place`: the kernel's, where it
    /// has several. Otherwise (Linux before 6.10 ignores HMAT for tiers) there are two by the
    /// firmware's tables: the nodes with cpus, and those without that have a higher latency.
    ///
    /// # Errors
    /// [`MeasureError`] if all memory is in one tier, or there is no such tier.
    pub fn of(machine: &Machine, place: TierPlace) -> Result<Self, MeasureError> {
        let each = if machine.tiers.len() > 1 {
            machine.tiers_from_cpus().into_iter().map(|tier| tier.nodes.clone()).collect()
        } else {
            by_firmware(machine).map_or_else(Vec::new, |(fast, slow)| vec![fast, slow])
        };
        let (fast, slower) = each.split_first().ok_or(MeasureError::OneTier)?;
        let slow: NodeSet = slower.iter().flat_map(NodeSet::iter).collect();
        if slow.is_empty() {
            return Err(MeasureError::OneTier);
        }
        if let TierPlace::Tier(tier) = place
            && tier >= each.len()
        {
            return Err(MeasureError::NoTier { tier: tier + 1, tiers: each.len() });
        }
        let on_fast = |cpu: &&Cpu| cpu.online && cpu.node.is_some_and(|node| fast.contains(node));
        let cpu = machine.cpus.iter().find(on_fast).map(|cpu| cpu.id).unwrap_or_default();
        Ok(Self { cpu, fast: fast.clone(), slow, each })
    }
}

/// Returns the nodes with cpus, and those without cpus that have a higher latency than all of them.
fn by_firmware(machine: &Machine) -> Option<(NodeSet, NodeSet)> {
    let fast = machine.cpu_nodes();
    let latency = |node: NodeId| machine.best_read(node).0;
    let slowest_fast = fast.iter().filter_map(latency).max()?;
    let without = machine.nodes.iter().map(|node| node.id).filter(|&node| !fast.contains(node));
    let slow: NodeSet =
        without.filter(|&node| latency(node).is_some_and(|ps| ps > slowest_fast)).collect();
    (!slow.is_empty()).then_some((fast, slow))
}

#[cfg(test)]
mod tests {
    use numalab_topology::{EmulatedTier, TierSpec};

    use super::*;

    /// Returns a node with cpus and one without, with these latencies.
    fn machine(fast_ns: u64, slow_ns: u64) -> Machine {
        let tier = |ns: u64| EmulatedTier {
            memory_bytes: 1 << 30,
            latency_ps: ns * 1000,
            bandwidth_mb_per_s: None,
            side_cache_bytes: None,
        };
        TierSpec { tiers: vec![tier(fast_ns), tier(slow_ns)] }.machine(1).unwrap()
    }

    fn tiers(machine: &Machine) -> Option<Vec<String>> {
        let found = Tiers::of(machine, TierPlace::FirstTouch).ok()?;
        assert_eq!(found.fast, found.each[0]);
        Some(found.each.iter().map(ToString::to_string).collect())
    }

    fn nodes(tiers: &[&str]) -> Option<Vec<String>> {
        Some(tiers.iter().map(|&nodes| nodes.to_owned()).collect())
    }

    #[test]
    fn fast_and_slow_are_the_kernels_tiers_or_those_of_the_firmware() {
        let mut machine = machine(100, 300);
        assert_eq!(tiers(&machine), nodes(&["0", "1"]));
        machine.tiers.truncate(1);
        machine.tiers[0].nodes = "0-1".parse().unwrap();
        assert_eq!(tiers(&machine), nodes(&["0", "1"]));
        machine.tiers.clear();
        assert_eq!(tiers(&machine), nodes(&["0", "1"]));
        machine.access.clear();
        assert_eq!(tiers(&machine), None);
    }

    #[test]
    fn three_tiers_are_kept_apart() {
        let mut machine = machine(100, 300);
        assert_eq!(tiers(&machine), nodes(&["0", "1"]));
        let mut third = machine.tiers[1].clone();
        third.id += 10;
        third.nodes = "2".parse().unwrap();
        machine.tiers.push(third);
        assert_eq!(tiers(&machine), nodes(&["0", "1", "2"]));
        let place = |tier| Tiers::of(&machine, TierPlace::Tier(tier)).map(|tiers| tiers.cpu);
        assert_eq!(place(2).ok(), Some(CpuId(0)));
        let refused = place(3).expect_err("there are three").to_string();
        assert_eq!(refused, "no tier 4 on this machine: expected one of its 3");
        machine.tiers.clear();
        assert_eq!(tiers(&machine), nodes(&["0", "1"]), "by the firmware");
    }

    #[test]
    fn memory_without_cpus_that_is_not_slower_is_not_a_slow_tier() {
        let mut machine = machine(100, 300);
        machine.tiers.clear();
        for access in &mut machine.access {
            access.read_latency_ps = Some(100_000);
        }
        assert_eq!(tiers(&machine), None);
    }
}
