//! Cache sizes and hit latencies from the sweep over sizes.

use numalab_memory_model::others::LIVES;
use numalab_topology::{Cache, CacheKind, Machine};

use super::Remark;
use crate::run::{Level, LevelName, Summary};

/// Largest ratio of a found to a reported size at which the two count as the same: where a cache
/// ends depends on the visiting order.
const SAME_SIZE: f64 = 1.5;
const LINE_BYTES: u64 = 64;

/// Returns the hit latency of each level of data cache in ns, nearest first: for shared caches, the
/// lowest on the plateau, because other users slow some sizes down. Also returns the mean life of an
/// unused line of the last cache in ns, if it seems smaller than it is because a guest shares it.
///
/// Removes caches from the machine that the sweep did not find, and replaces sizes far from those
/// found, except that of such a cache.
pub(super) fn caches(
    summary: &Summary<'_>,
    machine: &mut Machine,
    remarks: &mut Vec<Remark>,
) -> (Vec<f64>, Option<f64>) {
    let is_data = |cache: &Cache| cache.kind != CacheKind::Instruction;
    let Some(sweep) = summary.curves.first().filter(|curve| !curve.levels.is_empty()) else {
        remarks.push(Remark::NoSweep);
        return (Vec::new(), None);
    };
    let found = |level: u8| sweep.levels.iter().find(|found| found.name == LevelName::Cache(level));
    let mut levels: Vec<u8> =
        machine.caches.iter().filter(|cache| is_data(cache)).map(|cache| cache.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let last = levels.last().copied().unwrap_or(0);
    let is_guest = summary.run.environment.facts.contains_key("hypervisor");
    let (mut latencies, mut life_ns) = (Vec::new(), None);
    for level in levels {
        // A bound from a single size does not show that anything is left of the cache.
        let is_shown = |found: &&Level| !found.at_most || found.from_bytes < found.to_bytes;
        let Some(plateau) = found(level).filter(is_shown) else {
            machine.caches.retain(|cache| !is_data(cache) || cache.level != level);
            remarks.push(Remark::NoCache { level });
            continue;
        };
        if plateau.at_most {
            remarks.push(Remark::CacheHidden { level, at_most_ns: plateau.latency_ns });
        }
        let mut of_all = machine.caches.iter().filter(|cache| cache.level == level);
        let is_shared = of_all.any(|cache| is_data(cache) && cache.cpus.len() > 1);
        let on_plateau = plateau.from_bytes..=plateau.to_bytes;
        let of = |size_bytes| is_shared && on_plateau.contains(&size_bytes);
        let points = sweep.points.iter().filter(|point| of(point.size_bytes));
        let hit_ns = points.map(|point| point.figure.median).fold(plateau.latency_ns, f64::min);
        latencies.push(hit_ns);
        let mut replaced = None;
        let of_level = |cache: &&mut Cache| is_data(cache) && cache.level == level;
        for cache in machine.caches.iter_mut().filter(of_level) {
            let Some(reported_bytes) = cache.size_bytes else { continue };
            // A cache whose end the sweep did not reach has at least the last size.
            let least = plateau.to_bytes as f64;
            let least = Some(least).filter(|bytes| *bytes > reported_bytes as f64);
            let Some(bytes) = plateau.capacity_bytes.or(least) else { continue };
            let factor = bytes / reported_bytes.max(1) as f64;
            // If the sweep does not show the next cache, the plateau includes a part of it.
            let holds_next = factor > 1.0 && found(level + 1).is_none() && level < last;
            if factor.max(factor.recip()) > SAME_SIZE && !holds_next {
                if factor < 1.0 && level == last && is_shared && is_guest {
                    let of_shared = life((bytes, factor), hit_ns);
                    life_ns = Some(of_shared);
                    replaced = Some(Remark::CacheShared { level, life_ns: of_shared });
                    continue;
                }
                let found_bytes = whole_sets(bytes, cache);
                cache.size_bytes = Some(found_bytes);
                replaced = Some(Remark::CacheFound { level, found_bytes, reported_bytes });
            }
        }
        remarks.extend(replaced);
    }
    (latencies, life_ns)
}

/// Returns the mean life in ns of an unused line in a cache with other users. The argument is the
/// largest chase (in bytes, and as a fraction of the cache) that is as fast as the cache's hits:
/// one pass over it takes the shortest life of a line in the rest of the cache.
fn life((bytes, part): (f64, f64), hit_ns: f64) -> f64 {
    let [shortest, _] = LIVES;
    (bytes / LINE_BYTES as f64 * hit_ns / shortest / (1.0 - part)).round()
}

/// Rounds a size to whole sets, in bytes.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes of caches")]
fn whole_sets(bytes: f64, cache: &Cache) -> u64 {
    let line = cache.line_bytes.map_or(LINE_BYTES, u64::from);
    let set = (line * u64::from(cache.ways.unwrap_or(16))).max(1);
    ((bytes / set as f64).round() as u64).max(1) * set
}
