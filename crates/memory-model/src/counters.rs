//! Counters of accesses and costs, by phase, vCPU and node.
//!
//! Each vCPU's counters are written only by the thread that runs it; others may read them.

use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use spin::Once;

use crate::marker::PHASES;

/// A figure with one writer.
#[derive(Debug, Default)]
pub struct Figure(AtomicU64);

impl Figure {
    /// Returns zeroed figures, in memory that the host provides when they are first used.
    pub fn zeros(count: usize) -> Vec<Self> {
        vec![0; count].into_iter().map(|zero| Self(AtomicU64::new(zero))).collect()
    }

    /// Adds to the counter. Not an atomic addition, because there is no other writer.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    /// Replaces the value.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Returns the value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A load or a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads memory.
    Load,
    /// Writes memory.
    Store,
}

/// A vCPU's accesses to one node.
#[derive(Debug, Default)]
pub struct NodeFigures {
    /// Loads and stores.
    pub accesses: [Figure; 2],
    /// Number of these accesses that reached memory.
    pub misses: [Figure; 2],
    /// Cost of the misses, including waits.
    pub cost_ps: Figure,
    /// Part of the cost that is waiting for bandwidth.
    pub queue_ps: Figure,
    /// Modified lines that the caches wrote to memory.
    pub written_back: Figure,
}

impl NodeFigures {
    /// Returns loads and stores together.
    pub fn all(&self) -> u64 {
        self.accesses[0].get() + self.accesses[1].get()
    }
}

/// The counters of a vCPU in one phase. Aligned, so that vCPUs share no cache line.
#[derive(Debug)]
#[repr(align(128))]
pub struct VcpuFigures {
    /// Accesses by position of the node.
    pub nodes: Vec<NodeFigures>,
    /// Instructions in the blocks that were started.
    pub instructions: Figure,
    /// Accesses to devices.
    pub io: Figure,
    /// Accesses to memory of no node.
    pub other: Figure,
    /// Walks of page tables.
    pub walks: Figure,
    /// Page table entries that walks read, including those of a host's tables.
    pub references: Figure,
    /// Cost of translations: walks, and hits in TLBs beyond the first level.
    pub translation_ps: Figure,
    /// Time of the kernel in page faults and in freeing pages.
    pub faults: Figure,
    /// Time of the kernel in page faults and in freeing pages.
    pub faults_ps: Figure,
    /// System calls.
    pub calls: Figure,
    /// Time of the kernel in system calls.
    pub calls_ps: Figure,
    /// Cost of memory, caches and translations, including what instructions hide.
    pub cost_ps: Figure,
    /// Time of the vCPU: its instructions, the cost that they did not hide, and the kernel.
    pub time_ps: Figure,
}

impl VcpuFigures {
    fn new(nodes: usize) -> Self {
        Self {
            nodes: (0..nodes).map(|_| NodeFigures::default()).collect(),
            instructions: Figure::default(),
            io: Figure::default(),
            other: Figure::default(),
            walks: Figure::default(),
            references: Figure::default(),
            translation_ps: Figure::default(),
            faults: Figure::default(),
            faults_ps: Figure::default(),
            calls: Figure::default(),
            calls_ps: Figure::default(),
            cost_ps: Figure::default(),
            time_ps: Figure::default(),
        }
    }

    /// Returns true if nothing was counted.
    pub fn is_empty(&self) -> bool {
        let seen = [&self.instructions, &self.io, &self.other];
        seen.iter().all(|figure| figure.get() == 0) && self.nodes.iter().all(|node| node.all() == 0)
    }
}

/// The counters of a machine.
#[derive(Debug)]
pub struct Counters {
    phases: Vec<Once<Vec<VcpuFigures>>>,
    vcpus: usize,
    nodes: usize,
}

impl Counters {
    /// Creates counters, all 0.
    pub fn new(vcpus: usize, nodes: usize) -> Self {
        let phases = (0..PHASES).map(|_| Once::new()).collect();
        Self { phases, vcpus, nodes }
    }

    /// Returns a vCPU's counters in a phase.
    #[inline]
    pub fn of(&self, phase: usize, vcpu: usize) -> &VcpuFigures {
        let make = || (0..self.vcpus).map(|_| VcpuFigures::new(self.nodes)).collect();
        &self.phases[phase].call_once(make)[vcpu]
    }

    /// Returns true if any vCPU was in this phase.
    pub fn is_entered(&self, phase: usize) -> bool {
        self.phases[phase].get().is_some()
    }

    /// Returns the phases that were entered, with each vCPU's counters.
    pub fn phases(&self) -> impl Iterator<Item = (usize, &[VcpuFigures])> {
        let entered = self.phases.iter().enumerate();
        entered.filter_map(|(phase, vcpus)| Some((phase, vcpus.get()?.as_slice())))
    }
}
