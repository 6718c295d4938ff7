//! Where entries of page tables are: those of a guest, or of a machine alone, and those of its host.

/// Levels of page tables that lead to a 4 KiB page; to a larger one, one or two fewer.
pub(crate) const LEVELS: usize = 4;
/// The lowest bit of an address that each level of tables looks at.
const LEVEL_BEGINS: [u32; LEVELS] = [39, 30, 21, 12];
/// Page tables lie above all memory (52 bits: Intel SDM 3A, 4.1.4), each level at its own place.
const TABLES: u64 = 1 << 52;
pub(crate) const TABLES_OF_LEVEL: u32 = 48;
/// The host's page tables lie above those of the guest.
const HOST_TABLES: u64 = 1 << 53;
/// Bytes of an entry.
const ENTRY_BYTES: u64 = 8;
/// A cache's tag is the key plus one, so that none may have all bits.
const NUMBER_MASK: u64 = (1 << 36) - 1;
/// The guest's tables are at addresses of the guest above its memory, each level at its own place.
const GUEST_TABLES: u64 = 1 << 41;
const GUEST_TABLES_OF_LEVEL: u32 = 39;

/// Where a level's entry for an address is.
pub(crate) fn entry(address: u64, level: usize) -> u64 {
    (TABLES | (level as u64) << TABLES_OF_LEVEL) + number(address, level) * ENTRY_BYTES
}

/// Where the host's entry of a level is for a guest-physical address.
pub(crate) fn host_entry(address: u64, level: usize) -> u64 {
    (HOST_TABLES | (level as u64) << TABLES_OF_LEVEL) + number(address, level) * ENTRY_BYTES
}

/// Number of a level's entry for an address.
pub(crate) fn number(address: u64, level: usize) -> u64 {
    (address >> LEVEL_BEGINS[level]) & NUMBER_MASK
}

/// The guest-physical address of a level's entry for a virtual address.
pub(crate) fn table(address: u64, level: usize) -> u64 {
    GUEST_TABLES + ((level as u64) << GUEST_TABLES_OF_LEVEL) + number(address, level) * ENTRY_BYTES
}
