//! What disturbed a measurement, found without looking at the measured value.
//!
//! Two grains: [`ThreadSnapshot`] around each window, for a few hundred nanoseconds, and
//! [`SystemSnapshot`] around each cell, for the price of reading `/proc/stat`.

mod children;
mod system;
mod thread;

use core::fmt;

use numalab_topology::CpuId;

pub use system::{SystemSnapshot, SystemWatch};
pub use thread::ThreadSnapshot;

/// What disturbed a window or a cell.
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
    /// The hypervisor ran something else on the watched cpus.
    Stolen {
        /// Milliseconds stolen, of all watched cpus together.
        stolen_ms: u64,
        /// Milliseconds of all watched cpus together.
        of_ms: u64,
    },
    /// Other processes ran on the watched cpus.
    Foreign {
        /// Milliseconds of others, of all watched cpus together.
        foreign_ms: u64,
        /// Milliseconds of all watched cpus together.
        of_ms: u64,
    },
    /// A watched cpu lowered its frequency because of heat or power.
    Throttled {
        /// How often.
        events: u64,
    },
    /// Processes waited for memory.
    Pressure {
        /// Milliseconds in which at least one process waited.
        waited_ms: u64,
        /// Milliseconds in all.
        wall_ms: u64,
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
            Self::Stolen { .. } => "stolen",
            Self::Foreign { .. } => "foreign",
            Self::Throttled { .. } => "throttled",
            Self::Pressure { .. } => "pressure",
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
            Self::Stolen { stolen_ms, of_ms } => write!(f, "{name} {stolen_ms} of {of_ms} ms"),
            Self::Foreign { foreign_ms, of_ms } => write!(f, "{name} {foreign_ms} of {of_ms} ms"),
            Self::Throttled { events } => write!(f, "{name} {events}"),
            Self::Pressure { waited_ms, wall_ms } => {
                write!(f, "{name} {waited_ms} of {wall_ms} ms")
            }
        }
    }
}
