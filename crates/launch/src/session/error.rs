//! Why ranks could not measure together.

use std::io;
use std::path::PathBuf;

use numalab_host::ErrorClass;
use numalab_measure::MeasureError;
use numalab_topology::{CpuId, CpuSet};

use crate::team::TeamError;

/// Why ranks could not measure together.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// They lost each other.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// A rank could not settle or measure.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// Two ranks would share a cpu.
    #[error(
        "ranks {rank} and {other} of host {host} would share cpu {cpu} of {affinity}: bind each to a cpu of its own, or start fewer; --overcommit measures all the same"
    )]
    SharedCpu {
        /// The second of them.
        rank: usize,
        /// The first.
        other: usize,
        /// Their host.
        host: String,
        /// The cpu.
        cpu: CpuId,
        /// The cpus that the second may use.
        affinity: CpuSet,
    },
    /// A `map_cpu` list is shorter than the ranks of a host.
    #[error(
        "srun's map_cpu names {cpus} cpus for {ranks} ranks on host {host}: it begins anew silently, and ranks share cpus; name a cpu for each"
    )]
    WrappedMap {
        /// Cpus in the list.
        cpus: usize,
        /// Ranks on the host.
        ranks: usize,
        /// The host.
        host: String,
    },
    /// A rank is not where the launcher's map put it.
    #[error(
        "rank {rank} should be on cpu {expected} by srun's map_cpu, but may run on {affinity}: is task/affinity or task/cgroup configured?"
    )]
    NotAsMapped {
        /// The rank.
        rank: usize,
        /// The cpu of the map.
        expected: CpuId,
        /// Where it may run.
        affinity: CpuSet,
    },
    /// No cpu is left of those asked for.
    #[error("rank {rank} may run on cpus {affinity}, of which none is among those asked for")]
    NoCpu {
        /// The rank.
        rank: usize,
        /// Where it may run.
        affinity: CpuSet,
    },
    /// The file of a result cannot be made.
    #[error("{}: {error}", .path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        error: io::Error,
    },
    /// A result cannot be written.
    #[error("{}: {error}; complete rows are kept in the .part file", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        error: io::Error,
    },
    /// Another run is writing the same result.
    #[error("{}: another run is writing it: wait until that ends, or stop it", .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Another rank failed, and says why itself.
    #[error("rank {rank} failed: {message}")]
    Other {
        /// The rank.
        rank: usize,
        /// Its words.
        message: String,
    },
    /// The run has no cell of any rank.
    #[error("no size was measured: expected at least one")]
    Nothing,
    /// A message between ranks makes no sense.
    #[error("a message of another rank cannot be read: {0}")]
    Message(String),
}

impl From<numalab_host::Error> for SessionError {
    fn from(error: numalab_host::Error) -> Self {
        Self::Measure(error.into())
    }
}

impl SessionError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Team(error) => error.class(),
            Self::Measure(error) => error.class(),
            Self::SharedCpu { .. } | Self::WrappedMap { .. } | Self::NoCpu { .. } => {
                ErrorClass::BadInput
            }
            Self::NotAsMapped { .. }
            | Self::InUse { .. }
            | Self::Create { .. }
            | Self::Write { .. }
            | Self::Other { .. }
            | Self::Nothing
            | Self::Message(_) => ErrorClass::Failed,
        }
    }

    /// Whether another rank is at fault, which says so itself.
    #[must_use]
    pub fn is_of_another_rank(&self) -> bool {
        matches!(self, Self::Other { .. } | Self::Team(TeamError::GaveUp))
    }
}
