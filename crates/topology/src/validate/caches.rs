//! Validation of caches and packages that hypervisors invent.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;

use crate::cache::{Cache, CacheKind};
use crate::finding::Findings;
use crate::id::NodeId;
use crate::id_set::{CpuSet, NodeSet};
use crate::machine::{CpuGroup, Machine};

impl Machine {
    /// Adds one finding for each shape of caches and packages that hardware seldom has, and hypervisors
    /// often show: an L3 of each core, an L1 of several, a cache shared more widely than the next
    /// level, and packages that cross nodes.
    pub fn note_odd_shapes(&self, findings: &mut Findings) {
        self.note_single_l3s(findings);
        self.note_shared_l1(findings);
        self.note_wide_caches(findings);
        self.note_crossing_packages(findings);
    }

    fn note_single_l3s(&self, findings: &mut Findings) {
        let l3s = self.l3_groups();
        let is_single = |group: &CpuGroup| self.cores_of(&group.cpus) == Some(1);
        // Up to four packages of one core each are real.
        let are_many = l3s.len() > 4 || l3s.len() > self.packages().len().max(1);
        if are_many && l3s.iter().all(is_single) {
            let message = format!(
                "each of {} cores has a separate one, as on POWER, or as hypervisors describe a \
                 shared one: `numalab c2c` shows which cpus are near each other",
                l3s.len()
            );
            findings.note("l3-per-core", "L3 groups", message);
        }
    }

    fn note_shared_l1(&self, findings: &mut Findings) {
        let is_l1 = |cache: &&Cache| cache.level == 1 && cache.kind == CacheKind::Data;
        let of_several = |cache: &&Cache| self.cores_of(&cache.cpus).is_some_and(|cores| cores > 1);
        if let Some(cache) = self.caches.iter().filter(is_l1).find(of_several) {
            let message = format!(
                "is shared by cpus {} of several cores, but only threads of a core share one: \
                 the description of the caches is wrong",
                cache.cpus
            );
            findings.warning("l1-shared", "L1d", message);
        }
    }

    fn note_wide_caches(&self, findings: &mut Findings) {
        let holds_data = |cache: &&Cache| cache.kind != CacheKind::Instruction;
        let caches: Vec<&Cache> = self.caches.iter().filter(holds_data).collect();
        let mut by_level: BTreeMap<u8, Vec<&Cache>> = BTreeMap::new();
        for cache in caches {
            by_level.entry(cache.level).or_default().push(cache);
        }
        let levels: Vec<(u8, Vec<&Cache>)> = by_level.into_iter().collect();
        for pair in levels.windows(2) {
            let [(level, inner), (next, outer)] = pair else { continue };
            let first = |cache: &&Cache| cache.cpus.first();
            let of_cpu: BTreeMap<_, &Cache> =
                outer.iter().flat_map(|cache| cache.cpus.iter().map(|cpu| (cpu, *cache))).collect();
            let around = |cache: &&&Cache| {
                let outer = first(cache).and_then(|cpu| of_cpu.get(&cpu));
                outer.is_some_and(|outer| !cache.cpus.is_subset(&outer.cpus))
            };
            if let Some(cache) = inner.iter().find(around) {
                let message = format!(
                    "an L{level} is shared by cpus {}, but they do not share an L{next}: one of \
                     the two lists is wrong",
                    cache.cpus
                );
                findings.warning("cache-wider-than-next", format!("L{level}"), message);
            }
        }
    }

    /// Notes packages that are each on several nodes, which each have several of them.
    fn note_crossing_packages(&self, findings: &mut Findings) {
        let mut packages_of: BTreeMap<NodeId, BTreeSet<u32>> = BTreeMap::new();
        let mut nodes_of: BTreeMap<u32, NodeSet> = BTreeMap::new();
        for cpu in &self.cpus {
            let (Some(node), Some(package)) = (cpu.node, cpu.package) else { continue };
            packages_of.entry(node).or_default().insert(package);
            nodes_of.entry(package).or_default().insert(node);
        }
        let crosses = |node: &&NodeId| {
            let packages = packages_of.get(node).filter(|packages| packages.len() > 1);
            packages.is_some_and(|of| of.iter().any(|package| nodes_of[package].len() > 1))
        };
        let nodes: NodeSet = packages_of.keys().filter(crosses).copied().collect();
        if !nodes.is_empty() {
            let message = format!(
                "nodes {nodes} have cpus of several packages, which also have cpus on other nodes: \
                 a hypervisor may have numbered them apart"
            );
            findings.note("packages-cross-nodes", "packages", message);
        }
    }

    /// Returns the number of cores of these cpus; `None` if that of one is unknown.
    fn cores_of(&self, cpus: &CpuSet) -> Option<usize> {
        let core = |id| self.cpu(id).and_then(|cpu| cpu.core);
        let cores: Option<BTreeSet<u32>> = cpus.iter().map(core).collect();
        cores.map(|cores| cores.len())
    }
}
