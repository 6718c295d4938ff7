//! The time of PAUSE, with which a loop waits for another core.

use super::Family;

impl Family {
    /// Returns the cycles for which PAUSE stops the core: 140 from Skylake on (Intel's Optimization
    /// Reference Manual, "Pause Latency in Skylake Client Microarchitecture"), 91 measured on a Zen 4;
    /// 40 and 65 were published for earlier Zens. Arm's YIELD does nothing.
    pub(crate) fn pause_cycles(self) -> f64 {
        match self {
            Self::Skylake | Self::SunnyCove | Self::GoldenCove | Self::RedwoodCove => 140.0,
            Self::Zen1 => 40.0,
            Self::Zen2 | Self::Zen3 => 65.0,
            Self::Zen4 => 91.0,
            Self::NeoverseN1 => 0.0,
        }
    }
}
