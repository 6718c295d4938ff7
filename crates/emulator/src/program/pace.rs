//! The mean times of a thread's blocks, measured in stretches that are simulated in detail, and taken
//! in those between them.

use std::ptr;

use super::code::Block;

/// Blocks with a mean, by address; a power of two.
const PLACES: usize = 4096;
/// Executions over which a mean is taken; earlier ones fade.
const MOST: u64 = 1 << 12;
/// Executions that the mean of earlier times counts as after the thread's pace has changed.
const KEPT: u64 = 8;
/// Executions after which a block without a mean is worth measuring.
const REPEATS: u8 = 16;
/// Instructions of a window, and the number of windows between two changes that are noticed.
const WINDOW: u64 = 1 << 13;
const LEAST_WINDOWS: u64 = 8;
/// The least change of the latency of lines that matters, for each instruction, in ps.
const LEAST_PS: u64 = 25;
/// Fractions of a ps in which means are kept.
const FRACTION_BITS: u32 = 16;

/// The mean time of a block from its beginning to that of the next one.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    of: Option<&'static Block>,
    /// In fractions of a ps.
    time: u64,
    count: u64,
    /// Executions before it was measured.
    unknown: u8,
    /// Number of changes that the thread had when it was last measured.
    changes: u32,
}

impl Mean {
    #[inline]
    fn is_of(&self, block: &Block) -> bool {
        self.of.is_some_and(|of| ptr::eq(of, block))
    }

    /// Counts an execution of a block that was not measured; returns true if there were many.
    fn repeats(&mut self, block: &'static Block) -> bool {
        if !self.is_of(block) {
            *self = Self { of: Some(block), ..Self::default() };
        }
        self.unknown = self.unknown.saturating_add(1);
        self.unknown >= REPEATS
    }

    /// Adds a time in fractions of a ps, after this number of changes of the thread's pace, the last
    /// of which makes earlier times count for less.
    fn add(&mut self, time: u64, changes: u32) {
        let most = if self.changes == changes { MOST } else { KEPT };
        self.changes = changes;
        self.count = (self.count + 1).min(most);
        let change = time.cast_signed() - self.time.cast_signed();
        self.time = self.time.saturating_add_signed(change / self.count.cast_signed());
    }
}

/// The pace of a thread.
#[derive(Debug, Default)]
pub struct Pace {
    /// Empty until the first block is measured.
    means: Box<[Mean]>,
    /// The mean time of an instruction, for blocks that were not measured.
    instruction: Mean,
    /// The block that is being measured, and the time at its beginning.
    since: Option<(&'static Block, u64)>,
    /// Fractions of a ps not yet taken.
    rest: u64,
    window: Window,
    /// Latency of lines in the last window that was simulated, if it is known.
    expected_ps: Option<u64>,
    /// Windows since then.
    passed: u64,
    /// Number of times that a window's latency was far from the expected one.
    changes: u32,
}

/// The latest instructions.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    instructions: u64,
    /// Latency of the places that had their lines.
    served_ps: u64,
}

impl Window {
    /// Adds a block; returns the latency of all lines if the window is complete.
    #[inline]
    fn add(&mut self, block: &Block) -> Option<u64> {
        self.instructions += block.instructions;
        (self.instructions >= WINDOW).then(|| std::mem::take(self).served_ps)
    }
}

impl Pace {
    /// Reaches a block at a time. The block is measured if `settled` is true: the core has been
    /// simulated for long enough.
    #[inline]
    pub fn comes(&mut self, block: &'static Block, now_ps: u64, settled: bool) {
        let next = settled.then_some((block, now_ps));
        if let Some((before, since_ps)) = std::mem::replace(&mut self.since, next) {
            self.add(before, now_ps.saturating_sub(since_ps));
        }
        if let Some(served_ps) = self.window.add(block) {
            (self.expected_ps, self.passed) = (Some(served_ps), 0);
        }
    }

    /// Stops measuring: time passes for another reason.
    pub fn stops(&mut self) {
        self.since = None;
    }

    /// Records the latency of the place that had the line of an access.
    #[inline]
    pub fn served(&mut self, served_ps: u64) {
        self.window.served_ps += served_ps;
    }

    /// Returns the time in ps that a block takes, by its mean; `None` if the thread does something
    /// that was not measured: it repeats new code, or its lines come from elsewhere than before.
    #[inline]
    pub fn takes_ps(&mut self, block: &'static Block) -> Option<u64> {
        if let Some(served_ps) = self.window.add(block)
            && self.is_new(served_ps)
        {
            return None;
        }
        let of_instructions = self.instruction.time * block.instructions;
        let time = match self.means.get_mut(place(block)) {
            Some(mean) if mean.is_of(block) && mean.count > 0 => mean.time,
            Some(mean) => {
                if mean.repeats(block) {
                    return None;
                }
                of_instructions
            }
            None => of_instructions,
        };
        self.rest += time;
        let takes_ps = self.rest >> FRACTION_BITS;
        self.rest &= (1 << FRACTION_BITS) - 1;
        Some(takes_ps)
    }

    /// Returns true if the latency of lines in a window is far from that of the last one that was
    /// simulated.
    fn is_new(&mut self, served_ps: u64) -> bool {
        self.passed += 1;
        let far = self.expected_ps.is_some_and(|expected_ps| {
            let apart_ps = served_ps.abs_diff(expected_ps);
            apart_ps > served_ps.max(expected_ps) / 4 && apart_ps > WINDOW * LEAST_PS
        });
        let is_new = far && self.passed > LEAST_WINDOWS;
        self.changes = self.changes.wrapping_add(u32::from(is_new));
        is_new
    }

    #[inline(never)]
    fn add(&mut self, block: &'static Block, takes_ps: u64) {
        if self.means.is_empty() {
            self.means = vec![Mean::default(); PLACES].into();
        }
        let time = takes_ps << FRACTION_BITS;
        self.instruction.add(time / block.instructions.max(1), self.changes);
        let mean = &mut self.means[place(block)];
        if !mean.is_of(block) {
            *mean = Mean { of: Some(block), ..Mean::default() };
        }
        mean.add(time, self.changes);
    }
}

/// Returns the index of a block's mean.
#[inline]
fn place(block: &Block) -> usize {
    let address = ptr::from_ref(block).addr() / align_of::<Block>();
    (address ^ (address / PLACES)) % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_memory_model::engine::Place;

    fn block(instructions: u64) -> &'static Block {
        let (flow, place, pauses) = (None, Place::default(), false);
        Box::leak(Box::new(Block { instructions, flow, place, pauses }))
    }

    #[test]
    fn a_block_takes_its_mean_time_to_the_fraction_and_another_one_that_of_its_instructions() {
        let (mut pace, [one, other]) = (Pace::default(), [4, 8].map(block));
        // 100 and 103 ps in turn.
        let mut now_ps = 0;
        for turn in 0..101 {
            pace.comes(one, now_ps, true);
            now_ps += 100 + turn % 2 * 3;
        }
        pace.stops();
        pace.comes(one, now_ps + 5000, true);
        let mut taken_ps =
            |block, times| -> Option<u64> { (0..times).map(|_| pace.takes_ps(block)).sum() };
        assert!((10_120..10_180).contains(&taken_ps(one, 100).unwrap()), "50 of each");
        assert!((2_020..2_040).contains(&taken_ps(other, 10).unwrap()));
        assert_eq!(taken_ps(other, 10), None, "it is repeated");
    }

    #[test]
    fn a_mean_follows_a_block_that_gets_slower() {
        let (mut pace, block) = (Pace::default(), block(4));
        let mut now_ps = 0;
        for turn in 0..50_000 {
            pace.comes(block, now_ps, true);
            now_ps += if turn < 10_000 { 100 } else { 300 };
        }
        assert!((298..=300).contains(&pace.takes_ps(block).unwrap()));
    }

    #[test]
    fn lines_from_elsewhere_than_in_the_simulated_stretch_are_noticed() {
        let (mut pace, block) = (Pace::default(), block(4));
        let round = |pace: &mut Pace, served_ps| {
            pace.served(served_ps);
            pace.takes_ps(block)
        };
        for turn in 0..WINDOW {
            pace.served(200);
            pace.comes(block, 100 * turn, true);
        }
        let windows = 2 * LEAST_WINDOWS * WINDOW / 4;
        assert!((0..windows).all(|_| round(&mut pace, 190).is_some()));
        assert!((0..windows).any(|_| round(&mut pace, 900).is_none()));
    }
}
