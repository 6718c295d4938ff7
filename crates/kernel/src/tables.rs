//! The firmware's tables, found in physical memory with arbitrary content.
//!
//! Functions marked as never inlined have one caller; inlined, they would take 2 KiB more.

use alloc::vec;
use alloc::vec::Vec;

use numalab_acpi::{AnyTable, Severity, Signature, Slot, Tables, checksum};
use numalab_topology::Finding;

/// Physical memory that can be read.
pub trait Physical {
    /// Returns `bytes` bytes from an address; `None` if there is no known memory.
    fn read(&self, address: u64, bytes: usize) -> Option<&[u8]>;
}

/// The tables that were found, with findings about them.
#[derive(Debug, Default)]
pub struct FoundTables<'p> {
    /// The tables that the kernel can use.
    pub tables: Tables<'p>,
    /// Odd or wrong facts; a table with an error is not used.
    pub findings: Vec<Finding>,
}

/// The largest length of a table.
const LONGEST_BYTES: usize = 1 << 20;
/// The largest number of entries of a root table.
const MOST_TABLES: usize = 512;
/// The largest number of reported findings; the rest are counted.
const MOST_FINDINGS: usize = 24;

/// Follows the RSDP at an address, or searches for one where a BIOS puts it.
pub fn find<'p>(memory: &'p impl Physical, rsdp: Option<u64>) -> FoundTables<'p> {
    let mut found = FoundTables::default();
    let Some(root) = rsdp.or_else(|| scan(memory)).and_then(|at| root_of(memory, at)) else {
        found.say(Severity::Warning, "no-tables", "RSDP", "no ACPI tables were found");
        return found;
    };
    let Some(entries) = table_at(memory, root.address) else {
        let place = alloc::format!("root table at {:#x}", root.address);
        found.say(Severity::Warning, "no-tables", &place, "cannot be read");
        return found;
    };
    let entries = entries.get(36..).unwrap_or_default().chunks_exact(root.entry_bytes);
    let mut nowhere = 0;
    for entry in entries.take(MOST_TABLES) {
        let mut address = [0; 8];
        address[..root.entry_bytes].copy_from_slice(entry);
        let address = u64::from_le_bytes(address);
        let head = memory.read(address, 4).and_then(|bytes| bytes.try_into().ok()).map(Signature);
        match head {
            Some(signature) => found.take(memory, address, signature),
            None => nowhere += 1,
        }
    }
    if nowhere > 0 {
        let place = alloc::format!("root table at {:#x}", root.address);
        let message = alloc::format!("{nowhere} of its tables are outside of memory");
        found.say(Severity::Warning, "table-nowhere", &place, &message);
    }
    found.check();
    found
}

struct Root {
    address: u64,
    entry_bytes: usize,
}

/// Returns the RSDP's root table (ACPI 6.5 §5.2.5.3), the longer one if there are two.
#[inline(never)]
fn root_of(memory: &impl Physical, at: u64) -> Option<Root> {
    let short = memory.read(at, 20)?;
    if !short.starts_with(b"RSD PTR ") || checksum(short) != 0 {
        return None;
    }
    if short[15] >= 2
        && let Some(long) = memory.read(at, 36).filter(|bytes| checksum(bytes) == 0)
        && let Some(address) = long.get(24..32).and_then(|bytes| bytes.try_into().ok())
        && u64::from_le_bytes(address) != 0
    {
        return Some(Root { address: u64::from_le_bytes(address), entry_bytes: 8 });
    }
    let address = short[16..20].try_into().ok()?;
    Some(Root { address: u32::from_le_bytes(address).into(), entry_bytes: 4 })
}

/// Searches the BIOS's read-only memory, where an RSDP is on a 16-byte boundary.
fn scan(memory: &impl Physical) -> Option<u64> {
    (0xe_0000..0x10_0000).step_by(16).find(|&at| root_of(memory, at).is_some())
}

/// Returns a table's bytes, with the length from its header, if that is plausible.
fn table_at(memory: &impl Physical, address: u64) -> Option<&[u8]> {
    let length = memory.read(address, 36)?.get(4..8)?;
    let length = u32::from_le_bytes(length.try_into().ok()?);
    let length = usize::try_from(length).ok().filter(|length| *length <= LONGEST_BYTES)?;
    memory.read(address, length.max(36))
}

impl<'p> FoundTables<'p> {
    /// Adds a table, if its kind is supported.
    #[inline(never)]
    fn take(&mut self, memory: &'p impl Physical, address: u64, signature: Signature) {
        if !Signature::ALL.contains(&signature) {
            return;
        }
        let place = alloc::format!("{signature} at {address:#x}");
        let Some(bytes) = table_at(memory, address) else {
            self.say(Severity::Error, "table-unreadable", &place, "its length is impossible");
            return;
        };
        match AnyTable::read(bytes) {
            Ok(table) => self.tables.insert(table),
            Err(finding) => {
                let message = alloc::format!("{finding}");
                self.say(Severity::Error, finding.code(), &place, &message);
            }
        }
    }

    /// Removes the tables with errors, and reports all findings.
    #[inline(never)]
    fn check(&mut self) {
        let mut scratch = vec![Slot::default(); self.tables.scratch_slots()];
        let mut all = Vec::new();
        // The scratch memory has the required number of slots.
        let _ = numalab_acpi::check(&self.tables, &mut scratch, &mut |finding| all.push(finding));
        for finding in &all {
            // Only the MADT lists processors, whatever is wrong with it.
            if finding.severity() == Severity::Error && finding.table != Signature::MADT {
                self.tables.remove(finding.table);
            }
        }
        let omitted = all.len().saturating_sub(MOST_FINDINGS);
        for finding in all.iter().take(MOST_FINDINGS) {
            self.findings.push(finding.into());
        }
        if omitted > 0 {
            let message = alloc::format!("{omitted} more findings");
            self.say(Severity::Note, "more", "tables", &message);
        }
    }

    fn say(&mut self, severity: Severity, code: &str, place: &str, message: &str) {
        self.findings.push(Finding::new(severity, code, place, message));
    }
}
