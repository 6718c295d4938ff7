//! Where a guest's memory lies on the host: QEMU's own list of its memory, and
//! the kernel's account of the pages behind it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use numalab_topology::NodeId;
use serde_json::json;

use super::client::{QmpClient, QmpError};

/// One piece of guest memory in QEMU's address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RamBlock {
    /// The name: of a memory backend that is `/objects/m0` or `m0`.
    pub name: String,
    /// The first address in the QEMU process.
    pub address: u64,
    /// Its length in bytes.
    pub size_bytes: u64,
}

/// Where one piece of guest memory lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryProof {
    /// The piece.
    pub block: RamBlock,
    /// The policies of its mappings, as the kernel shows them (`bind:0`, `default`).
    pub policies: Vec<String>,
    /// Bytes that are present, by host node.
    pub bytes_by_node: BTreeMap<NodeId, u64>,
    /// Bytes that are present, by the size of the pages in bytes.
    pub bytes_by_page: BTreeMap<u64, u64>,
}

/// Reads where the guest memory of the QEMU with this process id lies: one
/// answer per memory backend.
///
/// # Errors
/// [`QmpError`], and its `Io` if the kernel's account cannot be read.
pub fn prove_memory(qemu: &mut QmpClient, process: u32) -> Result<Vec<MemoryProof>, QmpError> {
    let command = "human-monitor-command";
    let answer = qemu.execute(command, &json!({ "command-line": "info ramblock" }))?;
    let blocks = ram_blocks(answer.as_str().unwrap_or_default());
    let directory = PathBuf::from(format!("/proc/{process}"));
    let read = |name: &str| read_account(&directory.join(name));
    let (maps, numa_maps) = (read("maps")?, read("numa_maps")?);
    let mappings = mappings(&maps, &numa_maps);
    Ok(blocks.into_iter().map(|block| proof(block, &mappings)).collect())
}

fn read_account(path: &Path) -> Result<String, QmpError> {
    fs::read_to_string(path).map_err(|source| QmpError::Io {
        command: path.display().to_string(),
        source: io::Error::new(source.kind(), format!("{source}; run as root or as QEMU's user")),
    })
}

/// The memory backends in the answer to `info ramblock`: lines of a name, the
/// page size, offset, used and total length, and the address in the process.
fn ram_blocks(text: &str) -> Vec<RamBlock> {
    let block = |line: &str| {
        let line = line.trim();
        let numbers: Vec<u64> = line.split_whitespace().filter_map(hexadecimal).collect();
        let [_offset, _used, size_bytes, address] = numbers[..] else {
            return None;
        };
        let name = line.split_whitespace().next()?.to_owned();
        let firmware = name.contains(".rom") || name.contains(".bios") || name.contains("vga");
        (!firmware && size_bytes >= 1 << 20).then_some(RamBlock {
            name,
            address,
            size_bytes,
        })
    };
    text.lines().filter_map(block).collect()
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

/// One mapping of a process: where it is, and the kernel's words on its pages.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    policy: String,
    pages: BTreeMap<NodeId, u64>,
    page_bytes: u64,
}

/// Joins `maps`, which has the ends, with `numa_maps`, which has the nodes (proc(5)).
fn mappings(maps: &str, numa_maps: &str) -> Vec<Mapping> {
    let range = |line: &str| {
        let (start, rest) = line.split_once('-')?;
        let end = rest.split(' ').next()?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some((number(start)?, number(end)?))
    };
    let ends: BTreeMap<u64, u64> = maps.lines().filter_map(range).collect();
    let mapping = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let start = u64::from_str_radix(words.next()?, 16).ok()?;
        let policy = words.next()?.to_owned();
        let mut pages = BTreeMap::new();
        let mut page_bytes = 4096;
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            let node = name.strip_prefix('N').and_then(|node| node.parse().ok());
            match (node, value.parse::<u64>()) {
                (Some(node), Ok(count)) => {
                    pages.insert(NodeId(node), count);
                }
                (None, Ok(kib)) if name == "kernelpagesize_kB" => page_bytes = kib * 1024,
                _ => {}
            }
        }
        let end = *ends.get(&start)?;
        Some(Mapping {
            start,
            end,
            policy,
            pages,
            page_bytes,
        })
    };
    numa_maps.lines().filter_map(mapping).collect()
}

fn proof(block: RamBlock, mappings: &[Mapping]) -> MemoryProof {
    let end = block.address.saturating_add(block.size_bytes);
    let mut policies = Vec::new();
    let mut bytes_by_node = BTreeMap::new();
    let mut bytes_by_page = BTreeMap::new();
    for mapping in mappings.iter().filter(|m| m.start < end && m.end > block.address) {
        if !policies.contains(&mapping.policy) {
            policies.push(mapping.policy.clone());
        }
        for (node, pages) in &mapping.pages {
            let bytes = pages.saturating_mul(mapping.page_bytes);
            *bytes_by_node.entry(*node).or_default() += bytes;
            *bytes_by_page.entry(mapping.page_bytes).or_default() += bytes;
        }
    }
    MemoryProof {
        block,
        policies,
        bytes_by_node,
        bytes_by_page,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAM_BLOCKS: &str = "\
              Block Name    PSize              Offset               Used              Total                HVA  RO
                      m1    4 KiB  0x0000000040000000 0x0000000040000000 0x0000000040000000 0x00007f2d80000000  rw
                      m0    2 MiB  0x0000000000000000 0x0000000040000000 0x0000000040000000 0x00007f2dc0000000  rw
                 pc.bios    4 KiB  0x0000000080000000 0x0000000000040000 0x0000000000040000 0x00007f2e14c00000  ro
    0000:00:01.0/vga.rom    4 KiB  0x0000000080060000 0x0000000000010000 0x0000000000010000 0x00007f2e14600000  ro
";

    #[test]
    fn memory_backends_are_found_among_firmware() {
        let blocks = ram_blocks(RAM_BLOCKS);
        let names: Vec<_> = blocks.iter().map(|block| block.name.as_str()).collect();
        assert_eq!(names, ["m1", "m0"]);
        assert_eq!(blocks[1].address, 0x7f2d_c000_0000);
        assert_eq!(blocks[0].size_bytes, 1 << 30);
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
        let mut blocks = ram_blocks(RAM_BLOCKS).into_iter();
        let small = proof(blocks.next().unwrap(), &mappings);
        assert_eq!(small.policies, ["bind:1"]);
        let expected = BTreeMap::from([(NodeId(0), 4096), (NodeId(1), 8192)]);
        assert_eq!(small.bytes_by_node, expected);
        let huge = proof(blocks.next().unwrap(), &mappings);
        assert_eq!(huge.bytes_by_page, BTreeMap::from([(2 << 20, 4 << 20)]));
    }
}
