//! Caches and L3 groups.

use std::collections::BTreeMap;

use numalab_topology::{Cache, CacheKind, Cpu, CpuSet};

use super::cpus;
use super::reader::{Reader, shortened};

/// Reads the caches of all cpus, each once, ordered by level, kind and first cpu.
pub(super) fn read(reader: &mut Reader<'_>, cpus: &[Cpu]) -> Vec<Cache> {
    let mut caches: Vec<Cache> = Vec::new();
    let mut assumed = Assumed::default();
    for cpu in cpus {
        let directory = format!("{}/cache", cpus::directory(cpu.id));
        for index in reader.root.numbered(&directory, "index") {
            let place = format!("{directory}/index{index}");
            let Some(cache) = read_one(reader, &place, cpu, cpus, &mut assumed) else {
                continue;
            };
            add(reader, &mut caches, cache, cpu, &place);
        }
    }
    for ((level, what), cpus) in assumed {
        let message = format!(
            "the system does not list who shares the level {level} caches of cpus {cpus}: assumed \
             to be the cpus of each {what}"
        );
        reader.note("cache-sharing-unknown", cpus::CPU_DIRECTORY, message);
    }
    caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    caches
}

/// The cpus that are assumed to share the caches of a level within the core or the package.
type Assumed = BTreeMap<(u8, &'static str), CpuSet>;

/// Adds a cache unless the cache of this cpu, level and kind is already known. Cpus that belong to
/// an earlier cache of the kind are not added to a second one.
fn add(reader: &mut Reader<'_>, caches: &mut Vec<Cache>, mut cache: Cache, cpu: &Cpu, place: &str) {
    let same_kind = |known: &&Cache| known.level == cache.level && known.kind == cache.kind;
    let mut taken = CpuSet::new();
    for known in caches.iter().filter(same_kind) {
        if known.cpus.contains(cpu.id) {
            if known.cpus != cache.cpus {
                let message = format!(
                    "shared by cpus `{}`, but another of them lists `{}`: the first is used",
                    cache.cpus, known.cpus
                );
                reader.warn("cache-sharing-contradicts", place, message);
            }
            return;
        }
        taken.extend(known.cpus.intersection(&cache.cpus).iter());
    }
    if !taken.is_empty() {
        let message =
            format!("shared by cpus `{taken}`, which have another such cache: ignored here");
        reader.warn("cache-sharing-contradicts", place, message);
        cache.cpus = cache.cpus.difference(&taken);
    }
    caches.push(cache);
}

/// Reads one `cpuN/cache/indexM`; `None` if its level or type is unknown.
fn read_one(
    reader: &mut Reader<'_>,
    place: &str,
    cpu: &Cpu,
    cpus: &[Cpu],
    assumed: &mut Assumed,
) -> Option<Cache> {
    let level_path = format!("{place}/level");
    let level = u8::try_from(reader.number(&level_path)?).unwrap_or(0);
    if !(1..=8).contains(&level) {
        let message = format!("level `{level}`: expected 1 to 8");
        reader.warn("cache-level", &level_path, message);
        return None;
    }
    let kind = read_kind(reader, &format!("{place}/type"))?;
    let shared = reader.cpus(place, &["shared_cpu_list", "shared_cpu_map"]);
    let mut cpus = match shared.filter(|set| !set.is_empty()) {
        Some(set) => set,
        None => assumed_sharing(level, cpu, cpus, assumed),
    };
    // The directory is this cpu's, whatever its list says.
    cpus.insert(cpu.id);
    let small = |value: Option<u64>| {
        value.and_then(|value| u32::try_from(value).ok()).filter(|&value| value > 0)
    };
    Some(Cache {
        level,
        kind,
        size_bytes: read_size(reader, &format!("{place}/size")),
        line_bytes: small(reader.number(&format!("{place}/coherency_line_size"))),
        ways: small(reader.number(&format!("{place}/ways_of_associativity"))),
        cpus,
    })
}

/// Returns the cpus assumed to share a cache where the system does not list them: the core up to level
/// 2, the package above. Otherwise every thread would seem to have a private cache.
fn assumed_sharing(level: u8, cpu: &Cpu, cpus: &[Cpu], assumed: &mut Assumed) -> CpuSet {
    let (what, number): (_, fn(&Cpu) -> Option<u32>) = match level {
        ..=2 => ("core", |cpu| cpu.core),
        _ => ("package", |cpu| cpu.package),
    };
    let shares = |other: &&Cpu| number(other).is_some() && number(other) == number(cpu);
    let set: CpuSet =
        cpus.iter().filter(|cpu| cpu.online).filter(shares).map(|cpu| cpu.id).collect();
    if set.len() > 1 {
        assumed.entry((level, what)).or_default().insert(cpu.id);
    }
    set
}

fn read_kind(reader: &mut Reader<'_>, path: &str) -> Option<CacheKind> {
    let text = reader.text(path)?;
    match text.as_str() {
        "Data" => Some(CacheKind::Data),
        "Instruction" => Some(CacheKind::Instruction),
        "Unified" => Some(CacheKind::Unified),
        other => {
            let message = format!("`{}`: expected Data, Instruction or Unified", shortened(other));
            reader.warn("cache-type", path, message);
            None
        }
    }
}

/// Reads a size such as `32K`; 0 means unknown.
fn read_size(reader: &mut Reader<'_>, path: &str) -> Option<u64> {
    let text = reader.text(path)?;
    let Some(bytes) = parse_size(&text) else {
        let message = format!("`{}`: expected a size such as 32K", shortened(&text));
        reader.warn("cache-size", path, message);
        return None;
    };
    Some(bytes).filter(|&bytes| bytes > 0)
}

fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let unit_bytes = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit_bytes)
}

/// Assigns every cpu the dense index of its level 3 cache.
pub(super) fn assign_l3_groups(cpus: &mut [Cpu], caches: &[Cache]) {
    let is_l3 = |cache: &&Cache| cache.level == 3 && cache.kind != CacheKind::Instruction;
    for (group, cache) in (0..).zip(caches.iter().filter(is_l3)) {
        for id in cache.cpus.iter() {
            if let Ok(index) = cpus.binary_search_by_key(&id, |cpu| cpu.id) {
                cpus[index].l3_group = Some(group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_size_has_a_binary_unit() {
        assert_eq!(parse_size("32K"), Some(32 << 10));
        assert_eq!(parse_size("1M"), Some(1 << 20));
        assert_eq!(parse_size("512"), Some(512));
    }

    #[test]
    fn a_cache_size_that_overflows_or_is_not_a_size_is_refused() {
        assert_eq!(parse_size("18446744073709551615K"), None);
        assert_eq!(parse_size("32KK"), None);
        assert_eq!(parse_size("-1K"), None);
        assert_eq!(parse_size(""), None);
    }
}
