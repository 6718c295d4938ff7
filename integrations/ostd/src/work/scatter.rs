//! Takes everything and then frees every second frame: none of them is the buddy of another, so all
//! stay single. The cost of one more must not grow with their number.

use ostd::prelude::println;

use super::{FRAME, give_back, take_frames};
use crate::Failure;
use crate::allocator::free_bytes;
use crate::times::Moment;
use crate::words::Words;

/// Maximum number of frames that are freed.
const MOST: usize = 8192;

/// Prints a figure each time the number of free frames has doubled.
#[inline(never)]
pub fn run(words: &Words) -> Result<(), Failure> {
    let most = words.command.count.map_or(MOST, |count| count as usize);
    let mut taken = take_frames(free_bytes() as usize / FRAME);
    taken.sort_unstable();
    let is_second = |addr: &usize| addr / FRAME % 2 == 1;
    // No memory is left for lists of them.
    let mut second = taken.iter().copied().filter(is_second);
    let (mut free, mut until) = (0, (most / 16).max(1));
    while until <= most {
        let start = Moment::now();
        let freed = second.by_ref().take(until - free).map(|addr| give_back(addr, 1)).count();
        let each = Moment::now().since_ns(start) / freed as f64;
        free += freed;
        if free < until {
            return Err(alloc::format!("{free} of {until} frames: expected more memory"));
        }
        println!("scatter: {} single frames free, {:.1} ns to free one", free, each);
        until *= 2;
    }
    // In order of address, so that each frame finds its neighbours free.
    let next = second.next().unwrap_or(usize::MAX);
    let is_taken = |addr: &usize| !is_second(addr) || *addr >= next;
    taken.iter().copied().filter(is_taken).for_each(|addr| give_back(addr, 1));
    Ok(())
}
