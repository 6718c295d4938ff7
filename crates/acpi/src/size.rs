//! Byte counts in human-readable form.

use core::fmt;

/// A byte count, shown in the largest binary unit that divides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let mut amount = self.0;
        let mut units = UNITS.iter();
        let mut unit = units.next();
        while amount != 0 && amount.trailing_zeros() >= 10 {
            let Some(larger) = units.next() else { break };
            amount >>= 10;
            unit = Some(larger);
        }
        write!(f, "{amount} {}", unit.unwrap_or(&"B"))
    }
}
