//! Costs of accesses, as given by the firmware.

use crate::id::NodeId;

/// The initiators to which a set of attributes applies (Linux
/// `Documentation/admin-guide/mm/numaperf.rst`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum AccessClass {
    /// Any initiator, generic ones too: `access0`.
    #[default]
    Any,
    /// Cpus only: `access1`.
    Cpu,
}

/// Latency and bandwidth of an initiator's accesses to a target, as HMAT gives
/// them (ACPI 6.5, section 5.2.28.4). An absent figure is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccessAttributes {
    /// The node that accesses.
    pub initiator: NodeId,
    /// The node whose memory is accessed.
    pub target: NodeId,
    /// The initiators of the accesses.
    pub class: AccessClass,
    /// Read latency in picoseconds.
    pub read_latency_ps: Option<u64>,
    /// Write latency in picoseconds.
    pub write_latency_ps: Option<u64>,
    /// Read bandwidth in megabytes (10^6) per second.
    pub read_bandwidth_mb_per_s: Option<u64>,
    /// Write bandwidth in megabytes (10^6) per second.
    pub write_bandwidth_mb_per_s: Option<u64>,
}
