//! Guests built as by a hypervisor: memory populated on a node, exchanged and freed, with an
//! account of its nodes.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use numalab_frames::{Affinity, CpuFences, Domain, Frame, Frames, NodeIndex, Order, Owner, Word};
use numalab_kernel::command::Alloc;
use numalab_kernel::event::{Event, Guest};

use super::{Failure, Lab, cpu_index, node_index};
use crate::bare::address::number;

/// Number of guests of each node, and the share of all memory that all guests together have.
const GUESTS_PER_NODE: usize = 2;
const PART: u64 = 2;

/// Builds all guests, reports their nodes, then changes and ends them.
#[inline(never)]
pub fn run(lab: &mut Lab) -> Result<(), Failure> {
    let machine = &lab.plan.machine;
    let homes: Vec<usize> =
        (0..machine.nodes.len()).filter(|&node| machine.nodes[node].memory_bytes > 0).collect();
    let guests =
        lab.command.threads.map_or(homes.len() * GUESTS_PER_NODE, |guests| guests as usize);
    let part = machine.memory_bytes() / PART / guests as u64;
    let bytes = lab.command.size_bytes.unwrap_or(part).max(2 << 20);
    let extents = usize::try_from(bytes >> 21).unwrap_or(usize::MAX);
    let mut memory: Vec<Vec<Frame>> = (0..guests).map(|_| vec![Frame::new(0); extents]).collect();
    let nodes = lab.plan.machine.nodes.len();
    let accounts: Vec<Vec<Word>> =
        (0..guests).map(|_| (0..nodes).map(|_| Word::new(0)).collect()).collect();
    for guest in 0..guests {
        let home = node_index(homes[guest % homes.len()]);
        let domain = domain(guest, &accounts[guest]);
        build(lab, guest, home, &domain, &mut memory[guest])?;
    }
    for (guest, extents) in memory.iter_mut().enumerate() {
        let home = node_index(homes[guest % homes.len()]);
        end(lab, guest, home, &domain(guest, &accounts[guest]), extents)?;
    }
    Ok(())
}

fn frames(lab: &Lab) -> &'static Frames<'static, CpuFences> {
    // SAFETY: the domains free the extents that they populated before, and no others.
    unsafe { lab.memory().frames() }
}

fn domain(guest: usize, accounts: &[Word]) -> Domain<'_> {
    Domain::new(Owner(u32::try_from(guest + 1).unwrap_or(u32::MAX)), accounts)
}

/// Returns the node from which a guest's memory is requested: its own, or the first by number
/// without node knowledge.
fn affinity(lab: &Lab, home: NodeIndex) -> Affinity {
    match lab.command.alloc {
        Alloc::Numa => Affinity::Preferred(home),
        Alloc::Blind => Affinity::Preferred(NodeIndex(0)),
    }
}

fn build(
    lab: &mut Lab,
    guest: usize,
    home: NodeIndex,
    domain: &Domain<'_>,
    extents: &mut [Frame],
) -> Result<(), Failure> {
    let cpu = cpu_index(lab.cpus.boot());
    let affinity = affinity(lab, home);
    domain
        .populate(frames(lab), cpu, Order::BLOCK, affinity, extents)
        .map_err(|error| format!("guest {guest}: {error}"))?;
    let nodes = lab.plan.machine.nodes.len();
    let held: Vec<u64> = (0..nodes).map(|node| domain.held(node_index(node))).collect();
    let (local, all) = (domain.held(home), held.iter().sum::<u64>());
    let (guest, node) = (number(guest), home.0.into());
    lab.report.send(&Event::Guest(Guest { guest, node, local, remote: all - local, held }));
    Ok(())
}

/// Exchanges a block for two halves of one, then frees everything.
fn end(
    lab: &Lab,
    guest: usize,
    home: NodeIndex,
    domain: &Domain<'_>,
    extents: &mut [Frame],
) -> Result<(), Failure> {
    let (allocator, cpu) = (frames(lab), cpu_index(lab.cpus.boot()));
    let said = |error: &dyn core::fmt::Display| format!("guest {guest}: {error}");
    let half = Order::new(8).unwrap_or(Order::FRAME);
    if let Some((first, rest)) = extents.split_first() {
        let mut halves = [Frame::new(0); 2];
        let given = (Order::BLOCK, core::slice::from_ref(first));
        domain
            .exchange(allocator, cpu, given, (half, &mut halves), affinity(lab, home))
            .map_err(|error| said(&error))?;
        domain.decrease(allocator, cpu, half, &halves).map_err(|error| said(&error))?;
        domain.decrease(allocator, cpu, Order::BLOCK, rest).map_err(|error| said(&error))?;
    }
    let nodes = lab.plan.machine.nodes.len();
    let left: u64 = (0..nodes).map(|node| domain.held(node_index(node))).sum();
    if left > 0 {
        return Err(format!("guest {guest} still has {left} frames after freeing all"));
    }
    Ok(())
}
