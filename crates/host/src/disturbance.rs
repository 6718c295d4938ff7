//! Detects disturbances of a measurement without looking at the measured value.
//!
//! There are two granularities: [`ThreadSnapshot`] around each window, which costs a few hundred
//! nanoseconds, and [`SystemSnapshot`] around a whole cell, which costs one read of `/proc/stat`.

mod children;
mod system;
mod thread;

use core::fmt;

use numalab_topology::CpuId;

pub use system::{SystemSnapshot, SystemWatch};
pub use thread::ThreadSnapshot;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The scheduler preempted the thread.
    Switched {
        /// Involuntary context switches.
        switches: u64,
    },
    /// The thread ended on another cpu than it began on.
    Migrated { from: CpuId, to: CpuId },
    /// The thread was off its cpu for a part of the time: preempted, interrupted, or descheduled by
    /// the hypervisor.
    OffCpu {
        /// Nanoseconds off the cpu.
        off_ns: u64,
        /// Total time in nanoseconds.
        wall_ns: u64,
    },
    /// Page faults that waited for a disk.
    MajorFaults { faults: u64 },
    /// Page faults that did not wait for a disk, such as those of NUMA balancing.
    MinorFaults { faults: u64 },
}

impl Reason {
    /// Returns a stable name for records.
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

/// Formats the name and its figures: `switched 2`, `off-cpu 41000 of 2000000 ns`.
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
