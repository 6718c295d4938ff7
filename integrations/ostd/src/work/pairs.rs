//! Allocates and frees alternately: the cost of a call when nothing else happens.

use ostd::prelude::println;

use super::{give_back, take};
use crate::Failure;
use crate::times::each_ns;
use crate::words::Words;

/// Number of pairs of each order.
const PAIRS: u64 = 20_000;

/// Orders 0, 3 and 9.
#[inline(never)]
pub fn run(words: &Words) -> Result<(), Failure> {
    let pairs = words.command.count.unwrap_or(PAIRS);
    for order in [0, 3, 9] {
        let frames = 1 << order;
        let mut refused = 0_u64;
        let ns = each_ns(pairs, || {
            for _ in 0..pairs {
                match take(frames) {
                    Some(addr) => give_back(addr, frames),
                    None => refused += 1,
                }
            }
        });
        if refused > 0 {
            return Err(alloc::format!("{refused} of {pairs} runs of order {order} were refused"));
        }
        println!("pair of order {}: {:.1} ns", order, ns);
    }
    Ok(())
}
