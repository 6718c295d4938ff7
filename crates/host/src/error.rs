//! The union of this crate's errors.

use crate::affinity::AffinityError;
use crate::error_class::{Classed, ErrorClass};
use crate::mapping_error::MappingError;
use crate::memory_limit::MemoryError;
use crate::page_nodes::PageNodesError;
use crate::process_policy::PolicyError;
use crate::proof::ProofError;
use crate::signals::SignalError;
use crate::sysfs::SysfsError;
use crate::threads::ThreadsError;

/// Any error of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The machine's topology could not be read.
    #[error(transparent)]
    Sysfs(#[from] SysfsError),
    /// A thread could not be pinned.
    #[error(transparent)]
    Affinity(#[from] AffinityError),
    /// Memory could not be mapped, bound or touched.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// The process's memory policy could not be set or read.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The placement of memory could not be proven.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// The nodes of pages could not be read.
    #[error(transparent)]
    PageNodes(#[from] PageNodesError),
    /// The memory is more than this process may use.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Too few threads can be started.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    /// Signal handlers could not be installed.
    #[error(transparent)]
    Signal(#[from] SignalError),
}

impl Classed for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Sysfs(error) => error.class(),
            Self::Affinity(error) => error.class(),
            Self::Mapping(error) => error.class(),
            Self::Policy(error) => error.class(),
            Self::Proof(error) => error.class(),
            Self::PageNodes(error) => error.class(),
            Self::Memory(error) => error.class(),
            Self::Threads(error) => error.class(),
            Self::Signal(error) => error.class(),
        }
    }
}
