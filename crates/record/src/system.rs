//! What is asked of a system in one step: its knobs, a probe, its ACPI tables, its topology.

use numalab_topology::{CpuId, Finding, Machine, NodeId};
use serde::{Deserialize, Serialize};

use crate::no_effect::NoEffect;
use crate::study::Reading;

/// What the kernel's knobs hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnobList {
    /// The knobs, in the order asked for.
    pub knobs: Vec<KnobNow>,
}

/// A knob, what it holds now, and whether it can act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnobNow {
    /// Its name.
    pub name: String,
    /// The files that it is.
    pub files: Vec<String>,
    /// Whether it has a value.
    pub state: KnobState,
    /// Its value, if it can be read.
    pub value: Option<String>,
    /// Whether a change can have an effect here.
    pub acts: bool,
    /// Why not.
    pub why_not: Option<NoEffect>,
    /// What it is; empty for one that was named by its file.
    pub summary: String,
}

/// Whether a knob has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum KnobState {
    /// It has.
    Value,
    /// It can be written and not read.
    WriteOnly,
    /// It is not there.
    Absent,
    /// It is there and may not be read.
    Denied,
}

/// Whether memory followed its thread to another node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BalancingProbed {
    /// Where the memory was placed.
    pub from: ProbedPlace,
    /// Where the thread moved to.
    pub to: ProbedPlace,
    /// Size of the memory in bytes.
    pub size_bytes: u64,
    /// The figures, as workloads have them: `latency-end`, `latency-begin` and `local`.
    pub readings: Vec<Reading>,
    /// Each window: when it ended, in nanoseconds since the move, and its latency in
    /// nanoseconds.
    pub windows_ns: Vec<(u64, f64)>,
}

/// A cpu and its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbedPlace {
    /// The cpu.
    pub cpu: CpuId,
    /// Its node.
    pub node: NodeId,
}

impl BalancingProbed {
    /// The value of a figure, by name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        let of = self.readings.iter().find(|reading| reading.quantity.metric == name);
        of.map(|reading| reading.value)
    }
}

/// ACPI tables, and what is odd about them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcpiShown {
    /// The tables that could be read.
    pub tables: Vec<AcpiTable>,
    /// Those that could not, with the reason.
    pub refused: Vec<String>,
    /// What is odd about each table, and about what they say of each other.
    pub findings: Vec<Finding>,
}

/// An ACPI table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcpiTable {
    /// The file, and the table in it where it holds several.
    pub place: String,
    /// Its signature: `SRAT`.
    pub signature: String,
    /// Its revision.
    pub revision: u8,
    /// Its length in bytes.
    pub length_bytes: u32,
    /// Its header as text.
    #[serde(skip)]
    pub header: String,
    /// Its entries as text, a line each.
    pub entries: Vec<String>,
}

/// A machine, and what is odd about its description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Described {
    /// The machine.
    pub machine: Machine,
    /// What is odd.
    pub findings: Vec<Finding>,
}
