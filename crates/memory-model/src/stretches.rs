//! The stretches of a thread that are simulated in detail, under alternative placements too.
//!
//! Simulating a core costs several times as much as its caches. So a long thread is simulated only
//! in a random one of every two to `ONE_IN` stretches (stratified sampling: W. Cochran, "Sampling
//! Techniques", 1977, chapter 5), which stands for all of them; in the others, only the state with
//! a long memory (caches and TLBs) is simulated, and time passes at the mean pace of each block (as
//! in R. Wunderlich et al., "SMARTS: Accelerating Microarchitecture Simulation via Rigorous
//! Statistical Sampling", ISCA 2003). The standard error is that of the stretches' mean: 4 % for a
//! thread of 300 million instructions with stretches that vary as much as their mean. Groups are small
//! at first, because a phase of a short thread may be shorter than a group of `ONE_IN`: of one that
//! waited for three quarters of its time, the share found was a twentieth.

/// Number of instructions of a stretch: fifty times those that a core has in flight.
const STRETCH: i64 = 1 << 14;
/// Number of instructions at the start of a stretch after which times are representative of the
/// whole program: several times those that a core has in flight.
const UNSETTLED: i64 = 1 << 12;
/// Number of instructions at a thread's start that are all simulated.
const FIRST: i64 = 1 << 20;
/// Number of stretches of which one is simulated, at first and at most; in between, the longest group
/// that is at most a share of the instructions so far.
const FIRST_ONE_IN: u64 = 2;
const ONE_IN: u64 = 32;
const GROUP_SHARE: u64 = 128;
/// Inverse of the share of a thread's instructions that may be in requested stretches.
const ASKED_ONE_IN: i64 = 8;

/// Number of instructions before a simulated stretch, and at a thread's start, in which branches
/// train the predictor. A short thread repeats less of its code, and requests more stretches:
/// without training in all of its start, Python takes 4 % longer.
const TRAINING: i64 = 4 * STRETCH;
const TRAINED: i64 = 1 << 25;

/// Position of a thread among its stretches.
#[derive(Clone, Debug)]
pub struct Stretches {
    /// Number of instructions left in the current stretch, or in those up to the next simulated
    /// one.
    left: i64,
    is_followed: bool,
    /// Number of stretches that the current one stands for.
    weight: i64,
    /// Number of stretches of the current group, and of those after the simulated one.
    group: u64,
    behind: u64,
    random: u64,
    /// Number of instructions left at which the current stretch is settled.
    settles: i64,
    /// True if the next stretch was requested by [`Self::asks`].
    asked: bool,
    /// Number of instructions left in the stretches that a requested one interrupted.
    kept: Option<i64>,
    /// Total number of instructions so far, and of those in requested stretches.
    all: i64,
    in_asked: i64,
}

impl Stretches {
    /// Returns the stretches of the thread of this number, at its start.
    pub fn of(thread: usize) -> Self {
        let random = thread as u64;
        let settles = FIRST / 2;
        Self {
            left: FIRST,
            is_followed: true,
            weight: 1,
            group: 1,
            behind: 0,
            random,
            settles,
            asked: false,
            kept: None,
            all: 0,
            in_asked: 0,
        }
    }

    /// Returns a single endless stretch, which is simulated.
    pub fn endless() -> Self {
        Self { left: i64::MAX, ..Self::of(0) }
    }

    /// Returns true if the current stretch began long enough ago to measure the pace of blocks: the
    /// first one when half of it is over, since short threads need no pace.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.is_followed && self.left < self.settles
    }

    /// Requests a stretch that is simulated now and represents only itself, because the thread does
    /// something new or meets another thread; returns false if it has requested too many for the
    /// former reason.
    pub fn asks(&mut self, meets: bool) -> bool {
        self.asked = meets || self.in_asked * ASKED_ONE_IN <= self.all;
        self.in_asked += if self.asked { STRETCH } else { 0 };
        self.asked
    }

    /// Returns true if the thread is followed at present.
    #[inline]
    pub fn is_followed(&self) -> bool {
        self.is_followed
    }

    /// Returns true if branches train the predictor: the thread is at its start, or the next
    /// simulated stretch is near.
    #[inline]
    pub fn trains(&self) -> bool {
        self.all < TRAINED || self.left <= TRAINING
    }

    /// Returns the number of instructions before branches begin to train the predictor, or the
    /// present stretch ends.
    #[inline]
    pub fn instructions_to_pass(&self) -> i64 {
        if self.trains() { self.left } else { self.left - TRAINING }
    }

    /// Adds instructions that do not end the present stretch.
    #[inline]
    pub fn passed(&mut self, instructions: u64) {
        self.left -= instructions.cast_signed();
        self.all += instructions.cast_signed();
    }

    /// Returns the number of stretches that the current one stands for.
    pub fn weight(&self) -> i64 {
        self.weight
    }

    /// Adds a block of this number of instructions; returns true if the current stretch ended
    /// before it, and the next one must begin ([`Self::begins_next`]).
    #[inline]
    pub fn pass(&mut self, instructions: u64) -> bool {
        let ended = self.left <= 0;
        self.passed(instructions);
        ended
    }

    /// Begins the next stretch.
    #[cold]
    pub fn begins_next(&mut self) {
        self.settles = STRETCH - UNSETTLED;
        if core::mem::take(&mut self.asked) {
            self.kept = Some(self.left);
            (self.left, self.weight, self.is_followed) = (STRETCH, 1, true);
            return;
        }
        if let Some(kept) = self.kept.take() {
            (self.left, self.is_followed) = (kept, false);
            if kept > 0 {
                return;
            }
        }
        self.is_followed = !self.is_followed;
        if self.is_followed {
            (self.left, self.weight) = (self.left + STRETCH, self.group.cast_signed());
            return;
        }
        // The generator of MMIX (D. Knuth, "The Art of Computer Programming", 3.3.4).
        let random = self.random.wrapping_mul(6_364_136_223_846_793_005);
        self.random = random.wrapping_add(1_442_695_040_888_963_407);
        self.group = group_after(self.all);
        let before = (self.random >> 32) % self.group;
        self.left += (self.behind + before).cast_signed() * STRETCH;
        self.behind = self.group - 1 - before;
    }
}

/// Returns the number of stretches of a group that begins after this number of instructions.
fn group_after(instructions: i64) -> u64 {
    let stretches = instructions.cast_unsigned() / STRETCH.cast_unsigned();
    let longest = 1 << (stretches / GROUP_SHARE).checked_ilog2().unwrap_or(0);
    longest.clamp(FIRST_ONE_IN, ONE_IN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requested_stretch_counts_once_and_delays_the_others() {
        let (mut asked, mut other) = (Stretches::of(2), Stretches::of(2));
        let pass = |stretches: &mut Stretches| {
            if stretches.pass(8) {
                stretches.begins_next();
            }
        };
        while asked.is_followed() {
            pass(&mut asked);
            pass(&mut other);
        }
        assert!(asked.asks(false));
        asked.begins_next();
        assert!(asked.is_followed() && !asked.is_settled() && asked.weight() == 1);
        while asked.is_followed() {
            pass(&mut asked);
        }
        while !other.is_followed() {
            pass(&mut asked);
            pass(&mut other);
        }
        assert!(asked.left - other.left <= 8 && asked.is_followed() == other.is_followed());
    }

    #[test]
    fn a_thread_asks_for_an_eighth_of_its_instructions_at_most() {
        let mut stretches = Stretches::of(3);
        let mut asked = 0;
        for at in 1..200 * STRETCH / 8 {
            if stretches.pass(8) {
                stretches.begins_next();
            }
            if !stretches.is_followed() && stretches.asks(false) {
                stretches.begins_next();
                asked += STRETCH;
            }
            assert!((asked - STRETCH) * 8 <= at * 8);
        }
        assert!(asked > 20 * STRETCH, "{asked}");
        while stretches.asks(false) {}
        assert!(stretches.asks(true), "a meeting with another thread is always followed");
    }

    #[test]
    fn the_start_of_a_thread_and_four_stretches_before_a_followed_one_train_the_predictor() {
        let mut stretches = Stretches::of(3);
        let (mut trained, mut passed) = (0, 0);
        for at in 0..(TRAINED + 1600 * STRETCH) / 8 {
            if stretches.pass(8) {
                let was_followed = stretches.is_followed();
                stretches.begins_next();
                let is_between = (0..64 * STRETCH).contains(&(at * 8 - TRAINED));
                if !was_followed && stretches.is_followed() && !is_between {
                    let expected = if at * 8 < TRAINED { passed } else { TRAINING.min(passed) };
                    assert!((trained - expected).abs() <= 8, "{trained} of {passed}");
                }
                (trained, passed) = (0, 0);
            }
            if !stretches.is_followed() {
                passed += 8;
                trained += if stretches.trains() { 8 } else { 0 };
            }
        }
    }

    #[test]
    fn the_start_then_one_stretch_of_two_and_at_last_of_thirty_two_are_followed() {
        let mut stretches = Stretches::of(3);
        let (mut followed, mut stands_for, mut groups) = ([0, 0, 0], 0, Vec::new());
        let (each, long) = (64, 64 << 20);
        for at in 0..(long + 1600 * STRETCH) / each {
            if stretches.pass(each.cast_unsigned()) {
                stretches.begins_next();
            }
            let part = usize::from(at * each >= FIRST) + usize::from(at * each >= long);
            if stretches.is_followed() {
                followed[part] += each;
                stands_for += each * stretches.weight();
            }
            groups.push(stretches.weight());
        }
        assert_eq!(followed[0] / STRETCH, FIRST / STRETCH);
        let parts = followed[2] as f64 / (50 * STRETCH) as f64;
        assert!((0.96..1.04).contains(&parts), "{parts}");
        let all = (long + 1600 * STRETCH) as f64;
        assert!((0.97..1.03).contains(&(stands_for as f64 / all)), "{stands_for}");
        let extra = followed[1] as f64 / long as f64;
        assert!((0.1..0.2).contains(&extra), "a sixth of 64 million instructions: {extra}");
        groups.dedup();
        assert_eq!(groups, [1, 2, 4, 8, 16, 32]);
    }
}
