//! Candidate changes to a program's memory placement.

use numalab_record::{Placed, ProgramMemory};
use numalab_topology::{CpuId, MemoryPolicy, NodeId, NodeSet, Placement};
use serde::{Deserialize, Serialize};

use super::machine::MachineCosts;
use super::spread::Spread;

/// A candidate change of placement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Candidate {
    /// Run all threads, and place their memory, on one node.
    Bind { node: u32 },
    /// Interleave pages over these nodes.
    Interleave {
        /// The nodes to interleave over.
        nodes: Vec<u32>,
    },
    /// Interleave pages over all nodes in proportion to weights.
    WeightedInterleave {
        /// Each node's weight, by its bandwidth.
        weights: Vec<u32>,
    },
    /// Keep memory off nodes without cpus, which are slower.
    FastMemory {
        /// The nodes with cpus.
        nodes: Vec<u32>,
    },
    /// Use huge pages wherever possible.
    HugePages,
    /// Fill one node with threads after another, in thread order, together with the pages that they
    /// touch first.
    Pack,
    /// Restrict threads to a set of cpus.
    Cpus {
        /// The rule that chose the cpus.
        spread: Spread,
        /// The cpus to run on.
        cpus: Vec<u32>,
    },
    /// Switch the kernel's NUMA balancing on or off.
    Balancing {
        /// The value of `kernel.numa_balancing`: 0, 1, or 2 (promote hot pages to the fast tier).
        mode: u8,
    },
    /// Bind the pages of one region only.
    BindRegion {
        /// The region's name.
        region: String,
        /// The region's first address in the profiled run.
        address: u64,
        /// The source line that allocates it.
        line: String,
        /// The nodes to bind to; pages are interleaved over several.
        nodes: Vec<u32>,
    },
    /// Have a file's pages read into the page cache again, on these nodes.
    PlaceFile {
        /// The file's path.
        path: String,
        /// The first address of its mapping in the profiled run.
        address: u64,
        /// The nodes to read it to; pages are interleaved over several.
        nodes: Vec<u32>,
    },
    /// Have pages touched first by the threads that use them.
    FirstTouch {
        /// The source line that touches them first now.
        line: Option<String>,
        /// The region that gains most.
        region: String,
    },
    /// Give each node its own copy of read-only data.
    Replicate {
        /// The source line that allocates the region.
        line: Option<String>,
        /// The region that gains most.
        region: String,
    },
    /// Put data of different threads on different cache lines.
    SeparateLines {
        /// The source lines that store to it now.
        lines: Vec<String>,
    },
    /// Change how `srun` places ranks.
    Ranks {
        /// The options for `srun`.
        options: Vec<String>,
    },
}

impl Candidate {
    /// Returns `true` if it changes how the program is run, rather than the program.
    pub fn is_by_command(&self) -> bool {
        match self {
            Self::BindRegion { .. }
            | Self::FirstTouch { .. }
            | Self::Replicate { .. }
            | Self::SeparateLines { .. } => false,
            Self::Bind { .. }
            | Self::Interleave { .. }
            | Self::WeightedInterleave { .. }
            | Self::FastMemory { .. }
            | Self::HugePages
            | Self::Pack
            | Self::Cpus { .. }
            | Self::Balancing { .. }
            | Self::PlaceFile { .. }
            | Self::Ranks { .. } => true,
        }
    }

    /// Returns the candidates that follow from the machine alone and that the emulator can simulate
    /// in any run: interleaving, packing, binding to one node, and huge pages.
    pub fn of_machine(machine: &MachineCosts) -> Vec<Self> {
        let huge = (machine.walks && !machine.kernel.huge_always).then_some(Self::HugePages);
        let [near, all] = [false, true].map(|with_slow| machine.memory_nodes(with_slow));
        let turns = [near.clone(), all.clone()].into_iter().filter(|nodes| nodes.len() > 1);
        let mut turns: Vec<Self> = turns.map(|nodes| Self::Interleave { nodes }).collect();
        turns.dedup();
        let with_cpus = machine.cpus.iter().filter(|cpus| **cpus > 0).count();
        let pack = (with_cpus > 1).then_some(Self::Pack);
        let binds = near.into_iter().filter(|_| all.len() > 1 || with_cpus > 1);
        let binds = binds.map(|node| Self::Bind { node });
        turns.into_iter().chain(weighted(machine)).chain(binds).chain(pack).chain(huge).collect()
    }

    /// Returns the placement if the candidate changes nothing else.
    pub fn placement(&self) -> Option<Placement> {
        let nodes = |nodes: &[u32]| nodes.iter().copied().map(NodeId).collect::<NodeSet>();
        match self {
            Self::Bind { node } => {
                let bound = MemoryPolicy::bound_to(NodeId(*node));
                Some(Placement { nodes: Some(bound.nodes()), ..bound.into() })
            }
            Self::Interleave { nodes: over } => Some(MemoryPolicy::Interleave(nodes(over)).into()),
            Self::FastMemory { nodes: of } => Some(MemoryPolicy::Bind(nodes(of)).into()),
            Self::Cpus { cpus, .. } => {
                let cpus = cpus.iter().copied().map(CpuId).collect();
                Some(Placement { cpus: Some(cpus), ..Placement::default() })
            }
            _ => None,
        }
    }

    /// Returns where the candidate places pages that the program does not bind, if that is the same
    /// for all.
    pub fn placed(&self, machine: &MachineCosts) -> Option<Placed> {
        match self {
            Self::Bind { node } => machine.position(*node).map(Placed::Bound),
            Self::HugePages => Some(Placed::Huge),
            Self::Pack => Some(Placed::Packed),
            Self::FirstTouch { .. } => Some(Placed::Users),
            _ => self.turns(machine).map(Placed::Interleaved),
        }
    }

    /// Returns the node on which a thread that ran on `cpu_node` would run under the candidate.
    pub(super) fn home(&self, thread: u32, cpu_node: u32, machine: &MachineCosts) -> u32 {
        match self {
            Self::Bind { node } => *node,
            Self::Pack => machine.packed_node(thread).unwrap_or(cpu_node),
            _ => cpu_node,
        }
    }

    /// Returns `true` if any thread of the program would run on another node.
    pub(super) fn moves_threads(&self, program: &ProgramMemory, machine: &MachineCosts) -> bool {
        let threads = &mut program.threads.iter();
        threads.any(|of| self.home(of.thread, of.cpu_node, machine) != of.cpu_node)
    }

    /// Returns the number of cpus that threads would have.
    pub(super) fn cpus(&self, machine: &MachineCosts) -> f64 {
        let Self::Bind { node } = self else { return machine.all_cpus() };
        machine.position(*node).and_then(|at| machine.cpus.get(at)).copied().unwrap_or(1).max(1)
            as f64
    }

    /// Returns the positions of the nodes over which the candidate interleaves all pages.
    pub fn turns(&self, machine: &MachineCosts) -> Option<Vec<usize>> {
        match self {
            Self::Interleave { nodes } => {
                Some(nodes.iter().filter_map(|node| machine.position(*node)).collect())
            }
            Self::WeightedInterleave { weights } => {
                let turns = weights.iter().enumerate().flat_map(|(at, weight)| {
                    std::iter::repeat_n(at, usize::try_from(*weight).unwrap_or(1))
                });
                Some(turns.collect())
            }
            _ => None,
        }
    }
}

/// Largest weight, for nodes with far more bandwidth than the others.
const MOST_WEIGHT: u32 = 16;

/// Returns interleaving weighted by bandwidth, if nodes differ in it.
fn weighted(machine: &MachineCosts) -> Option<Candidate> {
    let least =
        machine.bandwidth_mb_s.iter().copied().reduce(f64::min).filter(|mb_s| *mb_s > 0.0)?;
    let beside = |weight: u32, mb_s: f64| (f64::from(weight) - mb_s / least).abs();
    let weight = |mb_s: f64| {
        (1..=MOST_WEIGHT).min_by(|one, other| beside(*one, mb_s).total_cmp(&beside(*other, mb_s)))
    };
    let weights: Vec<u32> =
        machine.bandwidth_mb_s.iter().filter_map(|mb_s| weight(*mb_s)).collect();
    let differ = weights.iter().any(|weight| *weight != weights[0]);
    differ.then_some(Candidate::WeightedInterleave { weights })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cpus: &[usize], memory: &[bool]) -> MachineCosts {
        MachineCosts {
            nodes: (0..).take(cpus.len()).collect(),
            cpus: cpus.to_vec(),
            has_memory: memory.to_vec(),
            walks: true,
            ..MachineCosts::default()
        }
    }

    fn interleave(nodes: &[u32]) -> Candidate {
        Candidate::Interleave { nodes: nodes.to_vec() }
    }

    #[test]
    fn a_machine_has_the_candidates_that_its_nodes_allow() {
        let of = |cpus: &[usize], memory: &[bool]| Candidate::of_machine(&machine(cpus, memory));
        assert_eq!(of(&[4], &[true]), [Candidate::HugePages]);
        let binds = |nodes: &[u32]| {
            nodes.iter().copied().map(|node| Candidate::Bind { node }).collect::<Vec<_>>()
        };
        let mut expected = vec![interleave(&[0, 1])];
        expected.extend(binds(&[0, 1]));
        expected.extend([Candidate::Pack, Candidate::HugePages]);
        assert_eq!(of(&[2, 2], &[true, true]), expected);
        let tiered = of(&[2, 2, 0], &[true, true, true]);
        assert_eq!(tiered[..2], [interleave(&[0, 1]), interleave(&[0, 1, 2])]);
        assert!(!tiered.contains(&Candidate::Bind { node: 2 }), "{tiered:?}");
        let one_fast = of(&[2, 0], &[true, true]);
        assert_eq!(one_fast[..2], [interleave(&[0, 1]), Candidate::Bind { node: 0 }]);
        let always = MachineCosts {
            kernel: super::super::KernelNow { huge_always: true, ..Default::default() },
            ..machine(&[4], &[true])
        };
        assert_eq!(Candidate::of_machine(&always), [], "it has huge pages already");
    }
}
