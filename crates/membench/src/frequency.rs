//! The core's cycle time, measured without a performance counter.
//!
//! An addition that needs the last one's result takes one cycle on every core that this crate runs
//! on. A long chain of them therefore counts core cycles against the clock.

use crate::arch;
use crate::clock::{Clock, ClockError, Stamp, Ticks};

/// Executes `adds` additions, each of which needs the result of the last.
///
/// Register to register: recent cores resolve a chain of additions of constants without executing
/// them (Intel's Golden Cove).
pub fn dependent_adds(adds: u64) {
    arch::dependent_adds(adds);
}

/// A timed chain of dependent additions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adds {
    /// Time of the whole chain.
    pub ticks: Ticks,
    /// Length of the chain.
    pub adds: u64,
}

impl Adds {
    /// Times a chain of `adds` additions. Alternate with windows of a chase to get a load's latency
    /// in core cycles at the core frequency of that time.
    ///
    /// # Errors
    /// [`ClockError::SteppedBack`] if the clock went backward.
    pub fn window(adds: u64) -> Result<Adds, ClockError> {
        let start = Stamp::now();
        dependent_adds(adds);
        let ticks = Stamp::now().since(start)?;
        Ok(Adds { ticks, adds })
    }

    /// Returns the core's frequency during the chain, in cycles per ns (GHz).
    #[expect(clippy::cast_precision_loss, reason = "a chain's length is far below 2^53")]
    pub fn core_cycles_per_ns(&self, clock: &Clock) -> f64 {
        self.adds as f64 / clock.ns(self.ticks)
    }
}
