//! Any error of this crate.

use crate::affinity::AffinityError;
use crate::error_class::ErrorClass;
use crate::knobs::KnobError;
use crate::mapping_error::MappingError;
use crate::memory_limit::MemoryError;
use crate::page_nodes::PageNodesError;
use crate::process_policy::PolicyError;
use crate::proof::ProofError;
use crate::signals::SignalError;
use crate::sysfs::SysfsError;

/// Any error of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Reading the machine's topology.
    #[error(transparent)]
    Sysfs(#[from] SysfsError),
    /// Pinning a thread.
    #[error(transparent)]
    Affinity(#[from] AffinityError),
    /// Getting, binding or touching memory.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// Setting or reading the process's memory policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Proving where memory lies.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// Asking where pages are.
    #[error(transparent)]
    PageNodes(#[from] PageNodesError),
    /// Finding out how much memory may be used.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Setting a knob, or putting it back.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// Installing signal handlers.
    #[error(transparent)]
    Signal(#[from] SignalError),
}

impl Error {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Sysfs(error) => error.class(),
            Self::Affinity(error) => error.class(),
            Self::Mapping(error) => error.class(),
            Self::Policy(error) => error.class(),
            Self::Proof(error) => error.class(),
            Self::PageNodes(error) => error.class(),
            Self::Memory(error) => error.class(),
            Self::Knob(error) => error.class(),
            Self::Signal(error) => error.class(),
        }
    }
}
