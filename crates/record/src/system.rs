//! Single-step queries of a system: its knobs, a probe, its ACPI tables, its topology.

use numalab_topology::{CpuId, Finding, Machine, NodeId};
use serde::{Deserialize, Serialize};

use crate::no_effect::NoEffect;
use crate::study::Reading;

/// The current values of the kernel's knobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KnobList {
    /// The knobs, in the order requested.
    pub knobs: Vec<KnobNow>,
}

/// The bundled machine files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MachineList {
    /// The machines, by name.
    pub machines: Vec<BundledMachine>,
}

/// A bundled machine file in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BundledMachine {
    /// The name by which options take it.
    pub name: String,
    /// The machine in a few words.
    pub title: String,
}

/// A knob with its current value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KnobNow {
    /// The knob's name.
    pub name: String,
    /// The knob's files.
    pub files: Vec<String>,
    /// The state of its value.
    pub state: KnobState,
    /// The knob's value, if it can be read.
    pub value: Option<String>,
    /// True if a change can have an effect here.
    pub acts: bool,
    /// The reason why a change cannot have an effect.
    pub why_not: Option<NoEffect>,
    /// A description; empty for a knob given by its file.
    pub summary: String,
}

/// Access to the value of a knob, and whether there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KnobState {
    /// The knob has a value.
    Value,
    /// The knob can be written but not read.
    WriteOnly,
    /// The knob does not exist.
    Absent,
    /// The knob exists but cannot be read.
    Denied,
}

/// The result of a probe of whether memory follows its thread to another node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BalancingProbed {
    /// The initial place of thread and memory.
    pub from: ProbedPlace,
    /// The place that the thread moved to.
    pub to: ProbedPlace,
    /// The size of the memory in bytes.
    pub size_bytes: u64,
    /// The figures, named as in workloads: `latency-end`, `latency-begin` and `local`.
    pub readings: Vec<Reading>,
    /// Each window's end in nanoseconds since the move, and its latency in nanoseconds.
    pub windows_ns: Vec<(u64, f64)>,
}

/// A cpu and its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProbedPlace {
    pub cpu: CpuId,
    /// The cpu's node.
    pub node: NodeId,
}

impl BalancingProbed {
    /// Returns the value of a figure, by name.
    pub fn value(&self, name: &str) -> Option<f64> {
        let of = self.readings.iter().find(|reading| reading.quantity.metric == name);
        of.map(|reading| reading.value)
    }
}

/// ACPI tables and their findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AcpiShown {
    /// The tables that could be read.
    pub tables: Vec<AcpiTable>,
    /// The tables that could not be read, each with the reason.
    pub refused: Vec<String>,
    /// The findings about each table, and about contradictions between them.
    pub findings: Vec<Finding>,
}

/// An ACPI table, decoded line by line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AcpiTable {
    /// The file, and the table's position if it holds several.
    pub place: String,
    /// The table's signature, such as `SRAT`.
    pub signature: String,
    /// The table's revision.
    pub revision: u8,
    /// The table's length in bytes.
    pub length_bytes: u32,
    /// The table's header as text.
    #[serde(skip)]
    pub header: String,
    /// The table's entries as text, one per line.
    pub entries: Vec<String>,
}

/// A machine, and findings about its description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Described {
    pub machine: Machine,
    pub findings: Vec<Finding>,
}
