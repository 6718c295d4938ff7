//! The choice of the fastest instruction set.
//!
//! The widest vectors are the fastest in caches, but not in the memory of each CPU: on a Zen 4 a
//! triad moves 21 GB/s in AVX-512 and 27 in SSE2, and stores that bypass the caches move 81 and 46.

use super::Stream;
use crate::clock::{Clock, ClockError, Stamp};
use crate::isa::Isa;

/// Nanoseconds of a turn of one set.
const TURN_NS: f64 = 1_000_000.0;
/// Turns of each set. The fastest counts: other work delays some.
const TURNS: usize = 5;
/// Lines between two looks at the clock: 256 KiB of each array.
const STEP_LINES: usize = 4_096;
/// The factor by which narrower vectors must be faster, so that chance does not decide.
const CLEARLY: f64 = 1.02;

impl Stream<'_> {
    /// Continues in the fastest available instruction set, by turns of 1 ms; the widest of those that
    /// are about equal. Arrays should have been accessed once before.
    ///
    /// # Errors
    /// [`ClockError::SteppedBack`] if the CPU's counter does.
    pub fn choose_isa(&mut self, clock: &Clock) -> Result<(), ClockError> {
        if Isa::ALL.into_iter().filter(|isa| isa.is_available()).count() < 2 {
            return Ok(());
        }
        let mut rates = [0.0_f64; Isa::ALL.len()];
        // In turns, since memory is not equally fast at all times.
        for _ in 0..TURNS {
            for (isa, rate) in Isa::ALL.into_iter().zip(&mut rates) {
                if self.set_isa(isa).is_ok() {
                    *rate = rate.max(self.rate_of_turn(clock)?);
                }
            }
        }
        if let Some(fastest) = choice(&rates) {
            self.set_isa(fastest).ok();
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

/// Returns the widest of the fastest sets, by the rate of each in the order of [`Isa::ALL`], 0 for a
/// set that the machine lacks.
fn choice(rates: &[f64; Isa::ALL.len()]) -> Option<Isa> {
    let widest_first = Isa::ALL.into_iter().zip(rates).rev().filter(|(_, rate)| **rate > 0.0);
    let best = widest_first
        .reduce(|best, narrower| if *narrower.1 > CLEARLY * best.1 { narrower } else { best });
    best.map(|(isa, _)| isa)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrower_vectors_are_chosen_only_if_they_are_clearly_faster() {
        let of_x86 = |sse2, avx2, avx512| choice(&[sse2, avx2, avx512, 0.0, 0.0]);
        assert_eq!(of_x86(10.0, 10.1, 10.0), Some(Isa::Avx512));
        assert_eq!(of_x86(27.0, 23.0, 21.0), Some(Isa::Sse2));
        assert_eq!(of_x86(46.0, 85.0, 81.0), Some(Isa::Avx2));
        assert_eq!(of_x86(10.0, 0.0, 0.0), Some(Isa::Sse2));
        assert_eq!(of_x86(0.0, 0.0, 0.0), None);
    }
}
