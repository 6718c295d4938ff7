//! The caches of a machine, for which lscpu gives only sizes and counts.

use numalab_topology::{Cache, CpuId, Findings, Machine, count};

use super::cache_line::CacheLine;
use super::lines::Lines;

/// Adds the caches of all lines: one for each instance, with the cores divided among them in order.
/// Anything that the text leaves open is a finding.
pub(super) fn add(
    lines: &Lines,
    l3_groups: Option<usize>,
    cores: &[Vec<CpuId>],
    machine: &mut Machine,
    findings: &mut Findings,
) {
    for (name, value) in &lines.odd_caches {
        let message = format!("`{value}` is not the size of a cache: it is left out");
        findings.warning("caches-unknown", name.clone(), message);
    }
    for line in &lines.caches {
        let known = line.instances.or(l3_groups.filter(|_| line.level == 3));
        let assumed = || usual_instances(lines, line.level, cores.len(), machine);
        let instances = known.or_else(assumed).filter(|&instances| instances > 0);
        match instances_of(line, lines, instances, cores.len()) {
            Ok((instances, bytes)) => divide(line, bytes, instances, cores, machine),
            Err(message) => findings.warning("caches-unknown", line.name.clone(), message),
        }
    }
}

/// Adds the caches of which the machine has only one; returns true if the level 3 cache is one of
/// them. A finding names the others: without cores, the cpus of each are unknown.
pub(super) fn add_whole(lines: &Lines, machine: &mut Machine, findings: &mut Findings) -> bool {
    let (whole, others): (Vec<&CacheLine>, Vec<_>) =
        lines.caches.iter().partition(|line| line.instances == Some(1));
    if !others.is_empty() {
        let names: Vec<&str> = others.iter().map(|line| line.name.as_str()).collect();
        let message = "left out, as the cpus that share one are unknown".to_owned();
        findings.warning("caches-unknown", names.join(", "), message);
    }
    let cpus = machine.online_cpus();
    let whole = whole.into_iter().filter_map(|line| {
        Some(Cache {
            level: line.level,
            kind: line.kind,
            size_bytes: Some(line.bytes_of_each(1, lines.is_amd())?),
            line_bytes: None,
            ways: None,
            cpus: cpus.clone(),
        })
    });
    machine.caches = whole.collect();
    machine.caches.iter().any(|cache| cache.level == 3)
}

/// Returns the number of instances of a line's cache and the size of each, or why it is unknown.
fn instances_of(
    line: &CacheLine,
    lines: &Lines,
    instances: Option<usize>,
    cores: usize,
) -> Result<(usize, u64), String> {
    let left_out = |why: &str| format!("{why}: it is left out (`lscpu -e` lists each)");
    if lines.cores_differ() && (line.level < 3 || instances.is_some_and(|known| known > 1)) {
        return Err(left_out("is a sum over cores of several kinds"));
    }
    let instances = instances.ok_or_else(|| {
        left_out("has no number of instances, which lscpu prints since util-linux 2.37")
    })?;
    if !cores.is_multiple_of(instances) {
        return Err(format!("{instances} instances do not divide {}", count(cores, "core")));
    }
    let bytes = line.bytes_of_each(instances, lines.is_amd()).ok_or_else(|| {
        let sum =
            format!("the sum is not {instances} times one usual size: the instances may differ");
        left_out(&sum)
    })?;
    Ok((instances, bytes))
}

/// Returns the number of instances that a text without one implies: one per core of L1, and of L2
/// where there is an L3 of x86 (without, cores may share it: Core 2, Atom, Xeon Phi) or on s390; one
/// L3 per package of Intel, unless it is divided into nodes.
fn usual_instances(lines: &Lines, level: u8, cores: usize, machine: &Machine) -> Option<usize> {
    let of = |name: &str| lines.architecture.starts_with(name);
    let has_l3 = || lines.caches.iter().any(|line| line.level == 3);
    let packages = machine.packages().len();
    let is_whole = lines.vendor == "GenuineIntel" && machine.cpu_nodes().len() <= packages;
    match level {
        1 => Some(cores),
        2 if of("s390") || (of("x86") || of("i")) && has_l3() => Some(cores),
        3 if is_whole => Some(packages),
        _ => None,
    }
}

fn divide(
    line: &CacheLine,
    bytes: u64,
    instances: usize,
    cores: &[Vec<CpuId>],
    machine: &mut Machine,
) {
    for part in cores.chunks(cores.len() / instances) {
        machine.caches.push(Cache {
            level: line.level,
            kind: line.kind,
            size_bytes: Some(bytes),
            line_bytes: None,
            ways: None,
            cpus: part.iter().flatten().copied().collect(),
        });
    }
}
