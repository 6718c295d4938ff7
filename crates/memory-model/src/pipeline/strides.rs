//! A prefetcher that tracks instructions: lines at a constant distance from one access of an
//! instruction to the next are requested ahead, across page boundaries as well. Measured on a Zen 3
//! by the lines that are in a cache after a few accesses from a random place, with distances of 2
//! to 70 lines: two equal distances start it, it looks as many accesses ahead as there were
//! distances, up to seven, and it follows stores like loads.

use super::tracked::Tracked;

/// Number of equal distances that start prefetching.
const TRAINED: u64 = 2;
/// Maximum number of accesses to look ahead.
const AHEAD: usize = 7;

/// The accesses of an instruction.
#[derive(Clone, Copy, Debug)]
struct Stride {
    last: u64,
    /// Increment of line numbers, and the number of times that it was the same.
    step: i64,
    repeated: u64,
    /// Times of the last accesses, by the number of distances before each, modulo their number.
    times: [u64; AHEAD],
}

/// The instructions of a core that missed its nearest cache.
#[derive(Clone, Debug)]
pub struct Strides {
    of: Tracked<Stride>,
    /// The earliest time at which there is a fill buffer for the next line. Loads of lines 128 bytes to 4 KiB
    /// apart in 64 MiB take as long on a Zen 4 as if no line were requested ahead: a latency for as many lines
    /// as there are fill buffers.
    buffer_ps: u64,
}

impl Default for Strides {
    fn default() -> Self {
        Self { of: Tracked::NONE, buffer_ps: 0 }
    }
}

impl Strides {
    /// Returns the time at which a line that an instruction misses at `now_ps` was requested;
    /// `now_ps` if it was not.
    pub fn asked_ps(&self, by: usize, line: u64, now_ps: u64) -> u64 {
        let asked_ps = self.of.get(by).and_then(|stride| stride.asked_ps(line));
        asked_ps.map_or(now_ps, |ps| ps.min(now_ps))
    }

    /// Returns the time at which a line that was requested at `asked_ps` gets a fill buffer, if one is free
    /// every `each_ps`.
    pub fn gets_buffer_ps(&mut self, asked_ps: u64, each_ps: u64) -> u64 {
        let begins_ps = self.buffer_ps.max(asked_ps);
        self.buffer_ps = begins_ps + each_ps;
        begins_ps
    }

    /// Records a miss.
    pub fn add(&mut self, by: usize, line: u64, now_ps: u64) {
        let new = Stride { last: line, step: 0, repeated: 0, times: [now_ps; AHEAD] };
        if let Some(stride) = self.of.add_miss(by, new) {
            stride.add(line, now_ps);
        }
    }
}

impl Stride {
    /// Returns the time at which this line was requested, if it was.
    fn asked_ps(&self, line: u64) -> Option<u64> {
        let goes_on = self.step != 0 && line.wrapping_sub(self.last).cast_signed() == self.step;
        // The access preceded by this number of equal distances.
        let number = self.repeated + 1;
        if !goes_on || number <= TRAINED {
            return None;
        }
        // The first access that looked as far ahead.
        let by = number.div_ceil(2).max(TRAINED).max(number.saturating_sub(AHEAD as u64));
        Some(self.times[place(by)])
    }

    fn add(&mut self, line: u64, now_ps: u64) {
        let step = line.wrapping_sub(self.last).cast_signed();
        if step == 0 {
            return;
        }
        if step == self.step {
            self.repeated += 1;
        } else {
            (self.step, self.repeated) = (step, 1);
        }
        self.last = line;
        self.times[place(self.repeated)] = now_ps;
    }
}

fn place(number: u64) -> usize {
    usize::try_from(number % AHEAD as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::tracked::INSTRUCTIONS;
    use super::*;

    /// Returns the times at which lines that an instruction misses were requested.
    fn asked(strides: &mut Strides, by: usize, lines: &[u64], each_ps: u64) -> Vec<u64> {
        let mut ask = |(at, line): (usize, &u64)| {
            let now_ps = each_ps * (at as u64 + 1);
            let asked_ps = strides.asked_ps(by, *line, now_ps);
            strides.add(by, *line, now_ps);
            asked_ps
        };
        lines.iter().enumerate().map(&mut ask).collect()
    }

    #[test]
    fn two_equal_distances_request_as_many_lines_ahead_as_there_were() {
        for step in [-70_i64, 2, 9, 5000] {
            let lines: Vec<u64> = (0..20).map(|at| (500_000 + at * step).cast_unsigned()).collect();
            let found = asked(&mut Strides::default(), 1, &lines, 100);
            // The third access, at 300, requests the next two; the fourth requests lines up to the
            // seventh.
            let first = [100, 200, 300, 300, 300, 400, 400, 500, 500, 600, 600, 700, 700, 800];
            assert_eq!(found[..14], first, "{step}");
            assert_eq!(found[19], 1300, "seven ahead");
        }
    }

    #[test]
    fn lines_requested_ahead_take_the_fill_buffers_one_after_the_other() {
        let mut strides = Strides::default();
        let begins_ps = [100, 100, 100, 500].map(|asked_ps| strides.gets_buffer_ps(asked_ps, 50));
        assert_eq!(begins_ps, [100, 150, 200, 500]);
    }

    #[test]
    fn each_instruction_has_its_own_and_a_change_of_the_distance_starts_again() {
        let mut strides = Strides::default();
        let lines = [0, 10, 20, 30, 40, 47, 57, 67, 77];
        let here = asked(&mut strides, 1, &lines, 10);
        assert_eq!(here, [10, 20, 30, 30, 30, 60, 70, 80, 80]);
        let mut mixed = Strides::default();
        for at in 0..10 {
            let (now_ps, line) = (100 * (at + 1), at * 8);
            let asked_ps = [1, 2].map(|by| mixed.asked_ps(by, line + by as u64 * at, now_ps));
            assert_eq!(asked_ps.map(|ps| ps < now_ps), [at > 2; 2], "{at}");
            [1, 2].into_iter().for_each(|by| mixed.add(by, line + by as u64 * at, now_ps));
        }
    }

    #[test]
    fn the_instruction_that_missed_longest_ago_is_forgotten() {
        let mut strides = Strides::default();
        let lines = [0, 10, 20, 30];
        asked(&mut strides, 0, &lines, 10);
        (1..=INSTRUCTIONS).for_each(|by| strides.add(by, 5, 50));
        assert_eq!(strides.asked_ps(0, 40, 99), 99);
        assert_eq!(strides.of.len(), INSTRUCTIONS);
    }

    #[test]
    fn random_lines_and_one_line_again_and_again_are_not_requested_ahead() {
        let mut strides = Strides::default();
        let mut word = 1_u64;
        for now_ps in 0..500 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            for line in [word >> 20, 7] {
                let by = usize::from(line == 7);
                assert_eq!(strides.asked_ps(by, line, now_ps), now_ps);
                strides.add(by, line, now_ps);
            }
        }
    }
}
