//! Reads cpus from `/proc/cpuinfo`, where there is nothing else: sandboxes without `/sys`, and
//! support bundles.

use std::collections::BTreeMap;

use numalab_topology::{Cpu, CpuId, CpuSet, MAX_ID};

use super::cpus::CPU_DIRECTORY;
use super::reader::{NODE_DIRECTORY, Reader};

const FILE: &str = "proc/cpuinfo";

/// The file's entry of a cpu.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuinfoEntry {
    package: Option<u32>,
    core: Option<u32>,
    /// Number of cpus in the cpu's package.
    siblings: Option<u32>,
    /// Number of cores in the cpu's package.
    cores: Option<u32>,
}

impl CpuinfoEntry {
    /// Returns a number for the cpu's core that is unique in the machine.
    fn core(&self) -> Option<(u32, u32)> {
        Some((self.package?, self.core?))
    }

    /// Returns the maximum number of threads of the cpu's core.
    fn most_threads(&self) -> u32 {
        match (self.siblings, self.cores) {
            (Some(siblings), Some(cores)) => (siblings / cores.max(1)).max(1),
            _ => u32::MAX,
        }
    }
}

/// Reads the cpus of `/proc/cpuinfo`, which lists online ones only. If it lacks some that this
/// process may run on (`usable`), only these are used. The lack of other information is reported as
/// a finding.
pub(super) fn read(reader: &mut Reader<'_>, usable: Option<&CpuSet>) -> Vec<Cpu> {
    let entries = parse(&reader.document(FILE).unwrap_or_default());
    let known: CpuSet = entries.keys().copied().collect();
    let usable = usable.cloned().unwrap_or_default();
    if known.is_empty() || !usable.is_subset(&known) {
        if !usable.is_empty() {
            let message = format!(
                "no cpu directories, and {FILE} has cpus `{known}`: using cpus {usable}, on which \
                 this process may run; packages, cores, caches and nodes are unknown"
            );
            reader.warn("no-cpu-directories", CPU_DIRECTORY, message);
        }
        return usable.iter().map(|id| Cpu { id, online: true, ..Cpu::default() }).collect();
    }
    let cpus = cpus(&entries);
    let has_cores = cpus.iter().any(|cpu| cpu.core.is_some() || cpu.package.is_some());
    let lists_nodes = !reader.root.numbered(NODE_DIRECTORY, "node").is_empty();
    let found = if has_cores { "cpus, cores and packages" } else { "cpus" };
    let unknown = match (has_cores, lists_nodes) {
        (true, true) => "caches",
        (true, false) => "caches and nodes",
        (false, true) => "cores, packages and caches",
        (false, false) => "cores, packages, caches and nodes",
    };
    let message = format!("no cpu directories: {found} are from {FILE}; {unknown} are unknown");
    reader.warn("no-cpu-directories", CPU_DIRECTORY, message);
    if let Some((package, found, siblings)) = part_of_package(&entries) {
        let message = format!(
            "package {package} has {found} of its {siblings} cpus (`siblings`): the file is cut, or \
             a container shows a part, so that others may be missing"
        );
        reader.warn("cpus-missing", FILE, message);
    }
    cpus
}

/// Returns the first package with fewer cpus than it says, with both numbers.
fn part_of_package(entries: &BTreeMap<CpuId, CpuinfoEntry>) -> Option<(u32, u32, u32)> {
    let mut packages: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for entry in entries.values() {
        let Some(package) = entry.package else { continue };
        let (found, siblings) = packages.entry(package).or_default();
        *found += 1;
        *siblings = entry.siblings.unwrap_or(0).max(*siblings);
    }
    let is_part = |(_, (found, siblings)): &(&u32, &(u32, u32))| found < siblings;
    packages.iter().find(is_part).map(|(package, (found, siblings))| (*package, *found, *siblings))
}

/// Parses the entries by cpu. They begin with `processor : 0`; on s390 with `cpu number : 0`, after a
/// line `processor 0: version = FF, ...` for each cpu. LoongArch and MIPS have shorter names.
fn parse(text: &str) -> BTreeMap<CpuId, CpuinfoEntry> {
    let mut entries: BTreeMap<CpuId, CpuinfoEntry> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let (name, value) = (name.trim(), value.trim().parse::<u32>().ok());
        let numbered = name.strip_prefix("processor ").and_then(|number| number.parse().ok());
        if ["processor", "cpu number"].contains(&name) || numbered.is_some() {
            current = numbered.or(value).filter(|&number| number <= MAX_ID).map(CpuId);
        }
        let Some(id) = current else { continue };
        let entry = entries.entry(id).or_default();
        match name {
            "physical id" | "package" => entry.package = value,
            "core id" | "core" => entry.core = value,
            "siblings" => entry.siblings = value,
            "cpu cores" => entry.cores = value,
            _ => {}
        }
    }
    entries
}

/// Returns the cpus with dense indices of their cores. Some virtual machines give all cores the
/// same number: then cores are unknown.
fn cpus(entries: &BTreeMap<CpuId, CpuinfoEntry>) -> Vec<Cpu> {
    let mut of_core: BTreeMap<(u32, u32), Vec<CpuId>> = BTreeMap::new();
    for (&id, entry) in entries {
        if let Some(core) = entry.core() {
            of_core.entry(core).or_default().push(id);
        }
    }
    let fits = |entry: &CpuinfoEntry| {
        let threads = entry.core().and_then(|core| of_core.get(&core)).map_or(0, Vec::len);
        threads <= usize::try_from(entry.most_threads()).unwrap_or(usize::MAX)
    };
    let is_believable = entries.values().all(fits);
    let mut cores: Vec<&Vec<CpuId>> = of_core.values().filter(|_| is_believable).collect();
    cores.sort();
    let mut place: BTreeMap<CpuId, (u32, u32)> = BTreeMap::new();
    for (core, threads) in (0..).zip(cores) {
        place.extend((0..).zip(threads).map(|(thread, &id)| (id, (core, thread))));
    }
    let cpu = |(&id, entry): (&CpuId, &CpuinfoEntry)| {
        let place = place.get(&id);
        Cpu {
            id,
            online: true,
            package: entry.package,
            core: place.map(|place| place.0),
            thread: place.map_or(0, |place| place.1),
            ..Cpu::default()
        }
    };
    entries.iter().map(cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(text: &str) -> Vec<(u32, Option<u32>, Option<u32>, u32)> {
        let shape = |cpu: &Cpu| (cpu.id.0, cpu.package, cpu.core, cpu.thread);
        cpus(&parse(text)).iter().map(shape).collect()
    }

    fn entry(cpu: u32, package: u32, core: u32, siblings: u32, cores: u32) -> String {
        format!(
            "processor\t: {cpu}\nmodel name\t: A: B\nphysical id\t: {package}\n\
             siblings\t: {siblings}\ncore id\t\t: {core}\ncpu cores\t: {cores}\n\n"
        )
    }

    #[test]
    fn cores_are_distinguished_by_their_packages() {
        let text = [(0, 0, 0), (1, 1, 0), (2, 0, 0), (5, 1, 0)]
            .map(|(cpu, package, core)| entry(cpu, package, core, 2, 1))
            .concat();
        let expected = [
            (0, Some(0), Some(0), 0),
            (1, Some(1), Some(1), 0),
            (2, Some(0), Some(0), 1),
            (5, Some(1), Some(1), 1),
        ];
        assert_eq!(shapes(&text), expected);
    }

    #[test]
    fn cores_that_all_have_the_same_number_are_unknown() {
        let text = entry(0, 0, 0, 1, 1) + &entry(1, 0, 0, 1, 1);
        assert_eq!(shapes(&text), [(0, Some(0), None, 0), (1, Some(0), None, 0)]);
    }

    #[test]
    fn other_architectures_list_at_least_their_cpus() {
        let arm = "processor\t: 0\nBogoMIPS\t: 50.00\n\nprocessor\t: 3\nBogoMIPS\t: 50.00\n";
        assert_eq!(shapes(arm), [(0, None, None, 0), (3, None, None, 0)]);
        let s390 = "vendor_id       : IBM/S390\n# processors    : 2\n\
                    processor 0: version = FF,  identification = 012345,  machine = 3931\n\
                    processor 1: version = FF,  identification = 012345,  machine = 3931\n";
        assert_eq!(shapes(s390).len(), 2);
        let numbered = |cpu| format!("\ncpu number : {cpu}\nphysical id : 1\ncore id : {cpu}\n");
        let s390 = format!("{s390}{}{}", numbered(0), numbered(1));
        assert_eq!(shapes(&s390), [(0, Some(1), Some(0), 0), (1, Some(1), Some(1), 0)]);
        let loongarch = "processor\t: 0\npackage\t: 0\ncore\t: 3\n\nprocessor\t: 1\npackage\t: 0\n\
                         core\t: 3\n";
        assert_eq!(shapes(loongarch), [(0, Some(0), Some(0), 0), (1, Some(0), Some(0), 1)]);
        assert_eq!(shapes("processor : 4294967295\nprocessor : x\n"), []);
    }
}
