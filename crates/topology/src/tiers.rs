//! Machines with tiers of memory: all cpus are next to the fastest, and slower memory is on nodes
//! without cpus, like CXL memory.

use alloc::vec;
use alloc::vec::Vec;

use crate::access::AccessAttributes;
use crate::distance::{Distances, LOCAL_DISTANCE};
use crate::emulate::{EmulatedNode, EmulatedNodes, EmulationError, EmulationSpec};
use crate::fallback::REMOTE_DISTANCE;
use crate::id::NodeId;
use crate::id_set::NodeSet;
use crate::machine::Machine;
use crate::node::{MemorySideCache, MemoryTier};
use crate::uniform::{UniformError, UniformMachine};

/// The largest number of nodes that the memory emulator supports.
const MOST_TIERS: usize = 16;
/// The bandwidth in HMAT of memory with no given bandwidth: Linux makes no tiers without one.
const USUAL_MB_PER_S: u64 = 20_000;
/// The largest distance that QEMU accepts.
const FARTHEST: u64 = 254;
/// The abstract distance in Linux of memory with the speed of the cpus' own nodes; its granularity
/// defines the tiers (`include/linux/memory-tiers.h`).
const DRAM_DISTANCE: u64 = 576;
const TIER_DISTANCE: u64 = 128;
/// The abstract distance in Linux of memory behind a DAX device without further data
/// (`MEMTIER_DEFAULT_DAX_ADISTANCE`, `drivers/dax/kmem.c`).
const DAX_DISTANCE: u64 = 5 * DRAM_DISTANCE;

/// The requested tiers of memory of a machine, fastest first; the first has all cpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierSpec {
    /// The tiers, with one node each.
    pub tiers: Vec<EmulatedTier>,
}

/// A requested tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmulatedTier {
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Latency of an access in picoseconds.
    pub latency_ps: u64,
    /// Bandwidth limit in 10^6 bytes per second; `None` for no limit.
    pub bandwidth_mb_per_s: Option<u64>,
    /// Size in bytes of a memory-side cache in front of the tier.
    pub side_cache_bytes: Option<u64>,
}

/// Reasons why a machine with these tiers cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TierError {
    /// There are too few or too many.
    #[error("{tiers} tiers: expected 2 to {MOST_TIERS}, each a size and a latency")]
    Count {
        /// Number of tiers.
        tiers: usize,
    },
    /// A tier has no memory, or no latency.
    #[error("tier {tier}: expected memory and a latency of at least 1 ns")]
    Empty {
        /// Position of the tier, from 0.
        tier: usize,
    },
    /// Linux would put two of them into one tier.
    #[error(
        "tier {tier}, {latency_ns} ns at {mb_per_s} MB/s: Linux puts it into the tier of the one \
         before it, or a faster one; a separate tier needs about a quarter of the first tier's \
         latency more, or correspondingly less bandwidth"
    )]
    NotSlower {
        /// Position of the tier, from 0.
        tier: usize,
        /// Latency of the lower tier in whole nanoseconds.
        latency_ns: u64,
        /// The bandwidth reported to the guest.
        mb_per_s: u64,
    },
    /// Linux makes one tier of all CXL memory for which it has no performance data.
    #[error(
        "{tiers} tiers with CXL memory: expected 2, since Linux puts all memory of QEMU's CXL \
         devices into one tier"
    )]
    CxlCount {
        /// Number of tiers.
        tiers: usize,
    },
    /// A machine cannot have this number of cpus.
    #[error(transparent)]
    Cpus(#[from] UniformError),
    /// The sizes do not form a machine.
    #[error(transparent)]
    Nodes(#[from] EmulationError),
}

impl TierSpec {
    /// Returns the machine: node 0 with all cpus, a node without cpus for each further tier, HMAT
    /// latencies and bandwidths, distances in the ratio of latencies, and the tiers that Linux 6.10
    /// and later make of them.
    ///
    /// # Errors
    /// [`TierError`].
    pub fn machine(&self, cpus: u32) -> Result<Machine, TierError> {
        self.check()?;
        let memory_bytes =
            self.tiers.iter().fold(0, |sum: u64, tier| sum.saturating_add(tier.memory_bytes));
        let base = UniformMachine::of_packages(1, cpus, memory_bytes);
        let node = |(index, tier): (usize, &EmulatedTier)| EmulatedNode {
            memory_bytes: tier.memory_bytes,
            cpus: (index > 0).then_some(0),
        };
        let nodes = EmulatedNodes::Listed(self.tiers.iter().enumerate().map(node).collect());
        let spec = EmulationSpec { nodes, distances: Some(self.distances()) };
        let mut machine = spec.emulate(&base.build()?)?;
        for (node, tier) in machine.nodes.iter_mut().zip(&self.tiers) {
            let cache = tier.side_cache_bytes.map(|size_bytes| MemorySideCache {
                level: 1,
                size_bytes,
                line_bytes: Some(64),
                ways: Some(1),
            });
            node.memory_side_caches = cache.into_iter().collect();
        }
        machine.access = (0..).zip(&self.tiers).map(|(to, tier)| self.access(to, tier)).collect();
        machine.tiers = (0..)
            .zip(self.linux_numbers())
            .map(|(node, id)| MemoryTier { id, nodes: NodeSet::from_iter([NodeId(node)]) })
            .collect();
        Ok(machine)
    }

    /// Returns the machine with a CXL device behind the second of two tiers: as
    /// [`TierSpec::machine`], but Linux learns neither its latency nor its distance.
    ///
    /// # Errors
    /// [`TierError`].
    pub fn cxl_machine(&self, cpus: u32) -> Result<Machine, TierError> {
        let mut machine = self.machine(cpus)?;
        let ([_, node], [_, tier]) = (&mut machine.nodes[..], &mut machine.tiers[..]) else {
            return Err(TierError::CxlCount { tiers: self.tiers.len() });
        };
        node.cxl = true;
        tier.id = u32::try_from(DAX_DISTANCE / TIER_DISTANCE).unwrap_or(u32::MAX);
        machine.distances = Distances::uniform(self.tiers.len(), REMOTE_DISTANCE);
        Ok(machine)
    }

    /// Returns the bandwidth limit of each tier's memory in 10^6 bytes per second, 0 for none;
    /// `None` if no tier has a limit.
    pub fn limits_mb_per_s(&self) -> Option<Vec<u64>> {
        let limits = self.tiers.iter().map(|tier| tier.bandwidth_mb_per_s);
        let limited = limits.clone().any(|limit| limit.is_some());
        limited.then(|| limits.map(Option::unwrap_or_default).collect())
    }

    fn check(&self) -> Result<(), TierError> {
        let tiers = self.tiers.len();
        if !(2..=MOST_TIERS).contains(&tiers) {
            return Err(TierError::Count { tiers });
        }
        let is_empty = |tier: &EmulatedTier| tier.memory_bytes == 0 || tier.latency_ps < 1000;
        if let Some(tier) = self.tiers.iter().position(is_empty) {
            return Err(TierError::Empty { tier });
        }
        let numbers = self.linux_numbers();
        match numbers.windows(2).position(|pair| pair[1] <= pair[0]) {
            None => Ok(()),
            Some(before) => {
                let tier = &self.tiers[before + 1];
                Err(TierError::NotSlower {
                    tier: before + 1,
                    latency_ns: tier.latency_ps / 1000,
                    mb_per_s: self.reported_mb_per_s(tier),
                })
            }
        }
    }

    /// Returns the bandwidth that the guest sees for a tier; a tier without a limit has the highest
    /// of all.
    fn reported_mb_per_s(&self, tier: &EmulatedTier) -> u64 {
        let best = self.tiers.iter().filter_map(|tier| tier.bandwidth_mb_per_s).max();
        tier.bandwidth_mb_per_s.or(best).unwrap_or(USUAL_MB_PER_S)
    }

    fn access(&self, to: u32, tier: &EmulatedTier) -> AccessAttributes {
        let (latency, bandwidth) = (Some(tier.latency_ps), Some(self.reported_mb_per_s(tier)));
        AccessAttributes {
            initiator: NodeId(0),
            target: NodeId(to),
            read_latency_ps: latency,
            write_latency_ps: latency,
            read_bandwidth_mb_per_s: bandwidth,
            write_bandwidth_mb_per_s: bandwidth,
            ..AccessAttributes::default()
        }
    }

    /// Returns the numbers of the tiers that Linux makes (`mt_perf_to_adistance` of
    /// `mm/memory-tiers.c`, with its order of integer divisions).
    fn linux_numbers(&self) -> Vec<u32> {
        let figures = |tier: &EmulatedTier| {
            (2 * tier.latency_ps.div_ceil(1000), 2 * self.reported_mb_per_s(tier).max(1))
        };
        let Some((dram_ns, dram_mb)) = self.tiers.first().map(figures) else { return vec![] };
        let number = |tier| {
            let (ns, mb) = figures(tier);
            let distance = DRAM_DISTANCE.saturating_mul(ns) / dram_ns.max(1);
            let number = distance.saturating_mul(dram_mb) / mb / TIER_DISTANCE;
            u32::try_from(number).unwrap_or(u32::MAX)
        };
        self.tiers.iter().map(number).collect()
    }

    fn distances(&self) -> Distances {
        let mut distances = Distances::uniform(self.tiers.len(), LOCAL_DISTANCE);
        let first_ps = self.tiers.first().map_or(1, |tier| tier.latency_ps);
        let distance = |tier: &EmulatedTier| {
            let scaled = tier.latency_ps.saturating_mul(10) / first_ps;
            u8::try_from(scaled.clamp(11, FARTHEST)).unwrap_or(u8::MAX)
        };
        for (from, source) in self.tiers.iter().enumerate() {
            for (to, target) in self.tiers.iter().enumerate().filter(|&(to, _)| to != from) {
                distances.set(from, to, distance(source).max(distance(target)));
            }
        }
        distances
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::CpuId;
    use crate::id_set::CpuSet;

    fn tier(mib: u64, ns: u64, bandwidth_mb_per_s: Option<u64>) -> EmulatedTier {
        let (memory_bytes, latency_ps) = (mib << 20, ns * 1000);
        EmulatedTier { memory_bytes, latency_ps, bandwidth_mb_per_s, side_cache_bytes: None }
    }

    fn spec<const N: usize>(tiers: [EmulatedTier; N]) -> TierSpec {
        TierSpec { tiers: tiers.to_vec() }
    }

    #[test]
    fn a_cxl_device_is_in_linuxs_tier_for_memory_without_performance_data() {
        let machine = spec([tier(256, 100, None), tier(512, 300, None)]).cxl_machine(1).unwrap();
        let cxl: Vec<bool> = machine.nodes.iter().map(|node| node.cxl).collect();
        assert_eq!(cxl, [false, true]);
        assert_eq!(machine.tiers.iter().map(|tier| tier.id).collect::<Vec<_>>(), [4, 22]);
        assert_eq!(machine.distances.get(0, 1), Some(20));
        let three = spec([tier(256, 100, None), tier(256, 200, None), tier(256, 400, None)]);
        assert_eq!(three.cxl_machine(1), Err(TierError::CxlCount { tiers: 3 }));
    }

    #[test]
    fn slower_tiers_are_nodes_without_cpus_at_distances_in_the_ratio_of_latencies() {
        let cached = EmulatedTier { side_cache_bytes: Some(64 << 20), ..tier(512, 300, None) };
        let machine = spec([tier(256, 100, None), cached]).machine(2).unwrap();
        assert_eq!(machine.nodes[0].cpus, CpuSet::from_iter([CpuId(0), CpuId(1)]));
        assert!(machine.nodes[1].cpus.is_empty());
        assert_eq!(machine.nodes[1].memory_bytes, 512 << 20);
        assert_eq!(machine.nodes[1].memory_side_caches[0].size_bytes, 64 << 20);
        assert_eq!(machine.distances.get(0, 1), Some(30));
        let slow = &machine.access[1];
        assert_eq!((slow.initiator, slow.target), (NodeId(0), NodeId(1)));
        assert_eq!(slow.write_latency_ps, Some(300_000));
        assert_eq!(slow.read_bandwidth_mb_per_s, Some(USUAL_MB_PER_S));
        assert!(machine.validate().is_empty(), "{:?}", machine.validate());
    }

    #[test]
    fn tiers_have_the_numbers_that_linux_6_12_gives_them() {
        // Read in guests: 100 and 300 ns at equal bandwidths are tiers 4 and 13.
        let numbers = |spec: TierSpec| {
            let machine = spec.machine(1).unwrap();
            machine.tiers.iter().map(|tier| tier.id).collect::<Vec<_>>()
        };
        assert_eq!(numbers(spec([tier(256, 100, None), tier(256, 300, None)])), [4, 13]);
        let limited = spec([tier(256, 100, Some(20_000)), tier(256, 300, Some(10_000))]);
        assert_eq!(numbers(limited.clone()), [4, 27]);
        assert_eq!(limited.limits_mb_per_s(), Some(vec![20_000, 10_000]));
    }

    #[test]
    fn a_tier_without_a_limit_is_reported_with_the_best_bandwidth() {
        let spec = spec([tier(256, 100, None), tier(256, 300, Some(10_000))]);
        let machine = spec.machine(1).unwrap();
        assert_eq!(machine.access[0].read_bandwidth_mb_per_s, Some(10_000));
        assert_eq!(spec.limits_mb_per_s(), Some(vec![0, 10_000]));
    }

    #[test]
    fn tiers_that_linux_would_not_distinguish_and_empty_tiers_are_refused() {
        let error = |spec: TierSpec| spec.machine(1).unwrap_err();
        assert_eq!(error(spec([tier(256, 100, None)])), TierError::Count { tiers: 1 });
        let many = TierSpec { tiers: (1..=17).map(|i| tier(64, i * 100, None)).collect() };
        assert_eq!(error(many), TierError::Count { tiers: 17 });
        let close = spec([tier(256, 100, None), tier(256, 105, None)]);
        assert!(matches!(error(close), TierError::NotSlower { tier: 1, latency_ns: 105, .. }));
        let faster = spec([tier(256, 100, None), tier(256, 50, None)]);
        assert!(matches!(error(faster), TierError::NotSlower { tier: 1, .. }));
        let empty = spec([tier(256, 100, None), tier(0, 300, None)]);
        assert_eq!(error(empty), TierError::Empty { tier: 1 });
    }
}
