//! Reasons why no machine is described.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use numalab_formats::WriteError;
use numalab_host::{Classed, ErrorClass, SysfsError};
use numalab_measure::StoreError;

/// Reason why a machine, or a file about one, cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// An option does not describe a machine.
    #[error("--{option} {value}: {reason}")]
    Option {
        /// Name of the option and of the study's setting.
        option: &'static str,
        value: String,
        reason: String,
    },
    #[error(
        "--try-on guest {what}: expected --emulate, --emulate-tiers without --cxl, or --emulate-like"
    )]
    NoGuest { what: &'static str },
    #[error(
        "--source `{text}`: expected sysfs, sysfs:DIR, acpi, acpi:DIR, arch:FILE, libvirt:FILE, \
         likwid:FILE, lscpu:FILE, lstopo:FILE, numactl:FILE, xl:FILE or results:DIR; --topology FILE takes \
         numalab's TOML"
    )]
    Source { text: String },
    #[error("{}: {reason}", .path.display())]
    File { path: PathBuf, reason: String },
    #[error("{}: no such file: expected a file, or one of {names}", .path.display())]
    Absent {
        path: PathBuf,
        /// The names of the bundled files.
        names: String,
    },
    #[error("{}: reading it requires root: run with sudo", .path.display())]
    Denied { path: PathBuf },
    #[error("{0}")]
    Tables(String),
    /// The emulator cannot model the machine's memory.
    #[error(transparent)]
    Memory(#[from] WriteError),
    /// This machine cannot be read.
    #[error(transparent)]
    Here(#[from] SysfsError),
    /// A run cannot be read.
    #[error(transparent)]
    Run(#[from] StoreError),
}

impl MachineError {
    pub(crate) fn option(option: &'static str, value: impl Display, reason: impl Display) -> Self {
        Self::Option { option, value: value.to_string(), reason: reason.to_string() }
    }

    pub(crate) fn file(path: &Path, reason: impl Display) -> Self {
        Self::File { path: path.to_owned(), reason: reason.to_string() }
    }

    pub(crate) fn unreadable(path: &Path, reason: impl Display) -> Self {
        Self::file(path, format_args!("cannot be read: {reason}"))
    }
}

impl Classed for MachineError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Option { .. }
            | Self::Source { .. }
            | Self::NoGuest { .. }
            | Self::File { .. }
            | Self::Absent { .. }
            | Self::Memory(_) => ErrorClass::BadInput,
            Self::Denied { .. } => ErrorClass::Lacking,
            Self::Tables(_) => ErrorClass::CheckFailed,
            Self::Here(error) => error.class(),
            Self::Run(error) => error.class(),
        }
    }
}
