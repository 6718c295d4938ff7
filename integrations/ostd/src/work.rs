//! The workloads. None is inlined into [`all`], because one stack frame for all of them would be
//! large.

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
use numalab_marks::mark;
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
    /// OSTD's own tests of its allocator.
    TraitTests,
    /// The frame allocator's first test: threads fill an arena each and read it at random.
    TestNuma,
    /// Allocates and frees alternately.
    Pairs,
    /// Frees many frames at random, and measures the cost as their number grows.
    Sizes,
    /// Counts the whole 2 MiB blocks that are left.
    Fragmentation,
    /// Measures how much memory is free when a cpu is refused.
    Refusal,
    /// Measures the cost of freeing a frame without free neighbours, as the number of such frames
    /// grows.
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

    /// Returns the workload with a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, work)| work)
    }

    /// Returns the names that a command line may use.
    pub fn expected() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }
}

/// Runs all requested workloads, in order.
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

/// Frames straight from the allocator, without OSTD's record of their users.
fn take(frames: usize) -> Option<Paddr> {
    ALLOCATOR.alloc(layout(frames))
}

fn give_back(addr: Paddr, frames: usize) {
    ALLOCATOR.dealloc(addr, frames * FRAME);
}

fn layout(frames: usize) -> Layout {
    // A run of frames has a layout, whatever their number.
    Layout::from_size_align(frames * FRAME, FRAME).unwrap_or(Layout::new::<[u8; FRAME]>())
}

/// Takes single frames up to `most`, or until none is left.
fn take_frames(most: usize) -> Vec<Paddr> {
    // The list is allocated first, because it uses the same memory.
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
