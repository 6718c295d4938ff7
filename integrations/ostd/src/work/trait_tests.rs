//! OSTD's own test of frame allocation (`ostd::mm::frame::allocator`), and a test that pieces of a
//! segment may be freed in any order.

use alloc::vec::Vec;

use ostd::mm::FrameAllocOptions;
use ostd::prelude::println;

use super::{FRAME, give_back, take};
use crate::Failure;
use crate::allocator::free_bytes;

/// Allocates, keeps and drops frames and segments; then frees a run in pieces.
#[inline(never)]
pub fn run() -> Result<(), Failure> {
    frames_and_segments().map_err(|_| "a frame was refused")?;
    pieces()?;
    println!("tests: 2 passed");
    Ok(())
}

fn frames_and_segments() -> ostd::Result<()> {
    let single = FrameAllocOptions::new();
    let mut contiguous = FrameAllocOptions::new();
    contiguous.zeroed(false);
    let mut kept = Vec::new();
    for _ in 0..10 {
        for index in 0..10 {
            let frame = single.alloc_frame()?;
            if index % 3 == 0 {
                kept.push(frame);
            }
        }
        drop(contiguous.alloc_segment(10)?);
        kept.pop();
    }
    Ok(())
}

fn pieces() -> Result<(), Failure> {
    const FRAMES: usize = 13;
    // The first run of this size sets aside whatever is set aside at all.
    give_back(take(FRAMES).ok_or("a run was refused")?, FRAMES);
    let before = free_bytes();
    let start = take(FRAMES).ok_or("a run was refused")?;
    for index in [7, 0, 12, 3, 1, 2, 11, 4, 10, 5, 9, 6, 8] {
        give_back(start + index * FRAME, 1);
    }
    let after = free_bytes();
    if after != before {
        return Err(alloc::format!("{after} bytes are free after a run came back, not {before}"));
    }
    Ok(())
}
