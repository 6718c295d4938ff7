//! A cache line passed back and forth between two cpus.
//!
//! Each side spins reading the line until the other has written it, then writes. A round trip is
//! two hand-overs, and in each of them the line moves once: to the reader. (The write that follows
//! only invalidates the other's copy.) The caller places the line's page on a node.

use crate::clock::{Clock, ClockError, Stamp, Ticks};
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of spins between two checks of the abort flag: small enough to end promptly, large
/// enough that the flag's line costs the measurement nothing.
const SPINS_PER_ABORT_CHECK: u32 = 4096;

/// The half that starts each round and takes the time.
#[derive(Debug)]
pub struct Ping<'a> {
    side: RoundTripSide<'a>,
}

impl<'a> Ping<'a> {
    /// Creates the starting half on `line`, which must be 0 before both halves start.
    pub fn new(line: &'a AtomicU64, abort: &'a AtomicBool) -> Ping<'a> {
        Ping { side: RoundTripSide { line, abort, rounds_done: 0 } }
    }

    /// Plays and times `rounds` rounds; the other half must play the same number.
    ///
    /// # Errors
    /// [`C2cError::Aborted`] once `abort` is set while the other half does not answer;
    /// [`C2cError::Clock`] if the clock went backward.
    pub fn rounds(&mut self, rounds: u64) -> Result<RoundTrips, C2cError> {
        let start = Stamp::now();
        for _ in 0..rounds {
            let sent = 2 * self.side.rounds_done + 1;
            // Release: pairs with the Acquire of the other half's `wait_for`.
            self.side.line.store(sent, Ordering::Release);
            self.side.wait_for(sent + 1)?;
            self.side.rounds_done += 1;
        }
        let ticks = Stamp::now().since(start)?;
        Ok(RoundTrips { ticks, rounds })
    }
}

/// The half that answers.
#[derive(Debug)]
pub struct Pong<'a> {
    side: RoundTripSide<'a>,
}

impl<'a> Pong<'a> {
    /// Creates the answering half on `line`, which must be 0 before both halves start.
    pub fn new(line: &'a AtomicU64, abort: &'a AtomicBool) -> Pong<'a> {
        Pong { side: RoundTripSide { line, abort, rounds_done: 0 } }
    }

    /// Answers `rounds` rounds.
    ///
    /// # Errors
    /// [`C2cError::Aborted`] if `abort` is set before the other half responds.
    pub fn rounds(&mut self, rounds: u64) -> Result<(), C2cError> {
        for _ in 0..rounds {
            let received = 2 * self.side.rounds_done + 1;
            self.side.wait_for(received)?;
            // Release: pairs with the Acquire of the other half's `wait_for`.
            self.side.line.store(received + 1, Ordering::Release);
            self.side.rounds_done += 1;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct RoundTripSide<'a> {
    line: &'a AtomicU64,
    abort: &'a AtomicBool,
    rounds_done: u64,
}

impl RoundTripSide<'_> {
    fn wait_for(&self, value: u64) -> Result<(), C2cError> {
        let mut spins = 0_u32;
        // Acquire: pairs with the other half's Release store.
        while self.line.load(Ordering::Acquire) != value {
            spins += 1;
            if spins == SPINS_PER_ABORT_CHECK {
                spins = 0;
                if self.abort.load(Ordering::Relaxed) {
                    return Err(C2cError::Aborted { rounds_done: self.rounds_done });
                }
                // Only here: a pause in every spin would be measured as latency.
                spin_loop();
            }
        }
        Ok(())
    }
}

/// Round trips of one line, with their total time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrips {
    /// Total time of all round trips.
    pub ticks: Ticks,
    /// Number of round trips.
    pub rounds: u64,
}

impl RoundTrips {
    /// Returns the mean time of one round trip: two hand-overs.
    #[expect(clippy::cast_precision_loss, reason = "a count of rounds is far below 2^53")]
    pub fn round_trip_ns(&self, clock: &Clock) -> f64 {
        clock.ns(self.ticks) / self.rounds as f64
    }

    /// Returns half a round trip, which numalab calls one way: time stamps of two cpus cannot be
    /// compared precisely enough to measure the two directions separately.
    pub fn one_way_ns(&self, clock: &Clock) -> f64 {
        self.round_trip_ns(clock) / 2.0
    }
}

/// Reasons why a ping-pong failed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum C2cError {
    /// The abort flag was set while one half waited for the other.
    #[error("ping-pong aborted after {rounds_done} rounds: the other half did not answer")]
    Aborted {
        /// Number of rounds this half had finished, over all calls.
        rounds_done: u64,
    },
    /// The clock failed.
    #[error(transparent)]
    Clock(#[from] ClockError),
}
