//! Sets of cpus for spreading or packing threads over cores, SMT siblings and L3 groups.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::machine::{CpuPlace, MachineCosts};

/// A rule that chooses cpus for threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// One cpu per core, so that no two threads share a core.
    Cores,
    /// All cpus of as few cores as the threads need.
    Siblings,
    /// The same number of cores in each L3 group, so that each thread has more cache.
    Groups,
    /// The fewest L3 groups that hold the threads, so that they share a cache.
    OneGroup,
}

impl Spread {
    /// Returns the OpenMP settings for places and thread binding.
    pub fn openmp(self) -> &'static str {
        match self {
            Self::Cores => "OMP_PLACES=cores OMP_PROC_BIND=spread",
            Self::Siblings => "OMP_PLACES=threads OMP_PROC_BIND=close",
            Self::Groups => "OMP_PLACES=ll_caches OMP_PROC_BIND=spread",
            Self::OneGroup => "OMP_PLACES=cores OMP_PROC_BIND=close",
        }
    }

    /// Returns `true` if the rule differs in its use of SMT siblings.
    pub fn is_of_siblings(self) -> bool {
        matches!(self, Self::Cores | Self::Siblings)
    }
}

/// Returns the machine's sets for this number of threads; if the number is unknown, only one cpu
/// per core.
pub(super) fn spreads(machine: &MachineCosts, threads: Option<usize>) -> Vec<(Spread, Vec<u32>)> {
    let cores = Cores::of(machine);
    let width = machine.places.len().div_ceil(cores.all.len().max(1));
    let mut found: Vec<(Spread, Vec<u32>)> = Vec::new();
    if machine.has_siblings() && threads.is_none_or(|threads| threads <= cores.all.len()) {
        found.push((Spread::Cores, cores.all.iter().map(|core| core[0]).collect()));
    }
    if let Some(threads) = threads.filter(|threads| (2..cores.all.len()).contains(threads)) {
        if machine.has_siblings() {
            let taken = cores.all.iter().take(threads.div_ceil(width)).flatten();
            found.push((Spread::Siblings, taken.copied().collect()));
        }
        found.extend(cores.by_group(machine, threads));
    }
    // A set of all cpus would change nothing.
    found.retain(|(_, cpus)| cpus.len() < machine.places.len());
    found.iter_mut().for_each(|(_, cpus)| cpus.sort_unstable());
    found
}

/// Cores with their cpus, by node and L3 group.
struct Cores {
    all: Vec<Vec<u32>>,
    groups: BTreeMap<(u32, u32), Vec<Vec<u32>>>,
}

impl Cores {
    fn of(machine: &MachineCosts) -> Self {
        let mut cores: BTreeMap<(u32, u32, u32), Vec<u32>> = BTreeMap::new();
        for CpuPlace { cpu, node, core, group } in &machine.places {
            cores.entry((*node, *group, *core)).or_default().push(*cpu);
        }
        let mut groups: BTreeMap<(u32, u32), Vec<Vec<u32>>> = BTreeMap::new();
        for ((node, group, _), cpus) in &cores {
            groups.entry((*node, *group)).or_default().push(cpus.clone());
        }
        Self { all: cores.into_values().collect(), groups }
    }

    /// Returns sets over all L3 groups and over few of them, if a node has several; otherwise
    /// groups are the same as nodes.
    fn by_group(&self, machine: &MachineCosts, threads: usize) -> Vec<(Spread, Vec<u32>)> {
        let nodes = machine.cpus.iter().filter(|cpus| **cpus > 0).count();
        if self.groups.len() <= nodes {
            return Vec::new();
        }
        let first = |cores: &[Vec<u32>], most: usize| -> Vec<u32> {
            cores.iter().take(most).map(|core| core[0]).collect()
        };
        let each = threads.div_ceil(self.groups.len());
        let spread = self.groups.values().flat_map(|cores| first(cores, each)).collect();
        let mut packed = Vec::new();
        for cores in self.groups.values() {
            if packed.len() < threads {
                packed.extend(first(cores, usize::MAX));
            }
        }
        let all = self.groups.values().map(Vec::len).sum::<usize>();
        let of_few = (packed.len() < all).then_some((Spread::OneGroup, packed));
        [Some((Spread::Groups, spread)), of_few].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a node of two L3 groups with four cores of `width` cpus each; siblings are numbered
    /// last.
    fn machine(width: u32) -> MachineCosts {
        let place = |cpu: u32| CpuPlace { cpu, node: 0, core: cpu % 8, group: cpu % 8 / 4 };
        let places: Vec<CpuPlace> = (0..8 * width).map(place).collect();
        MachineCosts { nodes: vec![0], cpus: vec![places.len()], places, ..MachineCosts::default() }
    }

    #[test]
    fn threads_are_spread_over_all_nodes_and_packed_into_the_fewest() {
        let expected = [
            (Spread::Cores, vec![0, 1, 2, 3, 4, 5, 6, 7]),
            (Spread::Siblings, vec![0, 1, 8, 9]),
            (Spread::Groups, vec![0, 1, 4, 5]),
            (Spread::OneGroup, vec![0, 1, 2, 3]),
        ];
        assert_eq!(spreads(&machine(2), Some(4)), expected);
        assert_eq!(
            spreads(&machine(1), Some(3)),
            [(Spread::Groups, vec![0, 1, 4, 5]), (Spread::OneGroup, vec![0, 1, 2, 3]),]
        );
    }

    #[test]
    fn absent_or_indifferent_parts_are_left_out() {
        assert_eq!(spreads(&machine(1), Some(8)), [], "every core has its thread");
        assert_eq!(spreads(&machine(1), Some(1)), []);
        assert_eq!(spreads(&machine(1), None), []);
        assert_eq!(spreads(&machine(2), None).len(), 1, "siblings are left out for any number");
        assert_eq!(spreads(&machine(2), Some(12)), [], "cores are not enough");
        let mut one_group = machine(1);
        one_group.places.iter_mut().for_each(|place| place.group = 0);
        assert_eq!(spreads(&one_group, Some(4)), [], "it is the node's");
        assert_eq!(spreads(&machine(1), Some(7)), [], "all CPUs are what it has as it is");
        let six = spreads(&machine(1), Some(6));
        assert!(six.iter().all(|(spread, _)| *spread != Spread::OneGroup), "{six:?}");
    }
}
