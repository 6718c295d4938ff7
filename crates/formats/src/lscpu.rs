//! The output of `lscpu`, as text, as a table (`-e`, `-p`) or as JSON (`-J`).
//!
//! The plain text contains the online cpus of every node and, only as counts, threads, cores,
//! packages and caches; it has neither memory nor distances. Where cores differ in threads, as on
//! hybrid processors, the counts do not say which cpus make a core. A table lists them.

mod cache_line;
mod caches;
mod json;
mod lines;
mod row;
mod table;

use core::cmp::Ordering;

use numalab_topology::{Cache, CpuId, CpuSet, Findings, Machine, count};

use crate::assembly::Assembly;
use crate::error::ReadError;
use crate::pasted;
use crate::reading::Reading;
use lines::{FORMAT, Lines};

/// Reads the output of `lscpu`. Items that are counted but not listed are laid out in the numbering
/// of Linux on x86: within a node all first threads come before all second ones, and cores, L3
/// groups and packages are contiguous in order of node. The threads of a core are contiguous too on
/// POWER and s390, and if each of several nodes has consecutive cpus.
///
/// # Errors
/// [`ReadError::Syntax`] for a damaged list of cpus or row of a table, [`ReadError::Markup`] for
/// damaged JSON, [`ReadError::Absent`] if no cpu is listed, [`ReadError::Cut`] if fewer cpus or
/// nodes are listed than counted.
pub fn read(text: &str) -> Result<Reading, ReadError> {
    let mut findings = Findings::default();
    let lines = pasted::lines(text, &mut findings);
    pasted::check_one_machine(FORMAT, &lines)?;
    let (rows, plain) = match json::content(&lines, &mut findings).transpose()? {
        Some(json::Content::Lines(lines)) => return read_with_l3_groups(&lines, None),
        Some(json::Content::Rows(rows)) => (rows, String::new()),
        None if table::is_table(&lines) => table::rows(&lines, &mut findings)?,
        None => return read_with_l3_groups(text, None),
    };
    let mut machine = table::machine(rows, &mut findings)?;
    if plain.contains("CPU(s)") {
        complete(&mut machine, &read_with_l3_groups(&plain, None)?.value)?;
    }
    let spans = |code: &str| ["core-spans-nodes", "l3-group-spans-nodes"].contains(&code);
    let spanning = machine.validate().into_iter().filter(|finding| spans(&finding.code));
    spanning.for_each(|finding| findings.push(finding));
    machine.note_odd_shapes(&mut findings);
    Ok(Reading { value: machine, findings: findings.into_list() })
}

/// Adds the sizes of caches from the plain output above a table, which also says how many cpus the
/// table has if nothing is missing.
fn complete(machine: &mut Machine, plain: &Machine) -> Result<(), ReadError> {
    let (announced, described) = (plain.online_cpus(), machine.online_cpus());
    let is_whole = announced.is_subset(&described);
    ReadError::unless_whole(is_whole, FORMAT, "online cpus", (announced, described))?;
    for cache in &mut machine.caches {
        let same = |of: &&Cache| (of.level, of.kind) == (cache.level, cache.kind);
        cache.size_bytes = plain.caches.iter().find(same).and_then(|of| of.size_bytes);
    }
    Ok(())
}

/// Reads like [`read`], with a known number of L3 groups in each node.
pub(crate) fn read_with_l3_groups(
    text: &str,
    groups_per_node: Option<u32>,
) -> Result<Reading, ReadError> {
    let mut findings = Findings::default();
    let lines = Lines::read(text, &mut findings)?;
    let mut machine = place_cpus(&lines, &mut findings)?;
    let cores = number_cores(&lines, &mut machine, &mut findings);
    // A finding already reports that cores are unknown.
    match cores.is_empty() {
        true => add_whole(&lines, &mut machine, &mut findings),
        false => number_groups(&lines, groups_per_node, &cores, &mut machine, &mut findings),
    }
    machine.note_odd_shapes(&mut findings);
    Ok(Reading { value: machine, findings: findings.into_list() })
}

/// Adds the package and the caches that all cpus of a machine with unknown cores share.
fn add_whole(lines: &Lines, machine: &mut Machine, findings: &mut Findings) {
    let has_one_l3 = caches::add_whole(lines, machine, findings);
    let has_one_package = lines.packages == Some(1);
    for cpu in machine.cpus.iter_mut().filter(|cpu| cpu.online) {
        cpu.l3_group = has_one_l3.then_some(0);
        cpu.package = has_one_package.then_some(0);
    }
}

fn number_groups(
    lines: &Lines,
    groups_per_node: Option<u32>,
    cores: &[Vec<CpuId>],
    machine: &mut Machine,
    findings: &mut Findings,
) {
    number_packages(lines, cores, machine, findings);
    let groups = number_l3_groups(lines, groups_per_node, cores, machine, findings);
    caches::add(lines, groups, cores, machine, findings);
}

fn place_cpus(lines: &Lines, findings: &mut Findings) -> Result<Machine, ReadError> {
    let mut assembly = Assembly::default();
    for (node, cpus) in &lines.nodes {
        assembly.place(cpus, *node, &format!("node {node}"));
        assembly.node(*node).memory_unknown = true;
    }
    for cpu in lines.online.iter() {
        assembly.cpu(cpu);
    }
    for cpu in lines.offline.iter() {
        assembly.cpu(cpu).online = false;
    }
    if lines.nodes.is_empty() {
        let message =
            "no node is listed, as `LC_ALL=C lscpu` prints them: nodes are unknown".to_owned();
        findings.warning("nodes-missing", "lscpu".to_owned(), message);
    }
    let claims = assembly.take_claims();
    let mut machine = assembly.finish(FORMAT)?;
    claims.settle(&mut machine, findings);
    if let Some(announced) = lines.node_count.filter(|&count| count != machine.nodes.len()) {
        let message =
            format!("announces {}, lists {}", count(announced, "node"), machine.nodes.len());
        findings.warning("nodes-announced", "NUMA node(s)".to_owned(), message);
    }
    Ok(machine)
}

/// Returns the online cpus of each node, or all if no node is known. Nodes of `numa=fake` have the same
/// cpus, which are returned once.
fn cpus_of_nodes(machine: &Machine) -> Vec<CpuSet> {
    let online = machine.online_cpus();
    let mut sets: Vec<CpuSet> = Vec::new();
    for node in &machine.nodes {
        let cpus = node.cpus.intersection(&online);
        if !sets.contains(&cpus) {
            sets.push(cpus);
        }
    }
    if sets.is_empty() {
        sets.push(online);
    }
    sets
}

/// Numbers the cores in order of node, and returns the cpus of each.
fn number_cores(lines: &Lines, machine: &mut Machine, findings: &mut Findings) -> Vec<Vec<CpuId>> {
    let Some(threads) = lines.threads_per_core.filter(|&threads| threads > 0) else {
        let message = match lines.threads_per_core {
            Some(_) => {
                "is 0, as in a container that hides cpus: cores are unknown, and cpus shown as offline \
                 may be online"
            }
            None => "is missing: cores are unknown (`LC_ALL=C lscpu` prints it)",
        };
        findings.warning("cores-unknown", "Thread(s) per core".to_owned(), message.to_owned());
        return Vec::new();
    };
    let is_odd = |all: &usize| match all.cmp(&machine.online_cpus().len()) {
        Ordering::Less => lines.models.len() <= 1,
        Ordering::Equal => false,
        Ordering::Greater => true,
    };
    if let Some(all) = lines.threads_of_all().filter(is_odd) {
        let message = format!(
            "the counts give {}, but {} are online: cores differ in threads, or some are offline",
            count(all, "thread"),
            count(machine.online_cpus().len(), "cpu")
        );
        findings.warning("cores-unknown", "Thread(s) per core".to_owned(), message);
        return Vec::new();
    }
    let is_adjacent = are_threads_adjacent(lines, threads, machine, findings);
    let mut cores = Vec::new();
    for set in cpus_of_nodes(machine) {
        let cpus: Vec<CpuId> = set.iter().collect();
        if !cpus.len().is_multiple_of(threads) {
            let cpus = count(cpus.len(), "cpu");
            let message = format!("{cpus} cannot be whole cores of {threads} threads");
            findings.warning("cores-unknown", format!("cpus {set}"), message);
            continue;
        }
        let count = cpus.len() / threads;
        cores.extend((0..count).map(|core| {
            let place = |thread| match is_adjacent {
                true => core * threads + thread,
                false => core + thread * count,
            };
            let siblings = (0..threads).map(|thread| cpus[place(thread)]);
            siblings.collect::<Vec<CpuId>>()
        }));
    }
    for (number, core) in (0u32..).zip(&cores) {
        for (thread, &id) in (0u32..).zip(core) {
            if let Some(cpu) = machine.cpu_mut(id) {
                (cpu.core, cpu.thread) = (Some(number), thread);
            }
        }
    }
    cores
}

/// Returns true if the threads of a core are numbered one after the other: on POWER and s390, and
/// where each of several nodes has consecutive cpus, as in virtual machines. Otherwise all first
/// threads come before all second ones, as x86 usually numbers them. Adds a note if no node's list
/// shows the order.
fn are_threads_adjacent(
    lines: &Lines,
    threads: usize,
    machine: &Machine,
    findings: &mut Findings,
) -> bool {
    if lines.has_adjacent_threads || threads == 1 {
        return lines.has_adjacent_threads;
    }
    let is_run = |cpus: &CpuSet| {
        let before = |cpu: CpuId| cpu.0.checked_sub(1).map(CpuId);
        let begins = cpus.iter().filter(|cpu| before(*cpu).is_none_or(|one| !cpus.contains(one)));
        begins.count() == 1
    };
    let with_cpus = || machine.nodes.iter().filter(|node| !node.cpus.is_empty());
    let runs = with_cpus().filter(|node| is_run(&node.cpus)).count();
    if runs == 0 && with_cpus().count() > 1 {
        return false;
    }
    let is_adjacent = runs > 1 && runs == with_cpus().count();
    let assumed = match is_adjacent {
        true => "consecutive ones, as those of each node are",
        false => "apart, with the first threads of all cores before their second ones",
    };
    let message = format!(
        "the text does not say which cpus share a core: assumed to be {assumed} (`lscpu -e` lists \
         them)"
    );
    findings.note("cores-assumed", "Thread(s) per core".to_owned(), message);
    is_adjacent
}

fn number_packages(
    lines: &Lines,
    cores: &[Vec<CpuId>],
    machine: &mut Machine,
    findings: &mut Findings,
) {
    let Some(packages) = lines.packages.filter(|&packages| packages > 0) else {
        return;
    };
    let nodes = machine.cpu_nodes().len().max(1);
    let whole = nodes.is_multiple_of(packages) || packages.is_multiple_of(nodes);
    if !whole || !cores.len().is_multiple_of(packages) {
        let (nodes, cores) = (count(nodes, "node"), count(cores.len(), "core"));
        let message = format!("{packages} packages do not divide {nodes} and {cores}");
        findings.warning("packages-unknown", "Socket(s)".to_owned(), message);
        return;
    }
    for (package, core) in numbered(cores, packages) {
        for &id in core {
            if let Some(cpu) = machine.cpu_mut(id) {
                cpu.package = Some(package);
            }
        }
    }
}

/// Numbers the L3 groups, and returns how many there are; `None` if that is unknown.
fn number_l3_groups(
    lines: &Lines,
    per_node: Option<u32>,
    cores: &[Vec<CpuId>],
    machine: &mut Machine,
    findings: &mut Findings,
) -> Option<usize> {
    let l3 = lines.caches.iter().find(|cache| cache.level == 3);
    let reported = l3.and_then(|cache| cache.instances);
    let with_cpus = machine.cpu_nodes().len();
    let given = per_node.map(|per_node| usize::try_from(per_node).unwrap_or(0) * with_cpus);
    if let Some((given, reported)) = given.zip(reported).filter(|(a, b)| a != b) {
        let message = format!(
            "{given} L3 groups are given, but lscpu reports {reported}; the given number is used"
        );
        findings.warning("l3-groups-differ", "L3".to_owned(), message);
    }
    let is_even = |groups: &usize| match l3 {
        Some(_) if lines.cores_differ() && *groups > 1 => given.is_some(),
        Some(cache) => given.is_some() || cache.bytes_of_each(*groups, lines.is_amd()).is_some(),
        None => true,
    };
    let groups = given.or(reported).filter(|&groups| groups > 0).filter(is_even)?;
    if !cores.len().is_multiple_of(groups) {
        let message = format!("{groups} L3 groups do not divide {} cores", cores.len());
        findings.warning("l3-groups-unknown", "L3".to_owned(), message);
        return None;
    }
    for (group, core) in numbered(cores, groups) {
        for &id in core {
            if let Some(cpu) = machine.cpu_mut(id) {
                cpu.l3_group = Some(group);
            }
        }
    }
    Some(groups)
}

/// Returns the cores divided evenly among `parts` numbered parts, in order.
fn numbered(cores: &[Vec<CpuId>], parts: usize) -> impl Iterator<Item = (u32, &Vec<CpuId>)> {
    let chunks = cores.chunks((cores.len() / parts).max(1));
    (0u32..).zip(chunks).flat_map(|(number, chunk)| chunk.iter().map(move |core| (number, core)))
}
