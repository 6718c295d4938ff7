//! Reads ranges of physical memory from memory blocks.

use numalab_topology::{MemoryKind, MemoryRange, Node};

use super::nodes;
use super::reader::{Reader, shortened};

const BLOCK_SIZE_FILE: &str = "sys/devices/system/memory/block_size_bytes";

/// Maximum size of a block, which keeps sums of blocks within 64 bits; no kernel has larger ones
/// (x86-64: 2 GiB at most).
const LARGEST_BLOCK_BYTES: u64 = 1 << 31;

/// Reads the memory blocks `nodeN/memoryM` as ranges: adjacent blocks of one node become one range.
/// Empty if the kernel has no memory blocks. Sysfs does not cheaply say whether a block is
/// removable, so no range is marked hot-pluggable.
pub(super) fn read(reader: &mut Reader<'_>, nodes: &[Node]) -> Vec<MemoryRange> {
    let Some(block_bytes) = block_size(reader) else {
        return Vec::new();
    };
    let mut ranges: Vec<MemoryRange> = Vec::new();
    for node in nodes {
        let directory = nodes::directory(node.id);
        for block in reader.root.numbered(&directory, "memory") {
            let Some(base) = u64::from(block).checked_mul(block_bytes) else {
                let message = format!("block {block} of {block_bytes} bytes exceeds 64 bits");
                reader.warn("memory-block", &directory, message);
                continue;
            };
            match ranges.last_mut() {
                Some(last) if last.node == node.id && last.end() == Some(base) => {
                    last.length_bytes += block_bytes;
                }
                _ => ranges.push(MemoryRange {
                    base,
                    length_bytes: block_bytes,
                    node: node.id,
                    hot_pluggable: false,
                    kind: MemoryKind::Ordinary,
                }),
            }
        }
    }
    ranges.sort_by_key(|range| (range.base, range.node));
    ranges
}

/// Reads the size of a memory block: hexadecimal without a prefix.
fn block_size(reader: &mut Reader<'_>) -> Option<u64> {
    let text = reader.text(BLOCK_SIZE_FILE)?;
    match u64::from_str_radix(&text, 16) {
        Ok(bytes) if bytes.is_power_of_two() && bytes <= LARGEST_BLOCK_BYTES => Some(bytes),
        _ => {
            let message = format!(
                "`{}`: expected a power of two in hexadecimal such as 8000000",
                shortened(&text)
            );
            reader.warn("memory-block-size", BLOCK_SIZE_FILE, message);
            None
        }
    }
}
