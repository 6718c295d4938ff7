//! Machines made from a few numbers, as a base for emulated nodes.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

use alloc::vec::Vec;

use crate::cpu::Cpu;
use crate::distance::Distances;
use crate::fallback::REMOTE_DISTANCE;
use crate::id::{CpuId, NodeId};
use crate::machine::Machine;
use crate::memory::{MemoryKind, MemoryRange};
use crate::node::Node;

/// Address at which a PC's memory continues after the hole for devices.
const HIGH_BASE: u64 = 4 << 30;
/// Amount of memory above which QEMU's q35 machine moves a part above the hole
/// (`hw/i386/pc_q35.c`).
const LOW_LIMIT: u64 = 0xb000_0000;
/// Amount of memory that then stays below the hole.
const LOW_BYTES: u64 = 2 << 30;

/// The shape of a machine with one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniformMachine {
    /// Logical cpus.
    pub cpus: u32,
    /// Logical cpus per core.
    pub threads_per_core: u32,
    /// Number of packages.
    pub packages: u32,
    /// L3 groups in the whole machine.
    pub l3_groups: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// Reasons why numbers do not form a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UniformError {
    /// The numbers are not consistent with each other.
    #[error(
        "{cpus} cpus, {threads_per_core} threads per core, {packages} packages, \
         {l3_groups} L3 groups: expected at least one core in each L3 group, one L3 group \
         in each package, and whole cores"
    )]
    Shape { cpus: u32, threads_per_core: u32, packages: u32, l3_groups: u32 },
    /// There are more cpus than an id list can hold.
    #[error("{cpus} cpus: expected at most {}", crate::MAX_ID + 1)]
    TooManyCpus { cpus: u32 },
}

impl UniformMachine {
    /// Returns the shape with one L3 group per package and one cpu per core; `cpus` are those of all
    /// packages.
    pub const fn of_packages(packages: u32, cpus: u32, memory_bytes: u64) -> Self {
        Self { cpus, threads_per_core: 1, packages, l3_groups: packages, memory_bytes }
    }

    /// Builds the machine: cpus numbered package by package, with SMT siblings next to each other
    /// (as in QEMU), cores and L3 groups divided evenly, and memory laid out as in QEMU's q35
    /// machine, with a hole below 4 GiB.
    ///
    /// # Errors
    /// [`UniformError`] if the numbers are not consistent.
    pub fn build(&self) -> Result<Machine, UniformError> {
        self.check()?;
        let cores = self.cpus / self.threads_per_core;
        let cpus: Vec<Cpu> = (0..self.cpus).map(|id| self.cpu(id, cores)).collect();
        let node = Node {
            id: NodeId(0),
            online: true,
            cpus: cpus.iter().map(|cpu| cpu.id).collect(),
            memory_bytes: self.memory_bytes,
            ..Node::default()
        };
        Ok(Machine {
            nodes: Vec::from([node]),
            cpus,
            distances: Distances::uniform(1, REMOTE_DISTANCE),
            ranges: self.ranges(),
            ..Machine::default()
        })
    }

    fn check(&self) -> Result<(), UniformError> {
        if self.cpus > crate::MAX_ID + 1 {
            return Err(UniformError::TooManyCpus { cpus: self.cpus });
        }
        let whole = self.threads_per_core > 0 && self.cpus.is_multiple_of(self.threads_per_core);
        let nested = whole
            && (1..=self.l3_groups).contains(&self.packages)
            && self.l3_groups <= self.cpus / self.threads_per_core;
        if nested {
            return Ok(());
        }
        Err(UniformError::Shape {
            cpus: self.cpus,
            threads_per_core: self.threads_per_core,
            packages: self.packages,
            l3_groups: self.l3_groups,
        })
    }

    fn cpu(&self, id: u32, cores: u32) -> Cpu {
        // The bound on cpus keeps both products within 32 bits.
        let core = id / self.threads_per_core;
        let l3_group = core * self.l3_groups / cores;
        Cpu {
            id: CpuId(id),
            online: true,
            node: Some(NodeId(0)),
            package: Some(l3_group * self.packages / self.l3_groups),
            core: Some(core),
            thread: id % self.threads_per_core,
            l3_group: Some(l3_group),
            apic_id: None,
        }
    }

    fn ranges(&self) -> Vec<MemoryRange> {
        let low = if self.memory_bytes >= LOW_LIMIT { LOW_BYTES } else { self.memory_bytes };
        let range = |(base, length_bytes)| MemoryRange {
            base,
            length_bytes,
            node: NodeId(0),
            hot_pluggable: false,
            kind: MemoryKind::Ordinary,
        };
        let spans = [(0, low), (HIGH_BASE, self.memory_bytes - low)];
        spans.into_iter().filter(|&(_, length)| length > 0).map(range).collect()
    }
}
