//! The workloads. None is inlined into [`all`]: one stack for all of them would be large.

mod fragmentation;
mod pairs;
mod refusal;
mod scatter;
mod sizes;
mod test_numa;
mod trait_tests;

use alloc::string::String;
use alloc::vec::Vec;
use core::alloc::Layout;

use numalab_kernel::plan::Plan;
use numalab_membench::mark;
use ostd::mm::Paddr;
use ostd::mm::frame::GlobalFrameAllocator;

use crate::Failure;
use crate::allocator::ALLOCATOR;
use crate::words::Words;

/// Bytes of a frame.
const FRAME: usize = 4096;

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// What OSTD's own tests ask of its allocator.
    TraitTests,
    /// The seed's: threads fill an arena each and read it at random.
    TestNuma,
    /// Allocate and free, one after the other.
    Pairs,
    /// Frames freed at random, and what it costs as there are more of them.
    Sizes,
    /// What is left of whole 2 MiB blocks.
    Fragmentation,
    /// How much is free when a cpu is refused.
    Refusal,
    /// What it costs to free a frame as more are free that have no neighbour.
    Scatter,
}

impl Work {
    const ALL: [(&'static str, Self); 7] = [
        ("tests", Self::TraitTests),
        ("test_numa", Self::TestNuma),
        ("pairs", Self::Pairs),
        ("sizes", Self::Sizes),
        ("fragmentation", Self::Fragmentation),
        ("refusal", Self::Refusal),
        ("scatter", Self::Scatter),
    ];

    /// The workload of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, work)| work)
    }

    /// What a command line may name.
    pub fn expected() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }
}

/// Does all that was asked for, in order.
pub fn all(words: &Words, plan: &'static Plan) -> Result<(), Failure> {
    for work in &words.work {
        mark::begin();
        let done = match work {
            Work::TraitTests => trait_tests::run(),
            Work::TestNuma => test_numa::run(words, plan),
            Work::Pairs => pairs::run(words),
            Work::Sizes => sizes::run(words),
            Work::Fragmentation => fragmentation::run(words),
            Work::Refusal => refusal::run(plan),
            Work::Scatter => scatter::run(words),
        };
        mark::end();
        done?;
        crate::allocator::tell();
    }
    Ok(())
}

/// Frames straight from the allocator, without OSTD's account of who uses them.
fn take(frames: usize) -> Option<Paddr> {
    ALLOCATOR.alloc(layout(frames))
}

fn give_back(addr: Paddr, frames: usize) {
    ALLOCATOR.dealloc(addr, frames * FRAME);
}

fn layout(frames: usize) -> Layout {
    // A run of frames is a layout, whatever their number.
    Layout::from_size_align(frames * FRAME, FRAME).unwrap_or(Layout::new::<[u8; FRAME]>())
}

/// Takes single frames until `most` are had or none is left.
fn take_frames(most: usize) -> Vec<Paddr> {
    // The list's own room first: it comes from the same memory.
    let mut taken = Vec::with_capacity(most);
    while taken.len() < most {
        match take(1) {
            Some(addr) => taken.push(addr),
            None => break,
        }
    }
    taken
}

fn shuffle<T>(list: &mut [T], random: &mut numalab_membench::Random) {
    for at in (1..list.len()).rev() {
        list.swap(at, random.below(at as u64 + 1) as usize);
    }
}
