//! What disturbed a measurement, found without looking at the measured value.
//!
//! Two grains: [`ThreadSnapshot`] around each window, for a few hundred nanoseconds, and
//! [`SystemSnapshot`] around a whole command, for the price of reading `/proc/stat`.

mod children;
mod system;
mod thread;

use core::fmt;

use numalab_topology::CpuId;

pub use system::{SystemSnapshot, SystemWatch};
pub use thread::ThreadSnapshot;

/// What disturbed a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The scheduler took the cpu away.
    Switched {
        /// Involuntary context switches.
        switches: u64,
    },
    /// The thread ended on another cpu than it began on.
    Migrated {
        /// Where it began.
        from: CpuId,
        /// Where it ended.
        to: CpuId,
    },
    /// The thread was not on its cpu for a part of the time: preempted, interrupted, or
    /// the hypervisor ran something else.
    OffCpu {
        /// Nanoseconds off the cpu.
        off_ns: u64,
        /// Nanoseconds in all.
        wall_ns: u64,
    },
    /// Page faults that waited for a disk.
    MajorFaults {
        /// How many.
        faults: u64,
    },
    /// Page faults without a disk, as NUMA balancing causes them.
    MinorFaults {
        /// How many.
        faults: u64,
    },
}

impl Reason {
    /// A stable word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Switched { .. } => "switched",
            Self::Migrated { .. } => "migrated",
            Self::OffCpu { .. } => "off-cpu",
            Self::MajorFaults { .. } => "major-faults",
            Self::MinorFaults { .. } => "minor-faults",
        }
    }
}

/// The word and its figures: `switched 2`, `off-cpu 41000 of 2000000 ns`.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        match self {
            Self::Switched { switches } => write!(f, "{name} {switches}"),
            Self::Migrated { from, to } => write!(f, "{name} cpu {from} to {to}"),
            Self::OffCpu { off_ns, wall_ns } => write!(f, "{name} {off_ns} of {wall_ns} ns"),
            Self::MajorFaults { faults } | Self::MinorFaults { faults } => {
                write!(f, "{name} {faults}")
            }
        }
    }
}
