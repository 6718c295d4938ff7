//! Reasons why there is no kernel.

use std::io;
use std::path::PathBuf;

use numalab_host::{Classed, ErrorClass};

use crate::architecture::Architecture;
use crate::cache::CacheError;
use crate::modules::ModuleError;
use crate::package::PackageError;

/// Reasons why there is no kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The kernel's package cannot be obtained.
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The kernel's modules are not as expected.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// The package that modules are taken from has changed since it was cached.
    #[error("{path}: changed since it was cached: remove {entry} to fetch it again")]
    Altered {
        path: PathBuf,
        /// The package's entry in the cache.
        entry: PathBuf,
    },
    #[error("package {package}: no file boot/vmlinuz-* in it")]
    NoImage { package: String },
    #[error("{path}: a kernel for {}, expected one for {}", .found.name(), .expected.name())]
    OtherProcessor { path: PathBuf, found: Architecture, expected: Architecture },
    #[error(
        "Linux {release} does not build memory tiers from HMAT's latencies: expected 6.10 or \
             later"
    )]
    NoTiers { release: String },
}

impl Classed for KernelError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Package(error) => error.class(),
            Self::Module(error) => error.class(),
            Self::OtherProcessor { .. } => ErrorClass::BadInput,
            Self::NoTiers { .. } => ErrorClass::Lacking,
            _ => ErrorClass::Failed,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Package(error) => error.remedy(),
            Self::Module(error) => error.remedy(),
            Self::NoTiers { .. } => Some("--kernel backports".to_owned()),
            _ => None,
        }
    }
}
