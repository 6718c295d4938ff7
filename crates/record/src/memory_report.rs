//! Reports of the memory emulator about a guest or a program.

mod processes;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::profile::Ended;
use crate::program::ProgramMemory;

const SCHEMA: &str = "numalab-emulator/1";

/// A report of the memory emulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryReport {
    /// The version of the emulator.
    #[serde(default)]
    pub plugin: String,
    /// The QEMU that ran the guest.
    pub qemu: EmulatorQemu,
    /// The emulator's mode: accesses are only counted, or cost virtual time or sleep.
    pub mode: String,
    /// The start of counting: `on` (from the beginning) or `marker` (at the guest's first marker).
    #[serde(default)]
    pub start: String,
    /// The inverse of the share of accesses that was observed; counts are scaled.
    #[serde(default = "every_one")]
    pub sample: u64,
    /// The instructions that overlap with a miss, its own included, where no core is modelled.
    #[serde(default)]
    pub overlap: u64,
    /// The clock that accesses are charged to.
    #[serde(default)]
    pub time_source: String,
    /// The emulator's checks of itself.
    pub self_test: Vec<EmulatorCheck>,
    pub machine: EmulatedMachine,
    /// The number of markers by kind.
    #[serde(default)]
    pub markers: BTreeMap<String, u64>,
    /// The phases between the guest's markers.
    pub phases: Vec<EmulatedPhase>,
    /// The program, if a program was emulated rather than a machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramMemory>,
    /// The way the command ended, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Ended>,
}

#[derive(Debug, thiserror::Error)]
pub enum MemoryReportError {
    #[error("not a report of the memory emulator: {0}")]
    Json(serde_json::Error),
    #[error("schema {found:?}: expected {SCHEMA:?}, the memory emulator's report")]
    Schema { found: String },
}

/// The QEMU that ran a guest or a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulatorQemu {
    /// Its version, if known.
    #[serde(default)]
    pub version: Option<String>,
    /// The version of QEMU's plugin interface.
    #[serde(default)]
    pub api: i32,
    /// The architecture that QEMU emulates.
    #[serde(default)]
    pub target: String,
    pub vcpus: u64,
}

/// A check that the emulator makes of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulatorCheck {
    /// The subject of the check.
    pub check: String,
    pub passed: bool,
    pub detail: String,
}

/// The machine of a memory emulator, as far as its report describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulatedMachine {
    pub nodes: Vec<EmulatedNode>,
    /// Latencies in ns: one row per node with cpus, one column per node with memory.
    pub latency_ns: Vec<Vec<f64>>,
    /// Parameters of the cores, if they are modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<EmulatedCore>,
    /// All other members of the machine file that the emulator was given.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// A core of the emulated machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulatedCore {
    /// The time of an instruction that waits for nothing, in ns.
    pub ns_per_instruction: f64,
    /// All other parameters.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// A node of the emulated machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmulatedNode {
    pub id: u64,
    /// Ranges of its physical addresses, start and end.
    #[serde(default)]
    pub ranges: Vec<[u64; 2]>,
}

/// The phase between two of the guest's markers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulatedPhase {
    pub phase: u64,
    /// The name that the guest gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The counts of each cpu.
    pub vcpus: Vec<EmulatedCpu>,
}

/// The counts of a cpu, or of a program's thread, in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmulatedCpu {
    pub vcpu: u64,
    pub node: u64,
    pub instructions: u64,
    /// Virtual time in ns: instructions plus the cost of accesses.
    pub time_ns: u64,
    /// The cost of accesses in ns.
    pub cost_ns: u64,
    /// Accesses to devices.
    #[serde(default)]
    pub io: u64,
    /// Accesses outside of all nodes' memory.
    #[serde(default)]
    pub other: u64,
    /// Address translation, if it is modelled.
    #[serde(flatten)]
    pub translation: Option<EmulatedTranslation>,
    /// The share of accesses to nodes' memory that went to the cpu's own node; `None` without any.
    #[serde(default)]
    pub local_share: Option<f64>,
    /// Accesses to each node's memory.
    pub nodes: Vec<EmulatedAccesses>,
}

/// Address translation of a cpu.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmulatedTranslation {
    /// Page walks.
    pub walks: u64,
    /// References of page walks to memory and caches.
    pub walk_references: u64,
    /// The time of translations in ns.
    pub translation_ns: u64,
}

/// Accesses of one cpu to one node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmulatedAccesses {
    pub node: u64,
    pub loads: u64,
    pub stores: u64,
    /// Loads that missed all caches.
    pub load_misses: u64,
    /// Stores that missed all caches.
    pub store_misses: u64,
    /// Modified lines that caches evicted.
    #[serde(default)]
    pub lines_written_back: u64,
    /// The cost of accesses that missed all caches, in ns.
    pub cost_ns: u64,
    /// The part of that cost caused by contention for the memory, in ns.
    pub queue_ns: u64,
}

fn every_one() -> u64 {
    1
}

impl MemoryReport {
    /// Reads the report's JSON.
    ///
    /// # Errors
    ///
    /// [`MemoryReportError`] if it is not a report of a known version.
    pub fn read(text: &str) -> Result<Self, MemoryReportError> {
        #[derive(Deserialize)]
        struct Kind {
            #[serde(default)]
            schema: String,
        }
        let kind: Kind = serde_json::from_str(text).map_err(MemoryReportError::Json)?;
        if kind.schema != SCHEMA {
            return Err(MemoryReportError::Schema { found: kind.schema });
        }
        serde_json::from_str(text).map_err(MemoryReportError::Json)
    }
}

impl MemoryReport {
    /// Returns the program, if a program was emulated rather than a machine.
    pub fn program(&self) -> Option<&ProgramMemory> {
        self.program.as_ref()
    }

    /// Returns the total time of all its cpus or threads, in ns.
    pub fn time_ns(&self) -> u64 {
        let vcpus = self.phases.iter().flat_map(|phase| &phase.vcpus);
        vcpus.fold(0, |sum, cpu| sum.saturating_add(cpu.time_ns))
    }
}

impl EmulatedPhase {
    /// Returns the phase's name, or else its number.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.phase.to_string())
    }
}

impl EmulatedAccesses {
    /// Returns the number of accesses that reached memory.
    pub fn misses(&self) -> u64 {
        self.load_misses.saturating_add(self.store_misses)
    }
}

impl EmulatedCpu {
    /// Returns the number of accesses that reached the memory of any node.
    pub fn misses(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.misses()))
    }

    /// Returns the number of accesses that reached the memory of the cpu's own node.
    pub fn local_misses(&self) -> u64 {
        let own = self.nodes.iter().filter(|node| node.node == self.node);
        own.map(EmulatedAccesses::misses).fold(0, u64::saturating_add)
    }
}
