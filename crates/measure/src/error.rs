//! Errors of a cell or a run.

use numalab_host::{Classed, Error as HostError, ErrorClass};
use numalab_membench::{ClockError, CycleError, MemoryError, StreamError};

use crate::scope::ScopeError;
use crate::store::StoreError;

/// Reason why a cell or a run could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The system refused an operation.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The clock is not reliable.
    #[error("the clock cannot be trusted: {0}")]
    Clock(#[from] ClockError),
    #[error("the chase cannot be built: {0}")]
    Cycle(#[from] CycleError),
    /// A buffer is not suitable for the loops.
    #[error("the buffer cannot be used: {0}")]
    Memory(#[from] MemoryError),
    #[error("the stream cannot be built: {0}")]
    Stream(#[from] StreamError),
    /// The choice of cpus and nodes is impossible.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// Results could not be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A number given for the run is out of range.
    #[error(transparent)]
    Statistics(#[from] numalab_stats::Error),
    #[error("another worker of the cell failed")]
    Abandoned,
    /// The user stopped the run.
    #[error("interrupted")]
    Interrupted,
    #[error("{work} is measured by numalab's kernel: `numalab guest run --kernel numalab`")]
    KernelOnly { work: String },
    #[error("a stream cannot be {pattern}: expected sequential, random or stride:N")]
    NotAStream { pattern: numalab_record::AccessPattern },
    #[error(
        "this kernel has one tier of memory; for two, use a guest: numalab guest run --kernel backports \
         --emulate-tiers 512M@100ns,1G@300ns -- numalab study probe tiering"
    )]
    OneTier,
    #[error("no tier {tier} on this machine: expected one of its {tiers}")]
    NoTier { tier: usize, tiers: usize },
    #[error(
        "a hot set of {hot}: expected at least a page and at most half of the working set, {half}"
    )]
    HotSet { hot: String, half: String },
    #[error("instruction set `{name}` is not available here: expected {available}")]
    UnknownIsa {
        name: String,
        /// The instruction sets of this machine.
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
from_host!(AffinityError, MappingError, ProofError, MemoryError, SignalError, ThreadsError);

impl From<numalab_membench::Aborted> for MeasureError {
    fn from(numalab_membench::Aborted: numalab_membench::Aborted) -> Self {
        Self::Abandoned
    }
}

impl Classed for MeasureError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Host(error) => error.class(),
            Self::Scope(_)
            | Self::Cycle(_)
            | Self::Statistics(_)
            | Self::NotAStream { .. }
            | Self::NoTier { .. }
            | Self::HotSet { .. } => ErrorClass::BadInput,
            Self::Store(error) => error.class(),
            Self::UnknownIsa { .. } | Self::KernelOnly { .. } | Self::OneTier => {
                ErrorClass::Lacking
            }
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
