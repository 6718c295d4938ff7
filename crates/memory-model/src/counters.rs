//! What was counted, by phase, vCPU and node.
//!
//! A vCPU's figures are written by the thread that runs it alone; others may read them.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use spin::Once;

use crate::marker::PHASES;

/// A figure with one writer.
#[derive(Debug, Default)]
pub struct Figure(AtomicU64);

impl Figure {
    /// Adds to it. Not atomic against another writer: there is none.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    /// Makes it this.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// What it is now.
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
    /// Those of them that reached memory.
    pub misses: [Figure; 2],
    /// What those took, waiting included.
    pub cost_ps: Figure,
    /// Time waited for bandwidth.
    pub queue_ps: Figure,
}

impl NodeFigures {
    /// Loads and stores together.
    pub fn all(&self) -> u64 {
        self.accesses[0].get() + self.accesses[1].get()
    }
}

/// A vCPU's figures in one phase. Aligned, so that vCPUs share no cache line.
#[derive(Debug)]
#[repr(align(128))]
pub struct VcpuFigures {
    /// By position of the node.
    pub nodes: Vec<NodeFigures>,
    /// Instructions in the blocks that it began.
    pub instructions: Figure,
    /// Accesses to devices.
    pub io: Figure,
    /// Accesses to memory of no node.
    pub other: Figure,
    /// Walks of page tables.
    pub walks: Figure,
    /// Entries of page tables that they read, those of a host's tables included.
    pub references: Figure,
    /// What translations took: walks, and hits in farther TLBs.
    pub translation_ps: Figure,
    /// What memory, caches and translations took, the instructions that ran beside included.
    pub cost_ps: Figure,
    /// Its own time: its instructions, and the cost that they did not hide.
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
            cost_ps: Figure::default(),
            time_ps: Figure::default(),
        }
    }

    /// Whether anything was counted.
    pub fn is_empty(&self) -> bool {
        let seen = [&self.instructions, &self.io, &self.other];
        seen.iter().all(|figure| figure.get() == 0) && self.nodes.iter().all(|node| node.all() == 0)
    }
}

/// All figures.
#[derive(Debug)]
pub struct Counters {
    phases: Vec<Once<Vec<VcpuFigures>>>,
    vcpus: usize,
    nodes: usize,
}

impl Counters {
    /// Nothing counted yet.
    pub fn new(vcpus: usize, nodes: usize) -> Self {
        let phases = (0..PHASES).map(|_| Once::new()).collect();
        Self { phases, vcpus, nodes }
    }

    /// A vCPU's figures in a phase.
    #[inline]
    pub fn of(&self, phase: usize, vcpu: usize) -> &VcpuFigures {
        let make = || (0..self.vcpus).map(|_| VcpuFigures::new(self.nodes)).collect();
        &self.phases[phase].call_once(make)[vcpu]
    }

    /// Whether anybody was in this phase.
    pub fn is_entered(&self, phase: usize) -> bool {
        self.phases[phase].get().is_some()
    }

    /// The phases that were entered, with each vCPU's figures.
    pub fn phases(&self) -> impl Iterator<Item = (usize, &[VcpuFigures])> {
        let entered = self.phases.iter().enumerate();
        entered.filter_map(|(phase, vcpus)| Some((phase, vcpus.get()?.as_slice())))
    }
}
