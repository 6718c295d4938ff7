//! Errors of ranks that measure together.

use std::io;
use std::path::PathBuf;

use numalab_host::{Classed, ErrorClass};
use numalab_measure::MeasureError;
use numalab_topology::{CpuId, CpuSet, count};

use crate::team::TeamError;

/// Reason why ranks could not measure together.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The ranks lost contact.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// A rank could not place itself or measure.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    #[error(
        "ranks {rank} and {other} of host {host} would share cpu {cpu} of {affinity}: bind each to a separate cpu, or start fewer; --overcommit measures anyway"
    )]
    SharedCpu {
        /// The second rank.
        rank: usize,
        other: usize,
        host: String,
        cpu: CpuId,
        /// The cpus that the second rank may use.
        affinity: CpuSet,
    },
    /// A `map_cpu` list has fewer entries than the host has ranks.
    #[error(
        "srun's map_cpu names {} for {} on host {host}: srun silently wraps around, so ranks share \
         cpus; list a cpu for each",
        count(*cpus, "cpu"),
        count(*ranks, "rank")
    )]
    WrappedMap { cpus: usize, ranks: usize, host: String },
    #[error(
        "rank {rank} should be on cpu {expected} by srun's map_cpu, but may run on {affinity}: is task/affinity or task/cgroup configured?"
    )]
    NotAsMapped {
        rank: usize,
        expected: CpuId,
        /// The cpus that the rank may run on.
        affinity: CpuSet,
    },
    #[error("rank {rank} may run on cpus {affinity}, none of which was requested")]
    NoCpu { rank: usize, affinity: CpuSet },
    /// The file of a result cannot be created.
    #[error("{}: {error}", .path.display())]
    Create { path: PathBuf, error: io::Error },
    #[error("{}: {error}; complete rows are kept in the .part file", .path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("{reason}; the other rows are kept in {}", .part.display())]
    Incomplete { part: PathBuf, reason: String },
    #[error("{}: another run is writing to it: wait until it ends, or stop it", .path.display())]
    InUse { path: PathBuf },
    /// Another rank failed, and reports the reason itself.
    #[error("rank {rank} failed: {message}")]
    Other { rank: usize, message: String },
    /// The run has no cell of any rank.
    #[error("no size was measured: {reason}")]
    Nothing { reason: String },
    #[error("a message of another rank cannot be read: {0}")]
    Message(String),
}

impl From<numalab_host::Error> for SessionError {
    fn from(error: numalab_host::Error) -> Self {
        Self::Measure(error.into())
    }
}

impl Classed for SessionError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Team(error) => error.class(),
            Self::Measure(error) => error.class(),
            Self::SharedCpu { .. } | Self::WrappedMap { .. } | Self::NoCpu { .. } => {
                ErrorClass::BadInput
            }
            Self::NotAsMapped { .. }
            | Self::Incomplete { .. }
            | Self::InUse { .. }
            | Self::Create { .. }
            | Self::Write { .. }
            | Self::Other { .. }
            | Self::Nothing { .. }
            | Self::Message(_) => ErrorClass::Failed,
        }
    }
}

impl SessionError {
    /// Returns true if another rank failed, which reports it itself.
    pub fn is_of_another_rank(&self) -> bool {
        matches!(self, Self::Other { .. } | Self::Team(TeamError::GaveUp))
    }
}
