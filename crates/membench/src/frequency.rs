//! The core's cycle time, established without a performance counter.
//!
//! An addition that needs the last one's result takes one cycle on every core this crate
//! runs on. A long chain of them therefore counts core cycles against the clock.

use crate::arch;
use crate::clock::{Clock, ClockError, Stamp, Ticks};

/// Executes `adds` additions, each of which needs the result of the last.
///
/// Register to register: recent cores carry out a chain of additions of constants without
/// executing them (Intel's Golden Cove).
pub fn dependent_adds(adds: u64) {
    arch::dependent_adds(adds);
}

/// A timed chain of dependent additions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adds {
    /// The time of the whole chain.
    pub ticks: Ticks,
    /// Its length.
    pub adds: u64,
}

impl Adds {
    /// Times a chain of `adds` additions. Alternate with windows of a chase to have a load's
    /// latency in core cycles: a cycle is then the one of the same moment.
    ///
    /// # Errors
    /// [`ClockError::SteppedBack`] if the clock went backward.
    pub fn window(adds: u64) -> Result<Adds, ClockError> {
        let start = Stamp::now();
        dependent_adds(adds);
        let ticks = Stamp::now().since(start)?;
        Ok(Adds { ticks, adds })
    }

    /// The core's frequency during the chain, in cycles per ns (GHz).
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a chain's length is far below 2^53")]
    pub fn core_cycles_per_ns(&self, clock: &Clock) -> f64 {
        self.adds as f64 / clock.ns(self.ticks)
    }
}
