//! Addresses of page table entries: those of a guest or of bare metal, and those of a host.

/// Levels of page tables down to a 4 KiB page; a larger page has one or two fewer.
pub(crate) const LEVELS: usize = 4;
/// The lowest bit of an address that indexes each level.
const LEVEL_BEGINS: [u32; LEVELS] = [39, 30, 21, 12];
/// Page tables are above all memory (52 bits: Intel SDM 3A, 4.1.4), with a separate range for each
/// level.
const TABLES: u64 = 1 << 52;
pub(crate) const TABLES_OF_LEVEL: u32 = 48;
/// The host's page tables are above those of the guest.
const HOST_TABLES: u64 = 1 << 53;
/// Bytes per entry.
const ENTRY_BYTES: u64 = 8;
/// A cache's tag is the key plus one, so a key must not have all bits set.
const NUMBER_MASK: u64 = (1 << 36) - 1;
/// In guest-physical addresses, the guest's tables are above its memory, with a separate range for
/// each level.
const GUEST_TABLES: u64 = 1 << 41;
const GUEST_TABLES_OF_LEVEL: u32 = 39;

/// Returns the address of a level's entry for an address.
pub(crate) fn entry(address: u64, level: usize) -> u64 {
    (TABLES | (level as u64) << TABLES_OF_LEVEL) + number(address, level) * ENTRY_BYTES
}

/// Returns the address of the host's entry of a level for a guest-physical address.
pub(crate) fn host_entry(address: u64, level: usize) -> u64 {
    (HOST_TABLES | (level as u64) << TABLES_OF_LEVEL) + number(address, level) * ENTRY_BYTES
}

/// Returns the number of a level's entry for an address.
pub(crate) fn number(address: u64, level: usize) -> u64 {
    (address >> LEVEL_BEGINS[level]) & NUMBER_MASK
}

/// Returns the guest-physical address of a level's entry for a virtual address.
pub(crate) fn table(address: u64, level: usize) -> u64 {
    GUEST_TABLES + ((level as u64) << GUEST_TABLES_OF_LEVEL) + number(address, level) * ENTRY_BYTES
}
