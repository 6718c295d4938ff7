//! Reads cpus, cores and packages.

use std::collections::BTreeMap;

use numalab_topology::{Cpu, CpuId, CpuSet, MAX_ID, Node};

use super::reader::Reader;
use crate::proc::allowed;

pub(super) const CPU_DIRECTORY: &str = "sys/devices/system/cpu";

/// Files in `cpuN/topology` with the cpus of the core, newest name first.
const CORE_FILES: [&str; 4] =
    ["core_cpus_list", "thread_siblings_list", "core_cpus", "thread_siblings"];

/// Files with the cpus of the package, newest name first.
const PACKAGE_FILES: [&str; 4] =
    ["package_cpus_list", "core_siblings_list", "package_cpus", "core_siblings"];

/// Reads all cpus that have a directory, ascending; `usable` are those that this process may run on
/// now, which exist even if none of them has one.
pub(super) fn read(reader: &mut Reader<'_>, usable: Option<&CpuSet>) -> Vec<Cpu> {
    let numbers = reader.root.numbered(CPU_DIRECTORY, "cpu");
    let mut ids: CpuSet =
        numbers.into_iter().filter(|&number| number <= MAX_ID).map(CpuId).collect();
    if let Some(usable) = usable
        && !ids.is_empty()
        && ids.intersection(usable).is_empty()
    {
        let message =
            format!("cpus {ids} have a directory, but this process may run on cpus {usable}");
        reader.warn("cpu-without-directory", CPU_DIRECTORY, message);
        ids.extend_from(usable);
    }
    let mut cpus: Vec<Cpu> = ids.iter().map(|id| Cpu { id, ..Cpu::default() }).collect();
    read_online(reader, &mut cpus, usable);
    assign_cores(reader, &mut cpus);
    assign_packages(reader, &mut cpus);
    cpus
}

/// Notes that cpus have directories, but without any core or package.
pub(super) fn note_unknown_cores(reader: &mut Reader<'_>, cpus: &[Cpu]) {
    if !cpus.is_empty() && cpus.iter().all(|cpu| cpu.core.is_none() && cpu.package.is_none()) {
        let message = "no cpu lists the others of its core: cores and packages are unknown";
        reader.note("cores-unknown", CPU_DIRECTORY, message.to_owned());
    }
}

/// Adds the online cpus of nodes that have no directory, if this process may use none of them,
/// because lxcfs hides the cpus outside its container. Other such cpus are a mistake of the tree.
pub(super) fn add_hidden(reader: &mut Reader<'_>, cpus: &mut Vec<Cpu>, nodes: &[Node]) {
    let known: CpuSet = cpus.iter().map(|cpu| cpu.id).collect();
    let mut hidden = CpuSet::new();
    nodes.iter().for_each(|node| hidden.extend_from(&node.cpus.difference(&known)));
    if hidden.is_empty() {
        return;
    }
    let status = reader.document("proc/self/status").unwrap_or_default();
    let mask: CpuSet = allowed(&status, "Cpus").unwrap_or_default();
    if mask.is_empty() || !hidden.intersection(&mask).is_empty() {
        return;
    }
    let message = format!(
        "cpus {hidden} of nodes have no directory, as in a container with lxcfs: this process may not \
         use them, and their cores and caches are unknown"
    );
    reader.note("cpus-hidden", CPU_DIRECTORY, message);
    cpus.extend(hidden.iter().map(|id| Cpu { id, online: true, ..Cpu::default() }));
    cpus.sort_by_key(|cpu| cpu.id);
}

/// Returns the isolated cpus, on which only threads that ask for them run (`isolcpus=` on the
/// kernel's command line, isolated cpusets). Reports them as a finding.
pub(super) fn isolated(reader: &mut Reader<'_>) -> CpuSet {
    let path = format!("{CPU_DIRECTORY}/isolated");
    let isolated: CpuSet = reader.list(&path).unwrap_or_default();
    if !isolated.is_empty() {
        let message =
            format!("cpus {isolated} are isolated: only threads pinned to them run there");
        reader.note("cpus-isolated", &path, message);
    }
    isolated
}

/// Returns the path of a cpu's directory.
pub(super) fn directory(cpu: CpuId) -> String {
    format!("{CPU_DIRECTORY}/cpu{cpu}")
}

/// Sets which cpus are online: by the list `online`; without a list, by each cpu's own file
/// `online`, which the boot cpu often lacks because it is always online.
fn read_online(reader: &mut Reader<'_>, cpus: &mut [Cpu], usable: Option<&CpuSet>) {
    let path = format!("{CPU_DIRECTORY}/online");
    let online = reader.list(&path).filter(|online: &CpuSet| !online.is_empty());
    let online = online.filter(|online| is_believable(reader, &path, online, cpus, usable));
    for cpu in &mut *cpus {
        let own_path = format!("{}/online", directory(cpu.id));
        let own = reader.number(&own_path).map(|value| value != 0);
        let listed = online.as_ref().map(|online| online.contains(cpu.id));
        if let (Some(own), Some(listed)) = (own, listed)
            && own != listed
        {
            let message = format!(
                "`{}`, but {path} says cpu {} is {}: the list is used",
                u8::from(own),
                cpu.id,
                if listed { "online" } else { "offline" },
            );
            reader.warn("cpu-online-contradicts", &own_path, message);
        }
        cpu.online = listed.or(own).unwrap_or(true);
    }
    let known: CpuSet = cpus.iter().map(|cpu| cpu.id).collect();
    let missing = online.unwrap_or_default().difference(&known);
    // Without any directory, the cpus are those of `/proc/cpuinfo`.
    if !missing.is_empty() && !known.is_empty() {
        let message = format!("cpus `{missing}` are listed, but have no directory: ignored");
        reader.warn("cpu-without-directory", &path, message);
    }
}

/// Reports whether the list of online cpus agrees with those that this process may run on, which
/// are online by definition. In a container lxcfs renumbers the list and nothing else.
fn is_believable(
    reader: &mut Reader<'_>,
    path: &str,
    online: &CpuSet,
    cpus: &[Cpu],
    usable: Option<&CpuSet>,
) -> bool {
    let known = |set: &CpuSet| -> CpuSet {
        set.iter().filter(|id| cpus.binary_search_by_key(id, |cpu| cpu.id).is_ok()).collect()
    };
    let contradicted = match usable {
        Some(usable) => known(usable).difference(online),
        // A copied tree has the mask as it was set, including offline cpus: it disproves the list
        // only if no online cpu is in it, or together with the cpus' own files, of which offline
        // cpus have no topology.
        None => {
            let status = reader.root.document("proc/self/status").unwrap_or_default();
            let mask = known(&allowed(&status, "Cpus").unwrap_or_default());
            if mask.intersection(online).is_empty() {
                mask
            } else {
                let mut is_online = |id: &CpuId| {
                    let directory = directory(*id);
                    let own = reader.number(&format!("{directory}/online"));
                    let topology = || reader.root.names(&format!("{directory}/topology"));
                    own.map_or_else(|| !topology().is_empty(), |own| own == 1)
                };
                mask.difference(online).iter().filter(|id| is_online(id)).collect()
            }
        }
    };
    if !contradicted.is_empty() {
        let message = format!(
            "`{online}`, but this process may run on cpus {contradicted}: the list is ignored"
        );
        reader.warn("online-contradicts-affinity", path, message);
    }
    contradicted.is_empty()
}

/// Assigns every cpu with known siblings the dense index of its core and its position in the core.
fn assign_cores(reader: &mut Reader<'_>, cpus: &mut [Cpu]) {
    let groups = groups(reader, cpus, &CORE_FILES, "core");
    check_siblings(reader, &groups);
    for (core, group) in (0..).zip(&groups) {
        for (thread, id) in (0..).zip(group.iter()) {
            if let Ok(index) = cpus.binary_search_by_key(&id, |cpu| cpu.id) {
                cpus[index].core = Some(core);
                cpus[index].thread = thread;
            }
        }
    }
}

/// Reports the cores of which a later cpu lists other cpus than the first one.
fn check_siblings(reader: &mut Reader<'_>, cores: &[CpuSet]) {
    for core in cores {
        for cpu in core.iter().skip(1) {
            let topology = format!("{}/topology", directory(cpu));
            let lists = CORE_FILES.iter().filter(|file| file.ends_with("_list"));
            let own = lists.map(|file| reader.list(&format!("{topology}/{file}")));
            let is_odd = |own: &CpuSet| !own.is_empty() && !core.is_subset(own);
            let Some(own) = own.flatten().next().filter(is_odd) else { continue };
            let message = format!(
                "cpu {cpu} lists `{own}` as its core, but another cpu of it lists `{core}`, which is \
                 used"
            );
            reader.warn("siblings-contradict", &topology, message);
        }
    }
}

/// Assigns every cpu its package: the system's number if each number names one set of cpus, else a
/// dense index. Some ARM systems give -1, and on s390 each book numbers its packages from 0.
fn assign_packages(reader: &mut Reader<'_>, cpus: &mut [Cpu]) {
    let groups = groups(reader, cpus, &PACKAGE_FILES, "package");
    let groups = with_whole_cores(reader, cpus, groups);
    let reported: Vec<Option<u32>> = cpus
        .iter()
        .map(|cpu| {
            let path = format!("{}/topology/physical_package_id", directory(cpu.id));
            reader.text(&path)?.parse().ok()
        })
        .collect();
    let mut groups_of_number: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let group_of = |id| groups.iter().position(|group| group.contains(id));
    let mut believable = true;
    for (cpu, number) in cpus.iter().zip(&reported) {
        let Some(group) = group_of(cpu.id) else {
            continue;
        };
        match number {
            Some(number) => groups_of_number.entry(*number).or_default().push(group),
            None => believable = false,
        }
    }
    for groups in groups_of_number.values_mut() {
        groups.dedup();
        // After the first pass there is little to sort: neighbours mostly share a package.
        groups.sort_unstable();
        groups.dedup();
    }
    // A package merged from several has the number of each.
    let numbers_of = |group| groups_of_number.values().filter(|of| of.contains(&group)).count();
    believable &= (0..groups.len()).all(|group| numbers_of(group) <= 1);
    if let Some((number, groups)) = groups_of_number.iter().find(|(_, groups)| groups.len() > 1) {
        believable = false;
        let message = format!(
            "{} packages have number `{number}`: they are renumbered by their cpus",
            groups.len()
        );
        let place = format!("{CPU_DIRECTORY}/cpu*/topology/physical_package_id");
        reader.note("package-ambiguous", &place, message);
    }
    for (cpu, number) in cpus.iter_mut().zip(reported) {
        let dense = || group_of(cpu.id).and_then(|group| u32::try_from(group).ok());
        cpu.package = if believable { number } else { dense() };
    }
}

/// Returns these packages, joining those that share a core, since the threads of a core are in one
/// package.
fn with_whole_cores(
    reader: &mut Reader<'_>,
    cpus: &[Cpu],
    mut packages: Vec<CpuSet>,
) -> Vec<CpuSet> {
    let mut cores: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for cpu in cpus {
        if let Some(core) = cpu.core {
            cores.entry(core).or_default().insert(cpu.id);
        }
    }
    let mut torn = CpuSet::new();
    for core in cores.values().filter(|core| core.len() > 1) {
        let holds = |package: &CpuSet| !package.intersection(core).is_empty();
        let Some(first) = packages.iter().position(holds) else { continue };
        while let Some(other) = packages.iter().skip(first + 1).position(holds) {
            let other = packages.remove(first + 1 + other);
            packages[first].extend_from(&other);
            torn.extend_from(core);
        }
    }
    if !torn.is_empty() {
        let message = format!(
            "threads of one core are in several packages, such as those of cpus {torn}: these \
             packages are treated as one"
        );
        reader.warn("core-spans-packages", CPU_DIRECTORY, message);
    }
    packages
}

/// Returns the sets that `files` give for the cpus, each once, ascending by first cpu. A cpu
/// belongs to the first set that contains it; a second one is a finding.
fn groups(reader: &mut Reader<'_>, cpus: &[Cpu], files: &[&str], what: &str) -> Vec<CpuSet> {
    let known: CpuSet = cpus.iter().map(|cpu| cpu.id).collect();
    let mut taken = CpuSet::new();
    let mut groups = Vec::new();
    for cpu in cpus {
        if taken.contains(cpu.id) {
            continue;
        }
        let topology = format!("{}/topology", directory(cpu.id));
        let Some(set) = reader.cpus(&topology, files) else {
            continue;
        };
        let mut group = set.intersection(&known).difference(&taken);
        if group.len() != set.len() || !set.contains(cpu.id) {
            let message = format!(
                "the {what} of cpu {} has cpus `{set}`, some of which are unknown or elsewhere",
                cpu.id
            );
            reader.warn("siblings-contradict", &topology, message);
            group.insert(cpu.id);
        }
        taken.extend(group.iter());
        groups.push(group);
    }
    groups.sort_by_key(CpuSet::first);
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;

    #[test]
    fn listed_cpus_without_a_directory_are_one_finding_and_none_if_no_cpu_has_one() {
        let said = |directories: u32| {
            let top = tempfile::tempdir().unwrap();
            let cpus = top.path().join(CPU_DIRECTORY);
            for cpu in 0..directories {
                std::fs::create_dir_all(cpus.join(format!("cpu{cpu}"))).unwrap();
            }
            std::fs::create_dir_all(&cpus).unwrap();
            std::fs::write(cpus.join("online"), "0-7\n").unwrap();
            let root = Root::at(top.path());
            let mut reader = Reader::new(&root);
            let _ = read(&mut reader, None);
            let findings = reader.findings.into_list();
            findings.into_iter().map(|finding| finding.message).collect::<Vec<String>>()
        };
        assert_eq!(said(2), ["cpus `2-7` are listed, but have no directory: ignored"]);
        assert_eq!(said(0), [""; 0]);
    }

    #[test]
    fn cpus_that_this_process_may_run_on_exist_if_the_directories_are_of_others() {
        let top = tempfile::tempdir().unwrap();
        for cpu in 0..2 {
            std::fs::create_dir_all(top.path().join(format!("{CPU_DIRECTORY}/cpu{cpu}"))).unwrap();
        }
        let root = Root::at(top.path());
        let found = |usable: &str| {
            let mut reader = Reader::new(&root);
            let cpus = read(&mut reader, Some(&usable.parse().unwrap()));
            let online = cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.id);
            (online.collect::<CpuSet>().to_string(), reader.findings.into_list().len())
        };
        assert_eq!(found("1"), ("0,1".to_owned(), 0));
        assert_eq!(found("1,7"), ("0,1".to_owned(), 0));
        assert_eq!(found("40-41"), ("0,1,40,41".to_owned(), 1));
    }
}
