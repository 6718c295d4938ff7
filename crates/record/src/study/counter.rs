//! Names of counters of the memory emulator, next to those of `/proc/vmstat`.

pub const WALKS: &str = "emulated_walks";
/// Entries of page tables that walks read.
pub const REFERENCES: &str = "emulated_walk_references";
/// The largest number of entries that one walk has read under a treatment.
pub const LONGEST: &str = "emulated_longest_walk";
/// Time of address translation in ns.
pub const TRANSLATION_NS: &str = "emulated_translation_ns";
/// Time of the cpus in ns.
pub const TIME_NS: &str = "emulated_time_ns";
/// Loads and stores.
pub const ACCESSES: &str = "emulated_accesses";
