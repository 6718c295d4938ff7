//! Reports of the memory emulator about a guest or a program.

mod processes;

use serde::Deserialize;

use crate::profile::Ended;
use crate::program::{CodePlace, ProgramMemory};

const SCHEMA: &str = "numalab-emulator/1";

/// A report of the memory emulator.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct MemoryReport {
    schema: String,
    /// The text of the report.
    #[serde(skip)]
    pub text: String,
    /// The emulator's mode: accesses are only counted, or cost virtual time or sleep.
    pub mode: String,
    /// The QEMU that ran it.
    pub qemu: EmulatorQemu,
    /// The sampling interval: one access in this many was observed, and counts are scaled.
    #[serde(default = "every_one")]
    pub sample: u64,
    /// The emulator's checks of itself.
    pub self_test: Vec<EmulatorCheck>,
    pub machine: EmulatedMachine,
    /// The phases between the guest's markers.
    pub phases: Vec<EmulatedPhase>,
    /// The program, if a program was emulated rather than a machine.
    pub program: Option<ProgramMemory>,
    /// The way the command ended, if it failed.
    #[serde(default)]
    pub failed: Option<Ended>,
}

/// An invalid report.
#[derive(Debug, thiserror::Error)]
pub enum MemoryReportError {
    /// The text is not JSON of this form.
    #[error("not a report of the memory emulator: {0}")]
    Json(serde_json::Error),
    /// The report is of another kind or version.
    #[error("schema {found:?}: expected {SCHEMA:?}, the memory emulator's report")]
    Schema { found: String },
}

/// The QEMU that ran a guest or a program.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EmulatorQemu {
    pub vcpus: u64,
}

/// A check that the emulator makes of itself.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EmulatorCheck {
    /// The subject of the check.
    pub check: String,
    pub passed: bool,
    pub detail: String,
}

/// The machine of a memory emulator, as far as its report describes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EmulatedMachine {
    pub nodes: Vec<EmulatedNode>,
    /// Latencies in ns: one row per node with cpus, one column per node with memory.
    pub latency_ns: Vec<Vec<f64>>,
    /// Parameters of the cores, if they are modelled.
    pub core: Option<EmulatedCore>,
}

/// A core of the emulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct EmulatedCore {
    /// The time of an instruction that waits for nothing, in ns.
    pub ns_per_instruction: f64,
}

/// A node of the emulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct EmulatedNode {
    pub id: u64,
}

/// The phase between two of the guest's markers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EmulatedPhase {
    pub phase: u64,
    /// The name that the guest gave it.
    pub name: Option<String>,
    /// The counts of each cpu.
    pub vcpus: Vec<EmulatedCpu>,
}

/// The counts of a cpu, or of a program's thread, in a phase.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EmulatedCpu {
    pub vcpu: u64,
    pub node: u64,
    pub instructions: u64,
    /// Virtual time in ns: instructions plus the cost of accesses.
    pub time_ns: u64,
    /// The cost of accesses in ns.
    pub cost_ns: u64,
    /// Accesses to each node's memory.
    pub nodes: Vec<EmulatedAccesses>,
}

/// Accesses of one cpu to one node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct EmulatedAccesses {
    pub node: u64,
    pub loads: u64,
    pub stores: u64,
    /// Loads that missed all caches.
    pub load_misses: u64,
    /// Stores that missed all caches.
    pub store_misses: u64,
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
        let report: Self = serde_json::from_str(text).map_err(MemoryReportError::Json)?;
        Ok(Self { text: text.to_owned(), ..report })
    }
}

impl MemoryReport {
    /// Returns the program, if a program was emulated rather than a machine.
    pub fn program(&self) -> Option<&ProgramMemory> {
        self.program.as_ref()
    }

    /// Replaces every code place that the report names by its frames, innermost first.
    ///
    /// # Errors
    ///
    /// The error of the JSON writer.
    pub fn name_code(
        &mut self,
        frames: impl FnMut(&CodePlace) -> Vec<CodePlace>,
    ) -> serde_json::Result<()> {
        let Some(program) = &mut self.program else { return Ok(()) };
        program.name_code(frames);
        let mut whole: serde_json::Value = serde_json::from_str(&self.text)?;
        let named = serde_json::to_value(program)?;
        if let (Some(there), serde_json::Value::Object(named)) =
            (whole["program"].as_object_mut(), named)
        {
            there.extend(named);
        }
        self.text = serde_json::to_string_pretty(&whole)? + "\n";
        Ok(())
    }

    /// Adds how the command ended to the report of a command that failed.
    ///
    /// # Errors
    ///
    /// The error of the JSON writer.
    pub fn set_failed(&mut self, ended: Ended) -> serde_json::Result<()> {
        self.failed = Some(ended);
        let mut whole: serde_json::Value = serde_json::from_str(&self.text)?;
        whole["failed"] = serde_json::to_value(ended)?;
        self.text = serde_json::to_string_pretty(&whole)? + "\n";
        Ok(())
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
