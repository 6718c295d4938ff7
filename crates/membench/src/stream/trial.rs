//! The choice of the fastest instruction set.
//!
//! The widest vectors are the fastest in caches, but not in the memory of each CPU: on a Zen 4 a
//! triad moves 21 GB/s in AVX-512 and 27 in SSE2, and stores that bypass the caches move 81 and 46.

use super::Stream;
use crate::clock::{Clock, ClockError, Stamp};
use crate::isa::Isa;

/// Nanoseconds of a turn of one set.
const TURN_NS: f64 = 1_000_000.0;
/// Turns of each set.
const TURNS: usize = 5;
/// Turns of the sets that those leave about equal, including those.
const MOST_TURNS: usize = 15;
/// Ratio of rates above which two sets are not about equal, however much their turns vary.
const FAR: f64 = 1.15;
/// Lines between two looks at the clock: 256 KiB of each array.
const STEP_LINES: usize = 4_096;

/// A value for each set, in the order of [`Isa::ALL`].
type Each<T> = [T; Isa::ALL.len()];

impl Stream<'_> {
    /// Continues in the fastest available instruction set, by turns of 1 ms: 5 of each set, and 10
    /// more of those that are about equal. Arrays should have been accessed once before.
    ///
    /// # Errors
    /// [`ClockError::SteppedBack`] if the CPU's counter does.
    pub fn choose_isa(&mut self, clock: &Clock) -> Result<(), ClockError> {
        let available = Isa::ALL.map(Isa::is_available);
        if available.into_iter().filter(|is_available| *is_available).count() < 2 {
            return Ok(());
        }
        let mut rates = [[0.0; MOST_TURNS]; Isa::ALL.len()];
        self.take_turns(clock, available, rates.each_mut().map(|rates| &mut rates[..TURNS]))?;
        let first = rates.each_ref().map(|rates| &rates[..TURNS]);
        let (open, mut fastest_set) = (undecided(first), fastest(first));
        if open.into_iter().filter(|is_open| *is_open).count() >= 2 {
            self.take_turns(clock, open, rates.each_mut().map(|rates| &mut rates[TURNS..]))?;
            fastest_set = fastest(rates.each_ref().map(|rates| &rates[..]));
        }
        if let Some(fastest_set) = fastest_set {
            self.set_isa(fastest_set).ok();
        }
        Ok(())
    }

    /// Takes a turn of each of these sets for every place in `rates`, one set after the other, since
    /// memory is not equally fast at all times and places.
    fn take_turns(
        &mut self,
        clock: &Clock,
        sets: Each<bool>,
        mut rates: Each<&mut [f64]>,
    ) -> Result<(), ClockError> {
        for turn in 0..rates[0].len() {
            let taking_part = Isa::ALL.into_iter().zip(&mut rates).zip(sets).filter(|(_, is)| *is);
            for ((isa, rates), _) in taking_part {
                if self.set_isa(isa).is_ok() {
                    rates[turn] = self.rate_of_turn(clock)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the counted bytes per nanosecond of one turn.
    #[expect(clippy::cast_precision_loss, reason = "a turn counts far less than 2^53 bytes")]
    fn rate_of_turn(&mut self, clock: &Clock) -> Result<f64, ClockError> {
        let (start, mut bytes) = (Stamp::now(), 0);
        loop {
            bytes += self.advance(STEP_LINES);
            let ns = clock.ns(Stamp::now().since(start)?);
            if ns >= TURN_NS {
                return Ok(bytes as f64 / ns);
            }
        }
    }
}

/// Returns the rate that a set exceeds in a quarter of its turns. On a loaded Zen 4 the choice by it
/// loses a third less than that by the fastest turn, and less than that by the median.
fn usual(turns: &[f64]) -> f64 {
    let mut sorted = [0.0; MOST_TURNS];
    let sorted = &mut sorted[..turns.len()];
    sorted.copy_from_slice(turns);
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[(3 * turns.len()).div_ceil(4) - 1]
}

/// Returns the fastest set, of several that are equal the widest; the rates of a set that the
/// machine lacks, or that dropped out, are 0.
fn fastest(rates: Each<&[f64]>) -> Option<Isa> {
    let widest_first = Isa::ALL.into_iter().zip(rates.map(usual)).rev();
    let best = widest_first
        .filter(|(_, rate)| *rate > 0.0)
        .reduce(|best, narrower| if narrower.1 > best.1 { narrower } else { best });
    best.map(|(isa, _)| isa)
}

/// Returns the sets that may be the fastest: those with a usual rate close to the best one, and a turn
/// faster than the slowest of the best set.
fn undecided(rates: Each<&[f64]>) -> Each<bool> {
    let best = rates.into_iter().max_by(|a, b| usual(a).total_cmp(&usual(b))).unwrap_or_default();
    let slowest = best.iter().copied().fold(f64::INFINITY, f64::min);
    rates.map(|turns| FAR * usual(turns) >= usual(best) && turns.iter().any(|rate| *rate > slowest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns rates of the sets of x86-64, and 0 for the others.
    fn of_x86<'a>(sse2: &'a [f64], avx2: &'a [f64], avx512: &'a [f64]) -> Each<&'a [f64]> {
        [sse2, avx2, avx512, &[0.0; TURNS], &[0.0; TURNS]]
    }

    #[test]
    fn the_fastest_set_is_chosen_and_of_equal_ones_the_widest() {
        let even = |[a, b, c]: [f64; 3]| fastest(of_x86(&[a; TURNS], &[b; TURNS], &[c; TURNS]));
        assert_eq!(even([10.0, 10.0, 10.0]), Some(Isa::Avx512));
        assert_eq!(even([27.0, 23.0, 21.0]), Some(Isa::Sse2));
        assert_eq!(even([46.0, 85.0, 81.0]), Some(Isa::Avx2));
        assert_eq!(even([10.0, 0.0, 0.0]), Some(Isa::Sse2));
        assert_eq!(even([0.0; 3]), None);
    }

    #[test]
    fn one_fast_turn_and_two_that_other_work_slowed_do_not_decide() {
        let (one_fast, two_slow) = ([20.0, 20.0, 30.0, 20.0, 20.0], [22.0, 22.0, 11.0, 22.0, 10.0]);
        assert_eq!(fastest(of_x86(&[18.0; TURNS], &two_slow, &one_fast)), Some(Isa::Avx2));
    }

    #[test]
    fn sets_that_are_about_equal_and_vary_take_more_turns() {
        let (low, high) = ([20.0, 21.0, 20.0, 21.0, 20.0], [20.5, 22.0, 22.0, 22.0, 22.0]);
        let open = undecided(of_x86(&high, &low, &[14.0; TURNS]));
        assert_eq!(open, [true, true, false, false, false]);
        // Turns that do not vary, as in virtual time, decide at once.
        let open = undecided(of_x86(&[22.0; TURNS], &[21.0; TURNS], &[22.0; TURNS]));
        assert_eq!(open, [false; Isa::ALL.len()]);
    }
}
