//! What the memory emulator reports of a guest or a program.

mod processes;

use serde::Deserialize;

use crate::program::{CodePlace, ProgramMemory};

const SCHEMA: &str = "numalab-emulator/1";

/// What the emulator reported.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct MemoryReport {
    schema: String,
    /// The text that was read.
    #[serde(skip)]
    pub text: String,
    /// Whether accesses are counted, or cost virtual time or sleep.
    pub mode: String,
    /// The QEMU in which it ran.
    pub qemu: EmulatorQemu,
    /// One access in so many was looked at; counts are scaled.
    #[serde(default = "every_one")]
    pub sample: u64,
    /// What the emulator found of itself.
    pub self_test: Vec<EmulatorCheck>,
    /// What was charged.
    pub machine: EmulatedMachine,
    /// What happened between markers.
    pub phases: Vec<EmulatedPhase>,
    /// What ran, where it was no machine.
    pub program: Option<ProgramMemory>,
}

/// Why a text is no report.
#[derive(Debug, thiserror::Error)]
pub enum MemoryReportError {
    /// It is no JSON of this form.
    #[error("no report of the memory emulator: {0}")]
    Json(serde_json::Error),
    /// It is of another kind or version.
    #[error("schema {found:?}: expected {SCHEMA:?}, the memory emulator's report")]
    Schema {
        /// What it says it is.
        found: String,
    },
}

/// The QEMU in which a guest or a program ran.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EmulatorQemu {
    /// How many vCPUs it had.
    pub vcpus: u64,
}

/// What the emulator found of itself.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EmulatorCheck {
    /// What was looked at.
    pub check: String,
    /// Whether it is as it must be.
    pub passed: bool,
    /// What was found.
    pub detail: String,
}

/// What was charged.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EmulatedMachine {
    /// Its nodes.
    pub nodes: Vec<EmulatedNode>,
    /// Latencies in ns: a row for each node of cpus, a column for each of memory.
    pub latency_ns: Vec<Vec<f64>>,
    /// Its cores, where they are modelled.
    pub core: Option<EmulatedCore>,
}

/// A core of the charged machine.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct EmulatedCore {
    /// What an instruction takes that waits for nothing.
    pub ns_per_instruction: f64,
}

/// A node of the charged machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct EmulatedNode {
    /// Its number.
    pub id: u64,
}

/// What happened between two phase markers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EmulatedPhase {
    /// Its number.
    pub phase: u64,
    /// As the guest named it.
    pub name: Option<String>,
    /// What each cpu did.
    pub vcpus: Vec<EmulatedCpu>,
}

/// What a cpu, or a program's thread, did in a phase.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EmulatedCpu {
    /// Its number.
    pub vcpu: u64,
    /// Its node.
    pub node: u64,
    /// Instructions.
    pub instructions: u64,
    /// Virtual time in ns: instructions, and what accesses cost beyond them.
    pub time_ns: u64,
    /// What accesses cost, in ns.
    pub cost_ns: u64,
    /// Its accesses to each node's memory.
    pub nodes: Vec<EmulatedAccesses>,
}

/// Accesses of one cpu to one node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct EmulatedAccesses {
    /// The node.
    pub node: u64,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Loads that no cache had.
    pub load_misses: u64,
    /// Stores that no cache had.
    pub store_misses: u64,
    /// What those that no cache had cost, in ns.
    pub cost_ns: u64,
    /// What those waited because others loaded the memory, in ns.
    pub queue_ns: u64,
}

fn every_one() -> u64 {
    1
}

impl MemoryReport {
    /// Reads the report's JSON.
    ///
    /// # Errors
    /// [`MemoryReportError`].
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
    /// The program that ran, where it was no machine.
    #[must_use]
    pub fn program(&self) -> Option<&ProgramMemory> {
        self.program.as_ref()
    }

    /// Gives the places in the program's code that the report names their source.
    ///
    /// # Errors
    /// What the writer of JSON says.
    pub fn name_code(&mut self, name: impl FnMut(&mut CodePlace)) -> serde_json::Result<()> {
        let Some(program) = &mut self.program else { return Ok(()) };
        program.places_mut().for_each(name);
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

    /// The time of all its cpus or threads together, in ns.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        let vcpus = self.phases.iter().flat_map(|phase| &phase.vcpus);
        vcpus.fold(0, |sum, cpu| sum.saturating_add(cpu.time_ns))
    }
}

impl EmulatedPhase {
    /// Its name, else its number.
    #[must_use]
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.phase.to_string())
    }
}

impl EmulatedAccesses {
    /// Accesses that reached memory.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.load_misses.saturating_add(self.store_misses)
    }
}

impl EmulatedCpu {
    /// Accesses that reached memory of any node.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.misses()))
    }

    /// Those that reached memory of the cpu's own node.
    #[must_use]
    pub fn local_misses(&self) -> u64 {
        let own = self.nodes.iter().filter(|node| node.node == self.node);
        own.map(EmulatedAccesses::misses).fold(0, u64::saturating_add)
    }
}
