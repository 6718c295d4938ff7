//! What could be done about a program's memory.

use std::collections::BTreeSet;

use numalab_record::{ContendedLine, Placed, ProgramMemory, ProgramThread, Region, Sharing};
use serde::{Deserialize, Serialize};

use super::MachineCosts;
use crate::program::told;

/// A region is worth a word when its memory takes this part of the threads' time.
const NAMED_SHARE: f64 = 0.02;
/// Of a node for which others have hardly any bandwidth.
const MOST_WEIGHT: u32 = 16;

/// Something that could be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Candidate {
    /// All threads and their memory on one node.
    Bind {
        /// The node.
        node: u32,
    },
    /// Pages on all nodes in turn.
    Interleave,
    /// Pages on all nodes, on each as many in turn as its weight says.
    WeightedInterleave {
        /// Of each node, by its bandwidth.
        weights: Vec<u32>,
    },
    /// Huge pages wherever there can be.
    HugePages,
    /// Threads on one node after the other in their order, with the pages that they touch first.
    Pack,
    /// Pages are touched first by the threads that use them.
    FirstTouch {
        /// Where they are touched first now.
        line: Option<String>,
        /// The region that gains most.
        region: String,
    },
    /// Each node has its own copy of what is only read.
    Replicate {
        /// Where the region is made.
        line: Option<String>,
        /// The region that gains most.
        region: String,
    },
    /// Data of different threads on different cache lines.
    SeparateLines {
        /// Where they are stored to now.
        lines: Vec<String>,
    },
}

impl Candidate {
    /// Whether it changes the command line, not the program.
    #[must_use]
    pub fn is_by_command(&self) -> bool {
        matches!(
            self,
            Self::Bind { .. }
                | Self::Interleave
                | Self::WeightedInterleave { .. }
                | Self::HugePages
                | Self::Pack
        )
    }

    /// Those that are a matter of the machine alone: pages on its nodes in turn, threads on one after
    /// the other or all on one, and huge pages.
    #[must_use]
    pub fn of_machine(machine: &MachineCosts) -> Vec<Self> {
        let huge = machine.walks.then_some(Self::HugePages);
        if machine.nodes.len() < 2 {
            return huge.into_iter().collect();
        }
        let with_cpus = machine.nodes.iter().zip(&machine.cpus).filter(|(_, cpus)| **cpus > 0);
        let binds = with_cpus.map(|(node, _)| Self::Bind { node: *node });
        let of_all = [Self::Interleave, Self::Pack].into_iter().chain(weighted(machine));
        of_all.chain(binds).chain(huge).collect()
    }

    /// Where it places pages of which the program says nothing, if that is the same for all.
    #[must_use]
    pub fn placed(&self, machine: &MachineCosts) -> Option<Placed> {
        match self {
            Self::Bind { node } => {
                machine.nodes.iter().position(|id| id == node).map(Placed::Bound)
            }
            Self::HugePages => Some(Placed::Huge),
            Self::Pack => Some(Placed::Packed),
            _ => self.turns(machine.nodes.len()).map(Placed::Interleaved),
        }
    }

    /// Positions of nodes on which it lays pages in turn, of so many nodes.
    #[must_use]
    pub fn turns(&self, nodes: usize) -> Option<Vec<usize>> {
        match self {
            Self::Interleave => Some((0..nodes).collect()),
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

/// What could be done about a program on a machine.
#[must_use]
pub fn candidates(program: &ProgramMemory, machine: &MachineCosts) -> Vec<Candidate> {
    let by_pages = match machine.nodes.len() {
        ..2 => [None, None, separate_lines(program)],
        _ => [first_touch(program), replicate(program), separate_lines(program)],
    };
    let of_machine = Candidate::of_machine(machine).into_iter();
    let of_machine = of_machine.filter(|of| *of != Candidate::Pack || can_pack(program, machine));
    of_machine.chain(by_pages.into_iter().flatten()).collect()
}

/// Whether threads can be packed otherwise than by binding them all to one node: there are more of
/// them than the first one has cpus. Only cores that were followed tell what that brings.
fn can_pack(program: &ProgramMemory, machine: &MachineCosts) -> bool {
    let first = machine.cpus.iter().find(|cpus| **cpus > 0);
    let is_followed =
        |of: &ProgramThread| of.elsewhere.iter().any(|of| of.placed == Placed::Packed);
    first.is_some_and(|cpus| program.threads.len() > *cpus)
        && program.threads.iter().any(is_followed)
}

/// Weights of interleaving by bandwidth, where nodes differ in it.
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

fn busy_ns(program: &ProgramMemory) -> f64 {
    program.threads.iter().map(|thread| thread.busy_ns as f64).sum()
}

/// The region most of whose waiting is for pages of a kind, if that is worth a word.
fn region(program: &ProgramMemory, waits_ns: impl Fn(&Region) -> u64) -> Option<&Region> {
    let (ns, worst) =
        program.regions.iter().map(|of| (waits_ns(of), of)).max_by_key(|(ns, _)| *ns)?;
    (ns as f64 >= NAMED_SHARE * busy_ns(program)).then_some(worst)
}

/// How long is waited from other nodes for pages of a region that some predicate picks.
fn away_ns(region: &Region, sharing: impl Fn(Sharing) -> bool) -> u64 {
    let pages = region.pages.iter().filter(|pages| sharing(pages.sharing));
    let waits = pages
        .flat_map(|pages| pages.waits.iter().filter(|waits| waits.cpu_node != pages.memory_node));
    waits.map(|waits| waits.memory_ns).sum()
}

fn first_touch(program: &ProgramMemory) -> Option<Candidate> {
    let misplaced = |region: &Region| {
        let pages = region.pages.iter().filter(|pages| pages.main_node != pages.memory_node);
        let pages = pages.filter(|pages| !pages.bound);
        let waits = pages.flat_map(|pages| &pages.waits);
        waits.map(|waits| waits.memory_ns).sum()
    };
    let region = region(program, misplaced)?;
    let most = region.first_touches.iter().max_by_key(|touches| touches.pages);
    let line = most.and_then(|touches| told(&touches.at)?.line.clone());
    Some(Candidate::FirstTouch { line, region: region.name.clone() })
}

fn replicate(program: &ProgramMemory) -> Option<Candidate> {
    let region = region(program, |region| away_ns(region, |of| of == Sharing::Read))?;
    let nodes: BTreeSet<u32> = region
        .pages
        .iter()
        .filter(|pages| pages.sharing == Sharing::Read)
        .flat_map(|pages| pages.waits.iter().map(|waits| waits.cpu_node))
        .collect();
    let line = told(&region.made_at).and_then(|place| place.line.clone());
    (nodes.len() > 1).then(|| Candidate::Replicate { line, region: region.name.clone() })
}

fn separate_lines(program: &ProgramMemory) -> Option<Candidate> {
    let shared = program.contended_lines.iter().filter(|line| line.is_false_sharing());
    let shared: Vec<&ContendedLine> = shared.collect();
    let waited_ns: u64 = shared.iter().map(|line| line.waited_ns()).sum();
    if (waited_ns as f64) < NAMED_SHARE * busy_ns(program) {
        return None;
    }
    let users = shared.iter().flat_map(|line| &line.threads).filter(|user| user.stores > 0);
    let lines = users.filter_map(|user| told(&user.at)?.line.clone());
    let lines: BTreeSet<String> = lines.collect();
    Some(Candidate::SeparateLines { lines: lines.into_iter().collect() })
}
