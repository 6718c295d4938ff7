//! What a program did to the memory of a machine that was emulated for it.

use serde::{Deserialize, Serialize};

/// One process, as the memory emulator saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramMemory {
    /// Its number.
    pub process: u32,
    /// The program that it went on as, which was not emulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub became: Option<String>,
    /// Ranges of addresses that it used, each as one thing.
    pub regions: Vec<Region>,
    /// Accesses to pages for which the machine had no memory left.
    pub unplaced: u64,
}

/// A mapping, the heap or a stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Region {
    /// The first address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// The file that is mapped, or `[heap]`, `[stack]`, `[anonymous]`.
    pub name: String,
    /// By the cpus' node and the memory's, where there were any.
    pub accesses: Vec<RegionAccesses>,
}

/// What the cpus of a node did to a region's pages on a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegionAccesses {
    /// The cpus' node.
    pub cpu_node: u32,
    /// The pages' node.
    pub memory_node: u32,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// How long threads waited for them, in ns.
    pub waited_ns: u64,
}
