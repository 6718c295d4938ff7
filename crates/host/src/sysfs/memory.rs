//! Reads the memory of nodes: sizes, huge page pools, memory-side caches.

use numalab_topology::{HugePagePool, MemoryRange, MemorySideCache, Node, NodeSet};

use super::reader::{NODE_DIRECTORY, Reader, shortened};
use crate::proc::bytes;
use crate::system_page::pool_kilobytes;

/// Sizes from a `meminfo` file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemorySizes {
    pub(super) total_bytes: Option<u64>,
    pub(super) free_bytes: Option<u64>,
}

/// Reads the memory of the whole machine from `/proc/meminfo`.
pub(super) fn machine_sizes(reader: &mut Reader<'_>) -> MemorySizes {
    let path = "proc/meminfo";
    match reader.document(path) {
        Some(text) => sizes(reader, path, &text),
        None => MemorySizes::default(),
    }
}

/// Reads the memory of a node. The only node of a machine gets the machine's memory if it has no
/// file.
pub(super) fn node_sizes(reader: &mut Reader<'_>, directory: &str, alone: bool) -> MemorySizes {
    let path = format!("{directory}/meminfo");
    match reader.document(&path) {
        Some(text) => {
            if bytes(&text, "MemTotal").is_none() {
                reader.note("no-meminfo", &path, "no MemTotal: memory size unknown".to_owned());
            }
            sizes(reader, &path, &text)
        }
        None if alone => machine_sizes(reader),
        None => {
            reader.note("no-meminfo", &path, "absent: memory size unknown".to_owned());
            MemorySizes::default()
        }
    }
}

fn sizes(reader: &mut Reader<'_>, path: &str, text: &str) -> MemorySizes {
    let mut field = |name| match bytes(text, name) {
        Some(Ok(bytes)) => Some(bytes),
        Some(Err(value)) => {
            let message = format!("{name} `{}`: expected a number of kB", shortened(value));
            reader.warn("meminfo-line", path, message);
            None
        }
        None => None,
    };
    MemorySizes { total_bytes: field("MemTotal"), free_bytes: field("MemFree") }
}

/// Reads the huge page pools below `directory`, smallest pages first.
pub(super) fn huge_pages(reader: &mut Reader<'_>, directory: &str) -> Vec<HugePagePool> {
    let mut pools: Vec<HugePagePool> = reader
        .root
        .names(directory)
        .iter()
        .filter_map(|name| {
            let kilobytes: u64 = pool_kilobytes(name)?;
            Some(HugePagePool {
                page_bytes: kilobytes.checked_mul(1 << 10)?,
                total: reader.number(&format!("{directory}/{name}/nr_hugepages"))?,
                free: reader.number(&format!("{directory}/{name}/free_hugepages")).unwrap_or(0),
            })
        })
        .collect();
    pools.sort_by_key(|pool| pool.page_bytes);
    pools
}

/// Reads the memory-side caches of a node (Linux `Documentation/admin-guide/mm/numaperf.rst`).
pub(super) fn side_caches(reader: &mut Reader<'_>, directory: &str) -> Vec<MemorySideCache> {
    let directory = format!("{directory}/memory_side_cache");
    let indices = reader.root.numbered(&directory, "index");
    let mut caches: Vec<MemorySideCache> = indices
        .into_iter()
        .filter_map(|index| {
            let place = format!("{directory}/index{index}");
            let direct_mapped = reader.number(&format!("{place}/indexing")) == Some(0);
            Some(MemorySideCache {
                level: u8::try_from(index).ok()?,
                size_bytes: reader.number(&format!("{place}/size"))?,
                line_bytes: reader
                    .number(&format!("{place}/line_size"))
                    .and_then(|bytes| u32::try_from(bytes).ok())
                    .filter(|&bytes| bytes > 0),
                ways: direct_mapped.then_some(1),
            })
        })
        .collect();
    // The kernel counts levels from memory; the model's order is from the cpus.
    caches.reverse();
    caches
}

/// Raises the nodes' memory to the machine's if they together report much less, and reports it. A
/// kernel that initialises memory on first use adds it to its node's total only then, and so does
/// one with memory that was added at run time. The only node with memory gets all of it; several
/// get shares in proportion to their memory blocks, if the blocks hold that much. That is a note,
/// since such a kernel works correctly; otherwise the nodes' memory is unknown, which is a warning.
/// If a node does not report its memory, it may have the difference, so nothing is compared.
pub(super) fn complete(reader: &mut Reader<'_>, nodes: &mut [Node], ranges: &[MemoryRange]) {
    if nodes.iter().any(|node| node.memory_unknown) {
        return;
    }
    let sum = |values: &mut dyn Iterator<Item = u64>| values.fold(0, u64::saturating_add);
    let reported = sum(&mut nodes.iter().map(|node| node.memory_bytes));
    let machine = machine_sizes(reader);
    let Some(total) = machine.total_bytes.filter(|total| *total > 0) else { return };
    if !figures_disagree(reported, total) {
        return note_limit(reader, reported, total);
    }
    let blocks_of = |node: &Node| {
        let own = ranges.iter().filter(|range| range.node == node.id);
        sum(&mut own.map(|range| range.length_bytes))
    };
    let in_blocks = sum(&mut ranges.iter().map(|range| range.length_bytes));
    let has_memory = |node: &Node| node.memory_bytes > 0;
    // The memory of a node without a directory must not be given to another node.
    let is_missing = |file: &str| {
        let listed: Option<NodeSet> = reader.list(&format!("{NODE_DIRECTORY}/{file}"));
        listed.is_some_and(|listed| listed.iter().any(|id| nodes.iter().all(|node| node.id != id)))
    };
    let are_all = !["online", "has_memory"].into_iter().any(is_missing);
    let taken = if are_all && nodes.iter().filter(|node| has_memory(node)).count() == 1 {
        for node in nodes.iter_mut().filter(|node| has_memory(node)) {
            (node.memory_bytes, node.free_bytes) = (total, machine.free_bytes);
        }
        "; the node is assumed to have the latter: the kernel adds memory to a node's total only \
         when it is first used"
    } else if in_blocks >= total {
        for node in nodes.iter_mut() {
            node.memory_bytes = share(total, blocks_of(node), in_blocks);
        }
        "; the nodes are assumed to have shares of the latter by their memory blocks: the kernel \
         adds memory to a node's total only when it is first used"
    } else {
        ""
    };
    let message = format!(
        "MemTotal of all nodes is {} MiB, but proc/meminfo says {} MiB and memory blocks hold {} MiB{taken}",
        reported >> 20,
        total >> 20,
        in_blocks >> 20,
    );
    let place = format!("{NODE_DIRECTORY}/node*/meminfo");
    if taken.is_empty() {
        reader.warn("node-memory-understated", &place, message);
    } else {
        reader.note("node-memory-understated", &place, message);
    }
}

/// Notes that nodes have much more memory than the machine: `/proc/meminfo` is that of a container, or
/// the nodes are another machine's.
fn note_limit(reader: &mut Reader<'_>, reported: u64, total: u64) {
    if figures_disagree(total, reported) {
        let message = format!(
            "MemTotal is {} MiB, but that of all nodes is {} MiB, as where lxcfs shows a container's \
             limit: this process may use less memory than its nodes have",
            total >> 20,
            reported >> 20,
        );
        reader.note("memory-limited", "proc/meminfo", message);
    }
}

/// Returns the part of `total` in the proportion of `own` to `all`.
fn share(total: u64, own: u64, all: u64) -> u64 {
    let share = u128::from(total) * u128::from(own) / u128::from(all.max(1));
    u64::try_from(share).unwrap_or(total)
}

/// Reports whether the nodes' `nodes_bytes` lack more than an eighth of the machine's
/// `total_bytes`.
pub(crate) fn figures_disagree(nodes_bytes: u64, total_bytes: u64) -> bool {
    nodes_bytes < total_bytes - total_bytes / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_leave_out_more_than_an_eighth_disagree_with_the_machine() {
        assert!(figures_disagree(8 << 30, 24 << 30));
        assert!(!figures_disagree(23 << 30, 24 << 30));
    }
}
