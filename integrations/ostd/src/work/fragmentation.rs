//! Whole 2 MiB blocks that are left after many allocations and frees: everything is taken frame by
//! frame, half of it is freed at random, and a tenth is replaced at random in each of 47 rounds.

use numalab_membench::Random;
use ostd::mm::Paddr;
use ostd::prelude::println;

use super::{FRAME, give_back, shuffle, take, take_frames};
use crate::Failure;
use crate::allocator::free_bytes;
use crate::words::Words;

const BLOCK_FRAMES: usize = 512;
const ROUNDS: usize = 47;

/// Number of wholly free blocks, and of those that can be allocated.
#[inline(never)]
pub fn run(words: &Words) -> Result<(), Failure> {
    let mut random = Random::new(words.command.seed, 1);
    let mut taken = take_frames(free_bytes() as usize / FRAME);
    let all = taken.len();
    shuffle(&mut taken, &mut random);
    for addr in taken.drain(all / 2..) {
        give_back(addr, 1);
    }
    for _ in 0..ROUNDS {
        shuffle(&mut taken, &mut random);
        let kept = taken.len() - taken.len() / 5;
        let replaced = taken.len() - kept;
        for addr in taken.drain(kept..) {
            give_back(addr, 1);
        }
        for _ in 0..replaced {
            match take(1) {
                Some(addr) => taken.push(addr),
                None => break,
            }
        }
    }
    let free = free_bytes() as usize / FRAME;
    let mut blocks = alloc::vec::Vec::with_capacity(free / BLOCK_FRAMES + 1);
    while let Some(addr) = take(BLOCK_FRAMES) {
        blocks.push(addr);
    }
    println!(
        "fragmentation: {} of {} frames free, {} blocks of 2 MiB allocated, {} would be ideal",
        free,
        all,
        blocks.len(),
        free / BLOCK_FRAMES
    );
    end(taken, blocks);
    Ok(())
}

fn end(frames: alloc::vec::Vec<Paddr>, blocks: alloc::vec::Vec<Paddr>) {
    blocks.into_iter().for_each(|addr| give_back(addr, BLOCK_FRAMES));
    frames.into_iter().for_each(|addr| give_back(addr, 1));
}
