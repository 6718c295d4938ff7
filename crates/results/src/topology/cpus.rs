//! Packages, cores, L3 groups and caches in words.

use std::collections::BTreeMap;

use numalab_page::number::size;
use numalab_topology::{CacheKind, CpuGroup, Id, IdSet, Machine};

/// Width in characters above which a list is truncated.
const LONGEST_LIST: usize = 40;

/// Returns what the cpus share; empty if unknown.
pub(super) fn rows(machine: &Machine) -> Vec<(&'static str, String)> {
    let online = machine.online_cpus();
    let offline: IdSet<_> = machine.cpus.iter().map(|cpu| cpu.id).collect();
    let offline = offline.difference(&online);
    let offline = if offline.is_empty() { None } else { Some(format!("cpus {}", list(&offline))) };
    vec![
        ("Packages", packages(machine)),
        ("Cores", cores(machine)),
        ("L3 groups", l3_groups(machine)),
        ("Caches", caches(machine)),
        ("Offline", offline.unwrap_or_default()),
    ]
}

/// Formats ids in list format, with a stride if there is one (`0-382:2`), truncated if long.
pub(super) fn list<I: Id>(ids: &IdSet<I>) -> String {
    if ids.is_empty() {
        return "none".to_owned();
    }
    let numbers: Vec<u32> = ids.iter().map(Id::number).collect();
    let text = strided(&numbers).unwrap_or_else(|| ids.to_string());
    if text.chars().count() <= LONGEST_LIST {
        return text;
    }
    let kept: String = text.chars().take(LONGEST_LIST - 10).collect();
    let kept = kept.rsplit_once(',').map_or(kept.as_str(), |(kept, _)| kept);
    format!("{kept},… ({})", ids.len())
}

/// Formats five or more numbers with the same distance above 1; `None` for others.
fn strided(numbers: &[u32]) -> Option<String> {
    let [first, second, .., last] = numbers else {
        return None;
    };
    let stride = second - first;
    let is_even = numbers.windows(2).all(|pair| pair[1] - pair[0] == stride);
    (numbers.len() > 4 && stride > 1 && is_even).then(|| format!("{first}-{last}:{stride}"))
}

fn packages(machine: &Machine) -> String {
    let packages = machine.packages();
    if packages.len() < 2 {
        return String::new();
    }
    let lists: Vec<String> = packages.iter().map(|package| list(&package.cpus)).collect();
    format!("{}: cpus {}", packages.len(), lists.join("; "))
}

fn cores(machine: &Machine) -> String {
    let cores = machine.cores();
    let Some(first) = cores.iter().max_by_key(|core| core.cpus.len()) else {
        return String::new();
    };
    match first.cpus.len() {
        0 | 1 => format!("{}, one thread each", cores.len()),
        _ => format!("{} of {}", cores.len(), threads(&cores, &list(&first.cpus))),
    }
}

fn threads(cores: &[CpuGroup], example: &str) -> String {
    let sizes = group_sizes(cores);
    format!("{sizes} threads, such as cpus {example}")
}

fn l3_groups(machine: &Machine) -> String {
    let groups = machine.l3_groups();
    let Some(first) = groups.first() else {
        return String::new();
    };
    let mut others = machine.online_cpus();
    groups.iter().for_each(|group| others = others.difference(&group.cpus));
    match (groups.len(), others.is_empty()) {
        (1, true) => "one for all cpus".to_owned(),
        (1, false) => {
            format!("one for cpus {}, none for cpus {}", list(&first.cpus), list(&others))
        }
        (number, is_all) => format!(
            "{number} of {} cpus, the first cpus {}{}",
            group_sizes(&groups),
            list(&first.cpus),
            if is_all { String::new() } else { format!("; none for cpus {}", list(&others)) }
        ),
    }
}

/// Describes the sizes of groups: `8`, or `6 to 8` if they differ.
fn group_sizes(groups: &[CpuGroup]) -> String {
    let sizes = groups.iter().map(|group| group.cpus.len());
    let (least, most) = (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0));
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

/// Counts caches by level, kind and size: `L1d 48K x 64, L3 32M x 8`.
fn caches(machine: &Machine) -> String {
    let mut kinds: BTreeMap<(u8, CacheKind, Option<u64>), usize> = BTreeMap::new();
    for cache in &machine.caches {
        *kinds.entry((cache.level, cache.kind, cache.size_bytes)).or_default() += 1;
    }
    let kind = |(&(level, kind, bytes), &number): (&(u8, CacheKind, Option<u64>), &usize)| {
        let letter = match kind {
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
            CacheKind::Unified => "",
        };
        let bytes = bytes.map_or_else(|| "size unknown".to_owned(), size);
        format!("L{level}{letter} {bytes} x {number}")
    };
    let kinds: Vec<String> = kinds.iter().map(kind).collect();
    kinds.join(", ")
}
