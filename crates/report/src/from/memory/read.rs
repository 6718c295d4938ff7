//! The emulator's JSON.

use numalab_analysis::run::Axis;
use numalab_record::{CodePlace, ProgramMemory};
use serde::Deserialize;

const SCHEMA: &str = "numalab-emulator/1";

/// What the emulator reported of a guest.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct MemoryReport {
    schema: String,
    /// The text that was read.
    #[serde(skip)]
    pub(super) text: String,
    pub(super) mode: String,
    pub(super) qemu: Qemu,
    /// One access in so many was looked at; counts are scaled.
    #[serde(default = "every_one")]
    pub(super) sample: u64,
    pub(super) self_test: Vec<Check>,
    pub(super) machine: Machine,
    pub(super) phases: Vec<Phase>,
    /// What ran, where it was no machine.
    pub(super) program: Option<ProgramMemory>,
}

/// Why a text is no report.
#[derive(Debug)]
pub enum MemoryReportError {
    /// It is no JSON of this form.
    Json(serde_json::Error),
    /// It is of another kind or version.
    Schema {
        /// What it says it is.
        found: String,
    },
}

impl core::fmt::Display for MemoryReportError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Json(error) => write!(f, "no report of the memory emulator: {error}"),
            Self::Schema { found } => {
                write!(f, "schema {found:?}: expected {SCHEMA:?}, the memory emulator's report")
            }
        }
    }
}

impl std::error::Error for MemoryReportError {}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Qemu {
    pub(super) vcpus: u64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Check {
    pub(super) check: String,
    pub(super) passed: bool,
    pub(super) detail: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Machine {
    pub(super) nodes: Vec<MachineNode>,
    pub(super) latency_ns: Vec<Vec<f64>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct MachineNode {
    pub(super) id: u64,
}

/// What happened between two phase markers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Phase {
    pub(super) phase: u64,
    /// As the guest named it.
    pub(super) name: Option<String>,
    pub(super) vcpus: Vec<Vcpu>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Vcpu {
    pub(super) vcpu: u64,
    pub(super) node: u64,
    pub(super) time_ns: u64,
    pub(super) nodes: Vec<Accesses>,
}

/// Accesses of one cpu to one node's memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Accesses {
    pub(super) node: u64,
    pub(super) loads: u64,
    pub(super) stores: u64,
    pub(super) load_misses: u64,
    pub(super) store_misses: u64,
    pub(super) cost_ns: u64,
    pub(super) queue_ns: u64,
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

    /// What runs: a program's threads, or a machine's cpus.
    pub(super) fn axis(&self) -> Axis {
        if self.program.is_some() { Axis::Thread } else { Axis::Cpu }
    }
}

impl Phase {
    /// Its name, else its number.
    pub(super) fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.phase.to_string())
    }
}

impl Accesses {
    /// Accesses that reached memory.
    pub(super) fn misses(&self) -> u64 {
        self.load_misses.saturating_add(self.store_misses)
    }
}

impl Vcpu {
    /// Accesses that reached memory of any node.
    pub(super) fn misses(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.misses()))
    }

    /// Those that reached memory of the cpu's own node.
    pub(super) fn local_misses(&self) -> u64 {
        let own = self.nodes.iter().filter(|node| node.node == self.node);
        own.map(Accesses::misses).fold(0, u64::saturating_add)
    }
}
