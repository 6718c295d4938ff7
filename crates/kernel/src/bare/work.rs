//! The workloads, and their common state. None of them is inlined into [`all`], because a common
//! stack frame would be so large that every access to it needs a longer instruction.

mod arena;
mod bandwidth;
mod chase;
mod exhaust;
mod guests;
mod storm;
mod test_numa;

use alloc::string::String;
use alloc::vec::Vec;

use numalab_frames::{CpuIndex, NodeIndex, NodeMask, Policy};
use numalab_kernel::command::{Alloc, Command, Cpus as Chosen, Placement};
use numalab_kernel::event::{Event, Heap};
use numalab_kernel::plan::Plan;
use numalab_kernel::wire::hex;
use numalab_kernel::work::{Work, dealt};
use numalab_marks::mark;

use super::cpus::Cpus;
use super::exit::Verdict;
use super::memory::Memory;
use super::report::Report;
use super::time::Rate;

/// The environment of the workloads.
pub struct Lab {
    pub plan: &'static Plan,
    pub command: Command,
    pub cpus: Cpus,
    /// The rate of their time stamp counters.
    pub rate: Rate,
    pub report: Report,
    /// The nodes of an interleaving or binding policy.
    mask: NodeMask,
}

impl Lab {
    /// Creates the environment for a machine.
    pub fn new(plan: &'static Plan, command: Command, cpus: Cpus, rate: Rate) -> Self {
        let all = (0..=u16::MAX).take(plan.machine.nodes.len());
        let mask = match &command.policy {
            Placement::Bind(nodes) => nodes.iter().copied().map(NodeIndex).collect(),
            _ => all.map(NodeIndex).collect(),
        };
        Self { plan, command, cpus, rate, report: Report::default(), mask }
    }

    pub fn memory(&self) -> Memory {
        Memory::get().expect("the allocator was started before any workload")
    }

    /// Returns the indices of the cpus that take part.
    pub fn chosen(&self) -> Vec<usize> {
        let runs = |place: &usize| self.cpus.has_started(*place);
        let all: Vec<usize> = (0..self.plan.machine.cpus.len()).filter(runs).collect();
        match &self.command.cpus {
            Chosen::All => all,
            Chosen::Count(count) => self.dealt(&all, *count),
            Chosen::Listed(listed) => {
                all.into_iter().filter(|place| listed.contains(place)).collect()
            }
        }
    }

    /// Returns `count` of these cpus, taken from all nodes in turn.
    pub fn dealt(&self, places: &[usize], count: usize) -> Vec<usize> {
        let nodes: Vec<u16> = places.iter().map(|&place| self.plan.cpu_nodes[place].0).collect();
        dealt(&nodes, count).map(|place| places[place]).collect()
    }

    /// Returns the index of a cpu's node.
    pub fn node_of(&self, place: usize) -> usize {
        self.plan.cpu_nodes[place].0.into()
    }

    /// Returns the policy of a workload's allocations.
    pub fn policy(&self) -> Policy<'_> {
        match (&self.command.alloc, &self.command.policy) {
            (Alloc::Blind, _) => Policy::Blind,
            (Alloc::Numa, Placement::Local) => Policy::Local,
            (Alloc::Numa, Placement::Preferred(node)) => Policy::Preferred(NodeIndex(*node)),
            (Alloc::Numa, Placement::Exact(node)) => Policy::Exact(NodeIndex(*node)),
            (Alloc::Numa, Placement::Bind(_)) => Policy::Bind(&self.mask),
            (Alloc::Numa, Placement::Interleave) => {
                Policy::Interleave { nodes: &self.mask, weights: &[] }
            }
        }
    }
}

/// Converts a cpu's index to the allocator's type; `MAX_CPUS` bounds it.
pub fn cpu_index(place: usize) -> CpuIndex {
    CpuIndex(u16::try_from(place).unwrap_or(u16::MAX))
}

/// Converts a node's index to the allocator's type; `MAX_NODES` bounds it.
pub fn node_index(place: usize) -> NodeIndex {
    NodeIndex(u16::try_from(place).unwrap_or(u16::MAX))
}

/// Runs all requested work, in order.
pub fn all(lab: &mut Lab) -> Verdict {
    let works = lab.command.work.clone();
    for work in works {
        mark::begin();
        let done = match work {
            Work::Chase => chase::run(lab),
            Work::TestNuma => test_numa::run(lab),
            Work::Storm => storm::run(lab),
            Work::Bandwidth => bandwidth::run(lab),
            Work::Guests => guests::run(lab),
            Work::Scaling => storm::scaling(lab),
            Work::Exhaust => exhaust::run(lab),
            Work::Fault => fault(lab),
            Work::Nested => nested(lab),
        };
        mark::end();
        if let Err(failure) = done {
            let work = work.name().into();
            lab.report.send(&Event::Failure { work, message: failure });
            return Verdict::Failed;
        }
    }
    if lab.command.dump_heap {
        dump(lab);
    }
    Verdict::Done
}

/// Uses a null pointer on the last cpu that takes part.
fn fault(lab: &Lab) -> Result<(), Failure> {
    if let Some(&last) = lab.chosen().last() {
        lab.cpus.run(&[last], &|_| {
            // SAFETY: does not read any memory: page 0 is not mapped, and the exception ends the
            // kernel.
            let _ = unsafe { core::ptr::without_provenance::<u64>(8).read_volatile() };
        });
    }
    Err("a null pointer could be used".into())
}

/// Runs, on the last cpu that takes part, a job that itself runs a job.
fn nested(lab: &Lab) -> Result<(), Failure> {
    if let Some(&last) = lab.chosen().last() {
        lab.cpus.run(&[last], &|_| lab.cpus.run(&[last], &|_| ()));
    }
    Err("a job could run jobs".into())
}

/// Sends the allocator's dump in pieces that fit into a line.
fn dump(lab: &mut Lab) {
    const PIECE: usize = 4096;
    // SAFETY: a dump frees nothing.
    let frames = unsafe { lab.memory().frames() };
    let mut piece: Vec<u8> = Vec::with_capacity(PIECE);
    let mut offset = 0;
    let mut sink = |bytes: &[u8]| {
        for &byte in bytes {
            piece.push(byte);
            if piece.len() == PIECE {
                send_piece(lab, offset, &piece);
                offset += PIECE as u64;
                piece.clear();
            }
        }
        Ok::<(), core::convert::Infallible>(())
    };
    let Ok(()) = frames.dump(&mut sink);
    if !piece.is_empty() {
        send_piece(lab, offset, &piece);
    }
}

fn send_piece(lab: &mut Lab, offset: u64, bytes: &[u8]) {
    let mut digits = String::with_capacity(2 * bytes.len());
    // Writing to a String never fails.
    let _ = hex(bytes, &mut digits);
    lab.report.send(&Event::Heap(Heap { offset, hex: digits }));
}

/// The reason why a workload failed.
pub type Failure = String;
