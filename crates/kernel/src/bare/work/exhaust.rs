//! One cpu allocates all memory, strictly nearest first, and then frees it.

use alloc::format;
use alloc::vec::Vec;

use numalab_frames::{MemoryInfo, NodeIndex, Order, Request};
use numalab_kernel::command::Alloc;
use numalab_kernel::event::{Event, Fill, Refill};

use super::{Failure, Lab, cpu_index, node_index};
use crate::bare::address::number;
use crate::bare::memory::Run;

/// Runs on the first cpu that takes part, in pieces of the requested order, then in single frames.
#[inline(never)]
pub fn run(lab: &mut Lab) -> Result<(), Failure> {
    let Some(&place) = lab.chosen().first() else {
        return Err("no cpu takes part".into());
    };
    let found = {
        let lab: &Lab = lab;
        lab.cpus.collect(&[place], &|place| exhaust(lab, place))
    };
    for found in found {
        let (fills, refill) = found?;
        for fill in &fills {
            lab.report.send(&Event::Fill(fill.clone()));
        }
        lab.report.send(&Event::Refill(refill.clone()));
        check(lab, place, &fills, &refill)?;
    }
    Ok(())
}

/// Checks that no frame came from a node while a nearer one had any, if the allocator uses nodes.
fn check(lab: &Lab, place: usize, fills: &[Fill], refill: &Refill) -> Result<(), Failure> {
    if refill.refused_at > 0 {
        return Err(format!("refused with {} frames free", refill.refused_at));
    }
    if refill.after != refill.before {
        return Err(format!(
            "{} frames free after freeing all, {} before",
            refill.after, refill.before
        ));
    }
    let order = &lab.plan.fallback[usize::from(lab.plan.cpu_nodes[place].0)];
    let rank = |node: u32| order.iter().position(|&other| u32::from(other.0) == node);
    let nearest =
        |pair: &[Fill]| pair[0].order != pair[1].order || rank(pair[0].node) < rank(pair[1].node);
    let exact = fills.iter().all(|fill| fill.left_nearer == 0);
    let ordered = fills.windows(2).all(nearest);
    match lab.command.alloc == Alloc::Blind || (exact && ordered) {
        true => Ok(()),
        false => Err("memory was not taken from the nearest node first: see the fills".into()),
    }
}

fn exhaust(lab: &Lab, place: usize) -> Result<(Vec<Fill>, Refill), Failure> {
    // A refusal takes back the frames in all cpus' caches, because frames there would come last.
    // SAFETY: it frees nothing.
    let _ = unsafe { lab.memory().frames() }.alloc(cpu_index(place), &Request::FRAME.below(1));
    let before = free_frames(lab);
    let mut fills = Vec::with_capacity(256);
    let mut chain = Chain::default();
    for order in [lab.command.order, 0] {
        fill(lab, place, order, &mut chain, &mut fills);
    }
    let refused_at = free_frames(lab);
    chain.free(lab, place)?;
    Ok((fills, Refill { before, refused_at, after: free_frames(lab) }))
}

/// Takes pieces until one is refused; no other cpu is working.
fn fill(lab: &Lab, place: usize, order: u8, chain: &mut Chain, fills: &mut Vec<Fill>) {
    let first = fills.len();
    let frames = 1 << order;
    while let Ok(piece) = Run::new(lab.memory(), cpu_index(place), frames, lab.policy()) {
        let node = piece.node();
        chain.push(piece);
        match fills[first..].last_mut().filter(|fill| fill.node == u32::from(node.0)) {
            Some(fill) => fill.pieces += 1,
            None => {
                let left_nearer = left_nearer(lab, place, node, order);
                let (cpu, node) = (number(place), node.0.into());
                fills.push(Fill { cpu, order, node, pieces: 1, left_nearer });
            }
        }
    }
}

/// Returns the number of pieces of an order that are free on nodes nearer than this one.
fn left_nearer(lab: &Lab, place: usize, node: NodeIndex, order: u8) -> u64 {
    let home = usize::from(lab.plan.cpu_nodes[place].0);
    let nearer = lab.plan.fallback[home].iter().take_while(|&&other| other != node);
    let free = |&other: &NodeIndex| {
        let info = info(lab, other);
        let orders = (order..=18).filter_map(Order::new);
        orders.map(|larger| info.free_blocks(larger) << (larger.exponent() - order)).sum::<u64>()
    };
    nearer.map(free).sum()
}

fn free_frames(lab: &Lab) -> u64 {
    let all = (0..lab.plan.machine.nodes.len()).map(|node| info(lab, node_index(node)));
    all.map(|info| info.free + info.cached).sum()
}

fn info(lab: &Lab, node: NodeIndex) -> MemoryInfo {
    // SAFETY: it frees nothing.
    unsafe { lab.memory().frames() }.node_info(node)
}

/// Pieces that form a linked list: each contains the address and the size of the one before.
#[derive(Default)]
struct Chain {
    last: Option<(u64, u64)>,
}

impl Chain {
    fn push(&mut self, mut piece: Run) {
        let (address, frames) = self.last.unwrap_or_default();
        let size = piece.frames();
        if let Some(line) = piece.lines().first_mut() {
            line.words_mut()[..2].copy_from_slice(&[address, frames]);
        }
        self.last = Some((piece.address(), size));
    }

    fn free(mut self, lab: &Lab, place: usize) -> Result<(), Failure> {
        while let Some((address, frames)) = self.last {
            // SAFETY: `push` dropped a run of that size there, and it is not referenced otherwise.
            let mut piece = unsafe { Run::from_address(address, frames) };
            let link = piece.lines().first().map(|line| (line.words()[0], line.words()[1]));
            self.last = link.filter(|&(_, size)| size > 0);
            piece.free(lab.memory(), cpu_index(place)).map_err(|error| format!("{error}"))?;
        }
        Ok(())
    }
}
