//! Ranges of physical memory.

use crate::id::NodeId;

/// The purpose of a range of physical memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum MemoryKind {
    /// Ordinary memory.
    #[default]
    Ordinary,
    /// Memory that the firmware reserves for special purposes (UEFI `EFI_MEMORY_SP`):
    /// high-bandwidth or CXL memory.
    SpecialPurpose,
    /// Memory that keeps its content without power.
    NonVolatile,
}

/// A range of physical addresses on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryRange {
    /// The first physical address.
    pub base: u64,
    /// Length in bytes.
    pub length_bytes: u64,
    /// The node it belongs to.
    pub node: NodeId,
    /// True if the memory can be added or removed while the system runs.
    pub hot_pluggable: bool,
    /// The purpose of the memory.
    pub kind: MemoryKind,
}

impl MemoryRange {
    /// Returns the first address after the range; `None` if that is beyond 64 bits.
    pub fn end(&self) -> Option<u64> {
        self.base.checked_add(self.length_bytes)
    }
}
