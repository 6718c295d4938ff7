//! The position of guest memory in the address space of QEMU.
//!
//! Later versions of QEMU list it in `info ramblock`. For earlier ones (7.2) guest memory is walked
//! in guest-physical order, asking QEMU for the host address of each block's first byte
//! (`gpa2hva`).

use serde_json::json;

use super::client::{QmpClient, QmpError, not_understood};

/// Smaller blocks, in bytes, are firmware and tables.
const LEAST_BYTES: u64 = 4 << 20;
const FOUR_GIB: u64 = 1 << 32;
/// Possible ends of memory below 4 GiB: q35 (2 GiB, or 2.75 for small guests) and pc (3 GiB, or
/// 3.5), QEMU `hw/i386/pc_q35.c` and `pc_piix.c`.
const LOW_ENDS: [u64; 4] = [0x8000_0000, 0xb000_0000, 0xc000_0000, 0xe000_0000];

/// One block of guest memory in QEMU's address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RamBlock {
    /// The name; for a memory backend, its id.
    pub name: String,
    /// The first address in the QEMU process.
    pub address: u64,
    pub size_bytes: u64,
}

/// A line of `info ramblock`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    name: String,
    size_bytes: u64,
    address: Option<u64>,
}

/// Returns the blocks of guest memory; `is_start` reports whether a mapping of the process begins
/// at an address.
///
/// # Errors
/// [`QmpError`]; its `Answer` if a block cannot be found.
pub fn ram_blocks(
    qemu: &mut QmpClient,
    is_start: &dyn Fn(u64) -> bool,
) -> Result<Vec<RamBlock>, QmpError> {
    let text = ask(qemu, "info ramblock")?;
    let listed = listed(&text);
    let placed = |block: &Listed| {
        Some(RamBlock {
            name: block.name.clone(),
            address: block.address?,
            size_bytes: block.size_bytes,
        })
    };
    match listed.iter().map(placed).collect() {
        Some(blocks) => Ok(blocks),
        None => walked(qemu, &listed, is_start),
    }
}

fn walked(
    qemu: &mut QmpClient,
    listed: &[Listed],
    is_start: &dyn Fn(u64) -> bool,
) -> Result<Vec<RamBlock>, QmpError> {
    let mut blocks: Vec<RamBlock> = Vec::new();
    let mut offset = 0;
    while blocks.len() < listed.len() {
        let mut found = None;
        for guest_address in candidates(offset) {
            let answer = ask(qemu, &format!("gpa2hva {guest_address:#x}"))?;
            // A candidate on the wrong side of the hole can be within a block that was found
            // already.
            found = host_address(&answer).filter(|(name, address)| {
                is_start(*address) && !blocks.iter().any(|block| block.name == *name)
            });
            if found.is_some() {
                break;
            }
        }
        let unknown = || not_understood("gpa2hva", &format!("offset {offset:#x}"), "guest memory");
        let (name, address) = found.ok_or_else(unknown)?;
        let entry = listed.iter().find(|entry| entry.name == name).ok_or_else(unknown)?;
        let size_bytes = entry.size_bytes;
        blocks.push(RamBlock { name, address, size_bytes });
        offset += size_bytes;
    }
    Ok(blocks)
}

/// Returns the possible guest-physical addresses of the byte at this offset in guest memory.
fn candidates(offset: u64) -> impl Iterator<Item = u64> {
    let above = LOW_ENDS.into_iter().filter(move |end| *end <= offset);
    std::iter::once(offset).chain(above.map(move |end| FOUR_GIB + offset - end))
}

fn ask(qemu: &mut QmpClient, line: &str) -> Result<String, QmpError> {
    let command = "human-monitor-command";
    let answer = qemu.execute(command, &json!({ "command-line": line }))?;
    let text = answer.as_str().map(ToOwned::to_owned);
    text.ok_or_else(|| not_understood(command, &answer.to_string(), "a text"))
}

/// Parses lines of name, page size, offset, used and total length, and in later versions the
/// address in the process.
fn listed(text: &str) -> Vec<Listed> {
    let block = |line: &str| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(hexadecimal).collect();
        let (size_bytes, address) = match numbers[..] {
            [_, _, size] => (size, None),
            [_, _, size, address] => (size, Some(address)),
            _ => return None,
        };
        let name = last_part(line.split_whitespace().next()?);
        // ROM blobs such as /rom@etc/acpi/tables are not guest memory.
        (size_bytes >= LEAST_BYTES && !line.contains("/rom@")).then_some(Listed {
            name,
            size_bytes,
            address,
        })
    };
    text.lines().filter_map(block).collect()
}

/// Parses `Host virtual address for 0x40000000 (m1) is 0x7f2d80000000`.
fn host_address(answer: &str) -> Option<(String, u64)> {
    let (_, rest) = answer.split_once('(')?;
    let (name, rest) = rest.split_once(") is ")?;
    Some((last_part(name), hexadecimal(rest.trim())?))
}

/// Returns a backend's id: some versions print its path, `/objects/m0`.
fn last_part(name: &str) -> String {
    name.rsplit('/').next().unwrap_or_default().to_owned()
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::super::client::tests::scripted;
    use super::*;

    fn answers(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| json!({ "return": text }).to_string()).collect()
    }

    /// Output of QEMU 7.2.22 (shortened).
    const OLD: &str = "\
              Block Name    PSize              Offset               Used              Total\r\n\
                      m0    4 KiB  0x0000000000000000 0x0000000080000000 0x0000000080000000\r\n\
                      m1    4 KiB  0x0000000080000000 0x0000000080000000 0x0000000080000000\r\n\
    /rom@etc/acpi/tables    4 KiB  0x0000000004080000 0x0000000000020000 0x0000000000200000\r\n\
                 pc.bios    4 KiB  0x0000000004000000 0x0000000000040000 0x0000000000040000\r\n";
    /// Output of QEMU 10.0 (shortened).
    const NEW: &str = "\
              Block Name    PSize              Offset               Used              Total                HVA  RO\n\
                      m0    4 KiB  0x0000000000000000 0x0000000002000000 0x0000000002000000 0x00007f2dc0000000  rw\n\
                 pc.bios    4 KiB  0x0000000004000000 0x0000000000040000 0x0000000000040000 0x00007f2e14c00000  ro\n";

    #[test]
    fn addresses_are_taken_from_qemu_if_it_lists_them() {
        let mut qemu = scripted(answers(&[NEW]));
        let expected =
            RamBlock { name: "m0".to_owned(), address: 0x7f2d_c000_0000, size_bytes: 32 << 20 };
        assert_eq!(ram_blocks(&mut qemu, &|_| true).unwrap(), [expected]);
    }

    #[test]
    fn guest_memory_is_walked_past_the_hole_if_qemu_lists_no_addresses() {
        let mut qemu = scripted(answers(&[
            OLD,
            "Host virtual address for 0x0 (m0) is 0x7f0080000000\r\n",
            "No memory is mapped at address 0x80000000\r\n",
            "Host virtual address for 0x100000000 (m1) is 0x7f0000000000\r\n",
        ]));
        let blocks = ram_blocks(&mut qemu, &|_| true).unwrap();
        let found: Vec<_> = blocks.iter().map(|b| (b.name.as_str(), b.address)).collect();
        assert_eq!(found, [("m0", 0x7f00_8000_0000), ("m1", 0x7f00_0000_0000)]);
    }

    #[test]
    fn memory_that_cannot_be_found_is_an_error() {
        let mut qemu = scripted(answers(&[OLD, "Memory at address 0x0 is not RAM\r\n"]));
        let error = ram_blocks(&mut qemu, &|_| true).unwrap_err();
        assert!(error.to_string().contains("offset 0x0"), "{error}");
        let said = "Host virtual address for 0x0 (m0) is 0x7f0080000000\r\n";
        let mut qemu = scripted(answers(&[OLD, said]));
        assert!(ram_blocks(&mut qemu, &|_| false).is_err(), "within a mapping");
    }
}
