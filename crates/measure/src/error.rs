//! Why a cell or a run could not be measured.

use numalab_host::{Error as HostError, ErrorClass};
use numalab_membench::{ClockError, CycleError, MemoryError, StreamError};

use crate::scope::ScopeError;
use crate::store::StoreError;

/// Why a cell or a run could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The machine refused something.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The clock cannot be trusted.
    #[error("the clock cannot be trusted: {0}")]
    Clock(#[from] ClockError),
    /// The cycle of a chase cannot be built.
    #[error("the chase cannot be built: {0}")]
    Cycle(#[from] CycleError),
    /// A buffer is unfit for the loops.
    #[error("the buffer cannot be used: {0}")]
    Memory(#[from] MemoryError),
    /// A stream cannot be built.
    #[error("the stream cannot be built: {0}")]
    Stream(#[from] StreamError),
    /// The choice of cpus and nodes is impossible.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// Results could not be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A number given for the run is out of its range.
    #[error(transparent)]
    Statistics(#[from] numalab_stats::Error),
    /// Another worker of the same cell failed first.
    #[error("another worker of the cell failed")]
    Abandoned,
    /// The user ended the run.
    #[error("interrupted")]
    Interrupted,
    /// The cell is one that only a kernel of our own can measure.
    #[error("{work} is measured by numalab's kernel: `numalab guest run --kernel numalab`")]
    KernelOnly {
        /// The workload.
        work: String,
    },
    /// A pattern of chases is asked of a stream.
    #[error("a stream cannot be {pattern}: expected sequential, random or stride:N")]
    NotAStream {
        /// The pattern.
        pattern: numalab_record::AccessPattern,
    },
    /// The machine does not know an instruction set by that name.
    #[error("instruction set `{name}` is not available here: {available}")]
    UnknownIsa {
        /// The name asked for.
        name: String,
        /// What there is.
        available: String,
    },
}

macro_rules! from_host {
    ($($error:ident),*) => {$(
        impl From<numalab_host::$error> for MeasureError {
            fn from(error: numalab_host::$error) -> Self {
                Self::Host(error.into())
            }
        }
    )*};
}
from_host!(AffinityError, MappingError, ProofError, MemoryError);

impl From<numalab_membench::Aborted> for MeasureError {
    fn from(numalab_membench::Aborted: numalab_membench::Aborted) -> Self {
        Self::Abandoned
    }
}

impl MeasureError {
    /// What kind of failure this is, for the exit code.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Host(error) => error.class(),
            Self::Scope(_) | Self::Cycle(_) | Self::Statistics(_) | Self::NotAStream { .. } => {
                ErrorClass::BadInput
            }
            Self::Store(error) => error.class(),
            Self::UnknownIsa { .. } | Self::KernelOnly { .. } => ErrorClass::Lacking,
            Self::Clock(_)
            | Self::Memory(_)
            | Self::Stream(_)
            | Self::Abandoned
            | Self::Interrupted => ErrorClass::Failed,
        }
    }
}

#[cfg(test)]
mod tests;
