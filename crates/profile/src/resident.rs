//! The nodes of all pages of a process by region, from `numa_maps`.

use std::collections::{BTreeMap, HashMap};
use std::fs::read_to_string;

use numalab_host::proc::{MapsLine, has_memory, numa_maps};
use numalab_host::{Root, page_nodes, usual_page_bytes};

use crate::follow::Follower;

/// Maximum number of pages queried in a part of a mapping.
const ASKED: u64 = 4096;

type Resident = BTreeMap<usize, BTreeMap<u32, u64>>;

/// Reads the nodes of the pages of a process with its current mappings.
pub(crate) fn look(follower: &mut Follower, process: u32, lines: &[MapsLine]) {
    let Ok(text) = read_to_string(format!("/proc/{process}/numa_maps")) else { return };
    let page_bytes = usual_page_bytes(&Root::live());
    let Some(program) = follower.living.get_mut(&process) else { return };
    let ends: HashMap<u64, u64> = lines.iter().map(|line| (line.start, line.end)).collect();
    let mut resident = Resident::new();
    for mapping in numa_maps(&text).filter(|mapping| mapping.pages() > 0) {
        let end = ends.get(&mapping.start).copied().unwrap_or(mapping.start + 1);
        let parts = program.space.parts(mapping.start, end);
        let mut add = |region, node, pages| {
            *resident.entry(region).or_default().entry(node).or_default() += pages;
        };
        match parts.first() {
            Some((.., region)) if parts.iter().all(|(.., other)| other == region) => {
                for (node, bytes) in mapping.bytes_by_node(page_bytes) {
                    add(*region, node.0, bytes / page_bytes.base);
                }
            }
            _ => parts.iter().for_each(|(from, to, region)| {
                for (node, pages) in asked(process, *from, *to, page_bytes.base) {
                    add(*region, node, pages);
                }
            }),
        }
    }
    // If the process has ended meanwhile, the file was incomplete.
    if has_memory(process) {
        program.resident = resident;
    }
}

/// Queries a sample of the pages of a part: the kernel merges neighbours into one mapping, so its
/// totals do not describe a part.
fn asked(process: u32, from: u64, to: u64, page_bytes: u64) -> BTreeMap<u32, u64> {
    let step = ((to - from) / page_bytes).div_ceil(ASKED).max(1);
    let stride = usize::try_from(step * page_bytes).unwrap_or(usize::MAX);
    let addresses: Vec<u64> = (from..to).step_by(stride).collect();
    let mut by_node = BTreeMap::new();
    for node in page_nodes(process, &addresses).into_iter().flatten().flatten() {
        *by_node.entry(node.0).or_default() += step;
    }
    by_node
}

#[cfg(test)]
mod tests {
    use numalab_host::{Mapping, base_pages};

    use super::*;

    #[test]
    fn only_resident_pages_of_a_part_of_a_mapping_are_counted() {
        let mut mapping = Mapping::new(64 << 12, base_pages()).unwrap();
        mapping.as_bytes_mut()[..10 << 12].fill(1);
        let start = mapping.span().address as u64;
        let found = asked(std::process::id(), start, start + (32 << 12), 4096);
        // Some containers forbid the call.
        let pages: u64 = found.values().sum();
        assert!(pages == 10 || found.is_empty(), "{found:?}");
    }
}
