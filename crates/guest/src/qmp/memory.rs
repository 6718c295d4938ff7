//! Proves the placement of a guest's memory on the host, from QEMU's list of its memory and the
//! kernel's account of the pages behind it.

use std::collections::BTreeMap;
use std::{fmt, io};

use numalab_formats::size::format_rounded;
use numalab_host::proc::{NumaMapping, PageBytes, address_range, numa_maps};
use numalab_host::{Root, usual_page_bytes};
use numalab_topology::NodeId;

use super::client::{QmpClient, QmpError};
use super::ram_blocks::{RamBlock, ram_blocks};

/// The placement of one block of guest memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryProof {
    pub block: RamBlock,
    /// The policies of its mappings, as the kernel prints them (`bind:0`, `default`).
    pub policies: Vec<String>,
    /// Bytes in memory, by host node.
    pub bytes_by_node: BTreeMap<NodeId, u64>,
    /// Bytes in memory, by page size in bytes.
    pub bytes_by_page: BTreeMap<u64, u64>,
}

impl fmt::Display for MemoryProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node =
            |(node, bytes): (&NodeId, &u64)| format!("{} on node {node}", format_rounded(*bytes));
        let present: Vec<String> = self.bytes_by_node.iter().map(node).collect();
        let present = match present.is_empty() {
            true => "nothing touched".to_owned(),
            false => present.join(", "),
        };
        let sizes =
            self.bytes_by_page.keys().map(|size| format!("{} pages", format_rounded(*size)));
        let how: Vec<String> = self.policies.iter().cloned().chain(sizes).collect();
        let RamBlock { name, size_bytes, .. } = &self.block;
        let size = format_rounded(*size_bytes);
        write!(f, "memory {name} of {size}: {present} ({})", how.join(", "))
    }
}

/// Returns the placement of the guest memory of the QEMU with this process id, one entry per memory
/// backend.
///
/// # Errors
/// [`QmpError`]; its `Io` if the kernel's account cannot be read.
pub fn prove_memory(qemu: &mut QmpClient, process: u32) -> Result<Vec<MemoryProof>, QmpError> {
    let read = |name: &str| read_account(&format!("proc/{process}/{name}"));
    let (maps, numa_maps) = (read("maps")?, read("numa_maps")?);
    let (before, page_bytes) = (mappings(&maps, &numa_maps), usual_page_bytes(&Root::live()));
    // Only the start of a mapping can be the start of a block.
    let is_start = |address| before.iter().any(|mapping| mapping.line.start == address);
    let blocks = ram_blocks(qemu, &is_start)?;
    Ok(blocks.into_iter().map(|block| proof(block, &before, page_bytes)).collect())
}

fn read_account(path: &str) -> Result<String, QmpError> {
    Root::live().document(path).map_err(|source| QmpError::Io {
        command: format!("/{path}"),
        source: io::Error::new(source.kind(), format!("{source}; run as root or as QEMU's user")),
    })
}

/// One mapping of a process: its pages, and its end.
struct Mapping {
    line: NumaMapping,
    end: u64,
}

/// Joins `maps`, which has the ends, with `numa_maps`, which has the nodes (proc(5)).
fn mappings(maps: &str, text: &str) -> Vec<Mapping> {
    let ends: BTreeMap<u64, u64> = maps.lines().filter_map(address_range).collect();
    let joined = |line: NumaMapping| Some(Mapping { end: *ends.get(&line.start)?, line });
    numa_maps(text).filter_map(joined).collect()
}

fn proof(block: RamBlock, mappings: &[Mapping], unprinted: PageBytes) -> MemoryProof {
    let end = block.address.saturating_add(block.size_bytes);
    let mut policies = Vec::new();
    let mut bytes_by_node = BTreeMap::new();
    let mut bytes_by_page = BTreeMap::new();
    // A block can consist of several mappings, each with its own policy.
    for mapping in mappings.iter().filter(|m| m.line.start < end && m.end > block.address) {
        let line = &mapping.line;
        if !policies.contains(&line.policy) {
            policies.push(line.policy.clone());
        }
        for (node, bytes) in line.bytes_by_node(unprinted) {
            *bytes_by_node.entry(node).or_default() += bytes;
            *bytes_by_page.entry(line.page_bytes(unprinted)).or_default() += bytes;
        }
    }
    MemoryProof { block, policies, bytes_by_node, bytes_by_page }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(name: &str, address: u64) -> RamBlock {
        RamBlock { name: name.to_owned(), address, size_bytes: 1 << 30 }
    }

    #[test]
    fn bytes_are_counted_by_node_and_page_size() {
        let maps = "7f2d80000000-7f2dc0000000 rw-p 0 00:00 0\n\
                    7f2dc0000000-7f2e00000000 rw-s 0 00:0f 1 /memfd:m0\n\
                    7f2e14c00000-7f2e14c40000 r--p 0 00:00 0\n";
        let numa_maps = "7f2d80000000 bind:1 anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4\n\
                         7f2dc0000000 bind:0 file=/memfd:m0 huge dirty=2 N0=2 kernelpagesize_kB=2048\n\
                         7f2e14c00000 default anon=64 N0=64 kernelpagesize_kB=4\n";
        let mappings = mappings(maps, numa_maps);
        let sizes = PageBytes { base: 4096, pool: 1 << 20 };
        let small = proof(block("m1", 0x7f2d_8000_0000), &mappings, sizes);
        assert_eq!(small.policies, ["bind:1"]);
        let expected = BTreeMap::from([(NodeId(0), 4096), (NodeId(1), 8192)]);
        assert_eq!(small.bytes_by_node, expected);
        let huge = proof(block("m0", 0x7f2d_c000_0000), &mappings, sizes);
        assert_eq!(huge.bytes_by_page, BTreeMap::from([(2 << 20, 4 << 20)]));
    }
}
