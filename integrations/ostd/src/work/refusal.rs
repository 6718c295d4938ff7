//! Memory that is free when a cpu is refused: the boot cpu takes everything and gives it back, and
//! then another one takes all that it can get.

use alloc::sync::Arc;

use numalab_kernel::plan::Plan;
use ostd::prelude::println;
use ostd::sync::SpinLock;

use super::{FRAME, give_back, take, take_frames};
use crate::allocator::free_bytes;
use crate::{Failure, cpus, machine};

/// Runs on the boot cpu, then on the last other one (or again, on a machine with one cpu).
#[inline(never)]
pub fn run(plan: &'static Plan) -> Result<(), Failure> {
    let all = free_bytes() as usize / FRAME;
    for addr in take_frames(all) {
        give_back(addr, 1);
    }
    let own = machine::place(plan).ok_or("this cpu is in no table")?;
    let other = (0..plan.cpu_nodes.len()).rev().find(|place| *place != own).unwrap_or(own);
    let free = free_bytes();
    let left = Arc::new(SpinLock::<Option<u64>>::new(None));
    let told = left.clone();
    cpus::on(plan, &[other], move |_| {
        let mut taken = alloc::vec::Vec::with_capacity(all);
        while let Some(addr) = take(1) {
            taken.push(addr);
        }
        *told.lock() = Some(free_bytes());
        taken.into_iter().for_each(|addr| give_back(addr, 1));
    });
    let left = left.lock().take().ok_or("the other cpu sent no result")?;
    println!(
        "refusal: cpu {} is refused with {:.1} % free ({} of {} KiB)",
        other,
        100.0 * left as f64 / free as f64,
        left >> 10,
        free >> 10
    );
    Ok(())
}
