//! All memory taken by one cpu: nearest first, exactly, until there is none; then all of it
//! given back.

use alloc::format;
use alloc::vec::Vec;

use numalab_frames::{NodeIndex, Order, Request};
use numalab_kernel::command::Alloc;

use super::{Failure, Lab, cpu_index, node_index};
use crate::bare::memory::Run;

/// Pieces that came from one node without a break.
struct Stretch {
    order: u8,
    node: NodeIndex,
    pieces: u64,
    /// Pieces of this size that were still free on nearer nodes when the stretch began.
    left_nearer: u64,
}

/// What the cpu found.
struct Found {
    stretches: Vec<Stretch>,
    before: u64,
    refused_at: u64,
    after: u64,
}

/// On the first cpu that takes part, in pieces of the order asked for, then in single frames.
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
        let found = found?;
        for stretch in &found.stretches {
            lab.report.send("fill", |object| {
                object.text("work", "exhaust").number("cpu", place).number("order", stretch.order);
                object.number("node", stretch.node.0).number("pieces", stretch.pieces);
                object.number("left_nearer", stretch.left_nearer);
            });
        }
        lab.report.send("refill", |object| {
            object.text("work", "exhaust").number("before", found.before);
            object.number("refused_at", found.refused_at).number("after", found.after);
        });
        check(lab, place, &found)?;
    }
    Ok(())
}

/// With nodes, no frame may come from a node while a nearer one has any.
fn check(lab: &Lab, place: usize, found: &Found) -> Result<(), Failure> {
    if found.refused_at > 0 {
        return Err(format!("refused with {} frames free", found.refused_at));
    }
    if found.after != found.before {
        return Err(format!(
            "{} frames free after all came back, {} before",
            found.after, found.before
        ));
    }
    let order = &lab.plan.fallback[usize::from(lab.plan.cpu_nodes[place].0)];
    let rank = |node: NodeIndex| order.iter().position(|&other| other == node);
    let nearest = |pair: &[Stretch]| {
        pair[0].order != pair[1].order || rank(pair[0].node) < rank(pair[1].node)
    };
    let exact = found.stretches.iter().all(|stretch| stretch.left_nearer == 0);
    let ordered = found.stretches.windows(2).all(nearest);
    match lab.command.alloc == Alloc::Blind || (exact && ordered) {
        true => Ok(()),
        false => Err("memory did not come nearest first: see the fills".into()),
    }
}

fn exhaust(lab: &Lab, place: usize) -> Result<Found, Failure> {
    // A refusal takes back what lies in all cpus' caches, as frames there would come last.
    let _ = lab.frames().alloc(cpu_index(place), &Request::FRAME.below(1));
    let before = free_frames(lab);
    let mut stretches = Vec::with_capacity(256);
    let mut chain = Chain::default();
    for order in [lab.command.order, 0] {
        fill(lab, place, order, &mut chain, &mut stretches);
    }
    let refused_at = free_frames(lab);
    chain.free(lab, place)?;
    Ok(Found { stretches, before, refused_at, after: free_frames(lab) })
}

/// Takes pieces until one is refused; nobody else is at work.
fn fill(lab: &Lab, place: usize, order: u8, chain: &mut Chain, stretches: &mut Vec<Stretch>) {
    let first = stretches.len();
    let frames = 1 << order;
    while let Ok(piece) = Run::new(lab.frames(), cpu_index(place), frames, lab.policy()) {
        let node = piece.node();
        chain.push(piece);
        match stretches[first..].last_mut().filter(|stretch| stretch.node == node) {
            Some(stretch) => stretch.pieces += 1,
            None => {
                let left_nearer = left_nearer(lab, place, node, order);
                stretches.push(Stretch { order, node, pieces: 1, left_nearer });
            }
        }
    }
}

/// Pieces of an order that are free on nodes nearer than this one.
fn left_nearer(lab: &Lab, place: usize, node: NodeIndex, order: u8) -> u64 {
    let home = usize::from(lab.plan.cpu_nodes[place].0);
    let nearer = lab.plan.fallback[home].iter().take_while(|&&other| other != node);
    let free = |&other: &NodeIndex| {
        let info = lab.frames().node_info(other);
        let orders = (order..=18).filter_map(Order::new);
        orders.map(|larger| info.free_blocks(larger) << (larger.exponent() - order)).sum::<u64>()
    };
    nearer.map(free).sum()
}

fn free_frames(lab: &Lab) -> u64 {
    let info = |node| lab.frames().node_info(node_index(node));
    (0..lab.plan.machine.nodes.len()).map(info).map(|info| info.free + info.cached).sum()
}

/// Pieces that hold the list of themselves: where the one before lies, and its size.
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
            // SAFETY: `push` dropped a run of that size there, and nothing else knows of it.
            let mut piece = unsafe { Run::from_address(address, frames) };
            let link = piece.lines().first().map(|line| (line.words()[0], line.words()[1]));
            self.last = link.filter(|&(_, size)| size > 0);
            piece.free(lab.frames(), cpu_index(place)).map_err(|error| format!("{error}"))?;
        }
        Ok(())
    }
}
