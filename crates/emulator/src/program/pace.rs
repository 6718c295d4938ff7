//! The mean times of a thread's blocks, measured in stretches that are simulated in detail, and
//! used in those between them.

use std::ptr;

use super::code::Block;

/// Blocks with a mean, by address; a power of two.
const PLACES: usize = 1 << 14;
/// Number of executions over which a mean is taken; earlier ones fade.
const MOST: u64 = 1 << 12;
/// Number of instructions over which the mean of all blocks is taken.
const MOST_INSTRUCTIONS: u64 = 1 << 16;
/// Number of executions after which a block without a mean is worth measuring.
const REPEATS: u8 = 16;
/// Number of instructions after which all lines take the full path once ([`super::repeatable`]).
const ROUND: i64 = 1 << 13;
/// Fractions of a ps in which means are kept.
const FRACTION_BITS: u32 = 16;
/// Resolution of [`Pace::rate`], and its limits. They are narrow because a program that times its
/// own parts sees the corrections, and reports the fastest part: with limits of 1/4 and 4, rounds
/// took 28 % of their time.
const RATE_BITS: u32 = 8;
const RATES: (i64, i64) = (7 << (RATE_BITS - 3), 9 << (RATE_BITS - 3));
/// Number of instructions over which a difference from the means is corrected: the distance between
/// two samples.
const SPAN: u64 = 1 << 19;
/// Longest time that passes at once.
const MOST_PS: u64 = 1 << 40;

/// The mean time of a block from its beginning to that of the next one.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    of: Option<&'static Block>,
    /// In fractions of a ps.
    time: u64,
    count: u64,
    /// Executions before it was measured.
    unknown: u8,
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

    /// Adds a time in fractions of a ps.
    fn add(&mut self, time: u64) {
        self.count = (self.count + 1).min(MOST);
        let change = time.cast_signed() - self.time.cast_signed();
        self.time = self.time.saturating_add_signed(change / self.count.cast_signed());
    }
}

/// The pace of a thread.
#[derive(Debug)]
pub struct Pace {
    /// Empty until the first block is measured.
    means: Box<[Mean]>,
    /// Time and instructions of measured blocks, weighted towards recent ones, for blocks that were
    /// not measured.
    all: (u64, u64),
    /// The block that is being measured, and the time at its beginning.
    since: Option<(&'static Block, u64)>,
    passed: Passed,
    /// Instructions left in the present round.
    round: i64,
    /// Blocks measured in the present stretch, with their times, if it stands for others too.
    sample: Option<Vec<(&'static Block, u64)>>,
    /// Instructions and time that have passed since the last such stretch.
    since_sample: (u64, u64),
    /// Additional time that the blocks that have passed should have taken, in ps.
    owed_ps: i64,
    /// Factor on a block's mean time that corrects for `owed_ps`.
    rate: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            means: Box::default(),
            all: (0, 0),
            since: None,
            passed: Passed::default(),
            round: 0,
            sample: None,
            since_sample: (0, 0),
            owed_ps: 0,
            rate: 1 << RATE_BITS,
        }
    }
}

/// Blocks that have passed since the last look ([`Pace::take_passed`]).
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    /// Instructions that may still pass before something else happens, now and at the last look.
    left: i64,
    before: i64,
    /// Time of the passed blocks, in fractions of a ps, and its limit.
    time: u64,
    limit: u64,
}

impl Pace {
    /// Notes that a block begins at this time. It is measured if `settled` is true: the core has
    /// been simulated for long enough.
    #[inline]
    pub fn comes(&mut self, block: &'static Block, now_ps: u64, settled: bool) {
        let next = settled.then_some((block, now_ps));
        if let Some((before, since_ps)) = std::mem::replace(&mut self.since, next) {
            let takes_ps = now_ps.saturating_sub(since_ps);
            match &mut self.sample {
                Some(sample) => sample.push((before, takes_ps)),
                None => self.add(before, takes_ps),
            }
        }
    }

    /// Stops measuring: time passes for another reason.
    pub fn stops(&mut self) {
        self.since = None;
    }

    /// Leaves a time out of the block that is being measured.
    pub fn pauses(&mut self, ps: u64) {
        self.since.iter_mut().for_each(|(_, since_ps)| *since_ps += ps);
    }

    /// Begins a stretch, which is a sample if it is simulated and stands for others. When a sample
    /// ends, the difference between its own time and that of the means corrects the time that has
    /// passed since the previous sample (a difference estimator: W. Cochran, "Sampling Techniques",
    /// 1977, chapter 7). So means from another time, or of the first executions of a block, do not
    /// shift the time of the program.
    pub fn begins_stretch(&mut self, is_sample: bool) {
        self.stops();
        let ended = std::mem::replace(&mut self.sample, is_sample.then(Vec::new));
        let Some(sample) = ended else { return };
        let instructions: u64 = sample.iter().map(|(block, _)| block.instructions).sum();
        if instructions == 0 {
            return;
        }
        let took_ps: u64 = sample.iter().map(|(_, ps)| ps).sum();
        let expected: u64 = sample.iter().map(|(block, _)| self.expects(block)).sum();
        let expected_ps = (expected >> FRACTION_BITS).max(1);
        let (passed, passed_ps) = std::mem::take(&mut self.since_sample);
        let (rate, one) = (self.rate.cast_signed(), 1 << RATE_BITS);
        self.owed_ps -= passed_ps.cast_signed() * (rate - one) / rate;
        let all_ps = |ps: u64| (ps * passed / instructions).cast_signed();
        self.owed_ps += all_ps(took_ps) - all_ps(expected_ps);
        let more = self.owed_ps * one / (took_ps * SPAN / instructions).max(1).cast_signed();
        self.rate = (one + more).clamp(RATES.0, RATES.1).cast_unsigned();
        sample.into_iter().for_each(|(block, ps)| self.add(block, ps));
    }

    /// Passes a block at its mean time; returns false if the block has none, or something else has
    /// to happen first.
    #[inline]
    pub fn passes(&mut self, block: &'static Block) -> bool {
        let left = self.passed.left - block.instructions.cast_signed();
        let Some(mean) = self.means.get(place(block)) else { return false };
        let time = self.passed.time + ((mean.time * self.rate) >> RATE_BITS);
        if left < 0 || time > self.passed.limit || !mean.is_of(block) || mean.count == 0 {
            return false;
        }
        (self.passed.left, self.passed.time) = (left, time);
        true
    }

    /// Lets blocks pass for a number of instructions and a time, up to the end of the round. Returns
    /// true if a round begins.
    pub fn lets_pass(&mut self, instructions: i64, for_ps: u64) -> bool {
        let begins = self.round <= 0;
        if begins {
            self.round = ROUND;
        }
        let left = instructions.min(self.round);
        let limit = for_ps.min(MOST_PS) << FRACTION_BITS;
        self.passed = Passed { left, before: left, limit, ..self.passed };
        begins
    }

    /// Takes the instructions that have passed since the last look, and their time in ps.
    #[inline]
    pub fn take_passed(&mut self) -> (u64, u64) {
        let Passed { left, before, .. } = self.passed;
        self.passed.before = left;
        self.round -= before - left;
        let instructions = (before - left).cast_unsigned();
        self.since_sample.0 += instructions;
        (instructions, self.take_ps())
    }

    /// Returns the whole ps of the time that has passed, and removes them.
    #[inline]
    fn take_ps(&mut self) -> u64 {
        let takes_ps = self.passed_ps();
        let taken = takes_ps << FRACTION_BITS;
        self.passed.time -= taken;
        self.passed.limit = self.passed.limit.saturating_sub(taken);
        self.since_sample.1 += takes_ps;
        takes_ps
    }

    /// Returns the time in ps of the blocks that have passed.
    #[inline]
    pub fn passed_ps(&self) -> u64 {
        self.passed.time >> FRACTION_BITS
    }

    /// Returns true if a block is executed again and again, and was not measured.
    #[inline]
    pub fn is_new(&mut self, block: &'static Block) -> bool {
        let mean = self.means.get_mut(place(block));
        mean.is_some_and(|mean| !(mean.is_of(block) && mean.count > 0) && mean.repeats(block))
    }

    /// Returns the mean time in ps of a block, or of all blocks if it has none.
    #[inline]
    pub fn takes_ps(&mut self, block: &'static Block) -> u64 {
        self.round -= block.instructions.cast_signed();
        self.since_sample.0 += block.instructions;
        self.passed.time += (self.expects(block) * self.rate) >> RATE_BITS;
        self.take_ps()
    }

    /// Returns the mean time of a block, or of all blocks if it has none, in fractions of a ps.
    #[inline]
    fn expects(&self, block: &Block) -> u64 {
        let known = self.means.get(place(block)).filter(|mean| mean.is_of(block) && mean.count > 0);
        let (time, instructions) = self.all;
        let of_instructions = || time / instructions.max(1) * block.instructions;
        known.map_or_else(of_instructions, |mean| mean.time)
    }

    #[inline(never)]
    fn add(&mut self, block: &'static Block, takes_ps: u64) {
        if self.means.is_empty() {
            self.means = vec![Mean::default(); PLACES].into();
        }
        let time = takes_ps << FRACTION_BITS;
        self.all = (self.all.0 + time, self.all.1 + block.instructions);
        if self.all.1 > MOST_INSTRUCTIONS {
            self.all = (self.all.0 / 2, self.all.1 / 2);
        }
        let mean = &mut self.means[place(block)];
        if !mean.is_of(block) {
            *mean = Mean { of: Some(block), ..Mean::default() };
        }
        mean.add(time);
    }
}

/// Returns the index of a block's mean, from its address in the program, because addresses in this
/// process differ between runs.
#[inline]
fn place(block: &Block) -> usize {
    let address = block.place.address;
    usize::try_from((address ^ address >> 14) % PLACES as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_memory_model::engine::Place;

    fn block(instructions: u64) -> &'static Block {
        let (flow, pauses) = (None, false);
        let place = Place { address: instructions, end: 2 * instructions };
        Box::leak(Box::new(Block { instructions, flow, place, pauses, cpuids: 0 }))
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
        let taken_ps = |pace: &mut Pace, block, times| -> u64 {
            (0..times).map(|_| pace.takes_ps(block)).sum()
        };
        assert!((10_120..10_180).contains(&taken_ps(&mut pace, one, 100)), "50 of each");
        assert!((2_020..2_040).contains(&taken_ps(&mut pace, other, 10)));
        assert_eq!((0..20).filter(|_| pace.is_new(other)).count(), 5, "it is repeated");
        assert!((0..20).all(|_| !pace.is_new(one)));
    }

    #[test]
    fn blocks_that_were_not_measured_take_the_time_of_all_instructions_not_of_a_mean_block() {
        let (mut pace, [long, short, other]) = (Pace::default(), [20, 1, 10].map(block));
        let mut now_ps = 0;
        for _ in 0..100 {
            pace.comes(long, now_ps, true);
            pace.comes(short, now_ps + 500, true);
            now_ps += 10_500;
        }
        assert!((4_900..=5_000).contains(&pace.takes_ps(other)), "500 ps an instruction");
    }

    #[test]
    fn a_mean_follows_a_block_that_gets_slower() {
        let (mut pace, block) = (Pace::default(), block(4));
        let mut now_ps = 0;
        for turn in 0..50_000 {
            pace.comes(block, now_ps, true);
            now_ps += if turn < 10_000 { 100 } else { 300 };
        }
        assert!((298..=300).contains(&pace.takes_ps(block)));
    }

    #[test]
    fn samples_correct_the_time_that_has_passed_by_means_of_a_slow_start() {
        let (mut pace, block) = (Pace::default(), block(4));
        let measure = |pace: &mut Pace, takes_ps: u64| {
            (0..1000).for_each(|turn| pace.comes(block, turn * takes_ps, true));
        };
        measure(&mut pace, 300);
        let mut took_ps = 0;
        for _ in 0..60 {
            let part_ps: u64 = (0..32_000).map(|_| pace.takes_ps(block)).sum();
            assert!(part_ps >= 32_000 * 100 * 7 / 8, "{part_ps}: a part that the program may time");
            took_ps += part_ps;
            pace.begins_stretch(true);
            measure(&mut pace, 100);
            pace.begins_stretch(false);
        }
        assert!((190_000_000..196_000_000).contains(&took_ps), "{took_ps} of 192,000,000");
    }

    #[test]
    fn measured_blocks_pass_up_to_a_limit_of_instructions_and_of_time() {
        let (mut pace, [known, other]) = (Pace::default(), [4, 8].map(block));
        (0..3).for_each(|turn| pace.comes(known, 100 * turn, true));
        assert!(!pace.passes(known), "not before it may");
        assert!(pace.lets_pass(10, 1_000_000));
        assert!(!pace.passes(other) && pace.passes(known) && pace.passes(known));
        assert!(!pace.passes(known), "ten instructions");
        assert_eq!((pace.passed_ps(), pace.take_passed()), (200, (8, 200)));
        assert_eq!(pace.take_passed(), (0, 0));
        assert!(!pace.lets_pass(1000, 250), "the round goes on");
        assert_eq!((0..9).filter(|_| pace.passes(known)).count(), 2, "250 ps");
        pace.take_passed();
        let mut rounds = |_: &i64| {
            let begins = pace.lets_pass(i64::MAX, u64::MAX);
            (0..9).for_each(|_| assert!(pace.passes(known) || pace.passed.left < 4));
            pace.take_passed();
            begins
        };
        let begun = (0..2 * ROUND / 36).filter(&mut rounds).count();
        assert!((1..=2).contains(&begun), "{begun}");
    }
}
