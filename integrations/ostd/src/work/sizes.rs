//! Allocates many frames at once and frees them at random: the cost of one must not grow with their
//! number.

use numalab_membench::Random;
use ostd::prelude::println;

use super::{give_back, shuffle, take_frames};
use crate::Failure;
use crate::times::Moment;
use crate::words::Words;

/// Maximum number of frames, 256 MiB; fewer if there is less memory.
const MOST: usize = 1 << 16;

/// The number doubles each time.
#[inline(never)]
pub fn run(words: &Words) -> Result<(), Failure> {
    let most = words.command.count.map_or(MOST, |count| count as usize);
    let mut random = Random::new(words.command.seed, 0);
    let mut frames = (most / 16).max(1);
    while frames <= most {
        let start = Moment::now();
        let mut taken = take_frames(frames);
        let had = Moment::now();
        if taken.len() < frames {
            let had = taken.len();
            taken.into_iter().for_each(|addr| give_back(addr, 1));
            return Err(alloc::format!("{had} of {frames} frames: expected more memory"));
        }
        shuffle(&mut taken, &mut random);
        let ready = Moment::now();
        for &addr in &taken {
            give_back(addr, 1);
        }
        let freed = Moment::now();
        let each = |ns: f64| ns / frames as f64;
        println!(
            "bulk of {} frames: {:.1} ns to allocate one, {:.1} ns to free one at random",
            frames,
            each(had.since_ns(start)),
            each(freed.since_ns(ready))
        );
        frames *= 2;
    }
    Ok(())
}
