//! Another tool's description of a machine, and its comparison with the one read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use numalab_topology::{AccessClass, CacheKind, CpuId, CpuSet, Machine, NodeId};

/// The machine as hwloc prints it. Sets of cpus hold only those that it prints.
#[derive(Debug, Default)]
pub struct Expected {
    pub cpus: CpuSet,
    pub cores: BTreeSet<CpuSet>,
    /// Number, if printed, and cpus.
    pub packages: Vec<(Option<u32>, CpuSet)>,
    pub caches: Vec<ExpectedCache>,
    /// By number: cpus, and the smallest and largest number of bytes that the output can mean.
    pub nodes: BTreeMap<u32, (CpuSet, u64, u64)>,
    pub distances: BTreeMap<(u32, u32), u8>,
    /// Sizes of memory-side caches.
    pub memory_side_caches: Vec<u64>,
    /// By attribute, target node and initiator cpus.
    pub access: BTreeMap<(String, u32, CpuSet), u64>,
}

/// Level, kind, cpus, line size, associativity (0 if not printed), and the smallest and largest
/// number of bytes that the output can mean.
pub type ExpectedCache = (u8, CacheKind, CpuSet, u64, u64, (u64, u64));

/// The outcome of a comparison.
#[derive(Debug, Default)]
pub struct Comparison {
    pub checks: usize,
    pub faults: Vec<String>,
}

impl Comparison {
    /// Counts a fact, and records it if it differs.
    pub fn check<T: PartialEq + Debug>(&mut self, what: &str, found: &T, expected: &T) {
        self.checks += 1;
        if found != expected {
            self.faults.push(format!("{what}: read {found:?}, expected {expected:?}"));
        }
    }
}

/// Parses a mask such as `0x00000001,,0x80000000`, most significant word first.
pub fn mask(text: &str) -> CpuSet {
    let mut cpus = CpuSet::new();
    for (word_index, word) in (0..).zip(text.rsplit(',')) {
        let digits = word.trim_start_matches("0x");
        let word = if digits.is_empty() { 0 } else { u32::from_str_radix(digits, 16).unwrap() };
        let bits = (0..32).filter(|bit| word & (1 << bit) != 0);
        cpus.extend(bits.map(|bit| CpuId(word_index * 32 + bit)));
    }
    cpus
}

impl Expected {
    /// Compares everything that the output shows, and checks that it shows everything.
    pub fn compare(&self, name: &str, machine: &Machine) -> Comparison {
        let mut comparison = Comparison::default();
        let restricted = name.contains("cpusets.console")
            || name.contains("cpusets-xml")
            || name.contains("cgroup2");
        let online = machine.online_cpus();
        if restricted {
            comparison.check(name, &self.cpus.is_subset(&online), &true);
        } else {
            comparison.check(&format!("{name}: cpus"), &online, &self.cpus);
        }
        self.compare_groups(name, machine, &mut comparison);
        if !name.contains("nocaches") && !name.contains("merge") {
            self.compare_caches(name, machine, &mut comparison);
        }
        if !name.contains("buggynuma") {
            self.compare_nodes(name, machine, restricted, &mut comparison);
        }
        self.compare_access(name, machine, &mut comparison);
        comparison
    }

    fn compare_groups(&self, name: &str, machine: &Machine, comparison: &mut Comparison) {
        let shown = |cpus: &CpuSet| cpus.intersection(&self.cpus);
        let cores: BTreeSet<CpuSet> = machine
            .cores()
            .iter()
            .map(|core| shown(&core.cpus))
            .filter(|cpus| !cpus.is_empty())
            .collect();
        comparison.check(&format!("{name}: cores"), &cores, &self.cores);
        self.compare_packages(name, machine, comparison);
    }

    /// Compares their cpus, and their numbers if each is printed and unique.
    fn compare_packages(&self, name: &str, machine: &Machine, comparison: &mut Comparison) {
        let shown = |cpus: &CpuSet| cpus.intersection(&self.cpus);
        let found: BTreeMap<CpuSet, u32> = machine
            .packages()
            .iter()
            .map(|package| (shown(&package.cpus), package.number))
            .filter(|(cpus, _)| !cpus.is_empty())
            .collect();
        let expected = || self.packages.iter().filter(|(_, cpus)| !cpus.is_empty());
        let found_sets: BTreeSet<&CpuSet> = found.keys().collect();
        let expected_sets: BTreeSet<&CpuSet> = expected().map(|(_, cpus)| cpus).collect();
        let what = format!("{name}: packages");
        comparison.check(&what, &found_sets, &expected_sets);
        let numbers: BTreeSet<u32> = expected().filter_map(|(number, _)| *number).collect();
        if numbers.len() == expected().count() {
            for (number, cpus) in expected() {
                let what = format!("{name}: number of the package of cpus {cpus}");
                comparison.check(&what, &found.get(cpus).copied(), number);
            }
        }
    }

    fn compare_caches(&self, name: &str, machine: &Machine, comparison: &mut Comparison) {
        let with_instructions =
            |kind: CacheKind| kind != CacheKind::Instruction || !name.ends_with(".xml");
        let mut found: Vec<ExpectedCache> = machine
            .caches
            .iter()
            .map(|cache| {
                (
                    cache.level,
                    cache.kind,
                    cache.cpus.intersection(&self.cpus),
                    cache.line_bytes.unwrap_or(0).into(),
                    cache.ways.unwrap_or(0).into(),
                    (cache.size_bytes.unwrap_or(0), 0),
                )
            })
            .filter(|cache| !cache.2.is_empty() && with_instructions(cache.1))
            .collect();
        let mut expected: Vec<ExpectedCache> = self
            .caches
            .iter()
            .filter(|cache| !cache.2.is_empty() && with_instructions(cache.1))
            .cloned()
            .collect();
        found.sort();
        expected.sort();
        comparison.check(&format!("{name}: caches"), &found.len(), &expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            let what = format!("{name}: L{} of cpus {}", found.0, found.2);
            let facts = |cache: &ExpectedCache| {
                let (level, kind, cpus, line_bytes, ways, _) = cache.clone();
                (level, kind, cpus, line_bytes, ways)
            };
            comparison.check(&what, &facts(found), &facts(expected));
            let (bytes, (least, most)) = (found.5.0, expected.5);
            let fits = (least..=most).contains(&bytes);
            comparison.check(&format!("{what}: {bytes} bytes fit"), &fits, &true);
        }
        let side_caches: Vec<u64> = machine
            .nodes
            .iter()
            .flat_map(|node| node.memory_side_caches.iter().map(|cache| cache.size_bytes))
            .collect();
        let what = format!("{name}: memory-side caches");
        comparison.check(&what, &side_caches, &self.memory_side_caches);
    }

    fn compare_nodes(
        &self,
        name: &str,
        machine: &Machine,
        restricted: bool,
        comparison: &mut Comparison,
    ) {
        if !restricted {
            let with_memory = machine.nodes.iter().filter(|node| node.memory_bytes > 0);
            let found: Vec<u32> = with_memory.map(|node| node.id.0).collect();
            let expected: Vec<u32> = self.nodes.keys().copied().collect();
            comparison.check(&format!("{name}: nodes"), &found, &expected);
        }
        for (&id, (cpus, least_bytes, most_bytes)) in &self.nodes {
            let node = machine.node(NodeId(id)).unwrap();
            let what = format!("{name}: node {id}");
            if !node.cpus.is_empty() {
                let found = node.cpus.intersection(&self.cpus);
                comparison.check(&what, &found, cpus);
            }
            let bytes = node.memory_bytes;
            let fits = (least_bytes..=most_bytes).contains(&&bytes);
            comparison.check(&format!("{what}: {bytes} bytes fit"), &fits, &true);
        }
        for (&(from, to), &distance) in &self.distances {
            let found = machine.distance(NodeId(from), NodeId(to));
            let what = format!("{name}: distance {from} to {to}");
            comparison.check(&what, &found, &Some(distance));
        }
    }

    fn compare_access(&self, name: &str, machine: &Machine, comparison: &mut Comparison) {
        for ((attribute, target, cpus), &value) in &self.access {
            let found = machine.access.iter().find(|access| {
                let initiator = machine.node(access.initiator).map(|node| &node.cpus);
                access.class == AccessClass::Cpu
                    && access.target == NodeId(*target)
                    && initiator.is_some_and(|initiator| initiator.is_subset(cpus))
            });
            let found = found.and_then(|access| match attribute.as_str() {
                "ReadBandwidth" => access.read_bandwidth_mb_per_s,
                "WriteBandwidth" => access.write_bandwidth_mb_per_s,
                "ReadLatency" => access.read_latency_ps.map(|ps| ps / 1000),
                _ => access.write_latency_ps.map(|ps| ps / 1000),
            });
            let what = format!("{name}: {attribute} of node {target} from cpus {cpus}");
            comparison.check(&what, &found, &Some(value));
        }
    }
}
