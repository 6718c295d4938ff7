//! Errors of knobs.

use std::io;
use std::path::PathBuf;

use numalab_host::{Classed, ErrorClass};

/// Reason why a value could not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteFailure {
    #[error("this kernel does not have it")]
    Absent,
    /// Permission was denied, with the kernel's error.
    #[error("permission denied ({0})")]
    Denied(String),
    #[error("the kernel refuses this value")]
    Refused,
    #[error("this machine does not support it ({0})")]
    Unsupported(String),
}

impl WriteFailure {
    pub(super) fn of(error: &io::Error) -> Self {
        use rustix::io::Errno;
        match Errno::from_io_error(error) {
            Some(Errno::NOENT) => Self::Absent,
            Some(Errno::INVAL | Errno::RANGE) => Self::Refused,
            Some(Errno::NODEV | Errno::OPNOTSUPP | Errno::IO) => {
                Self::Unsupported(error.to_string())
            }
            _ => Self::Denied(error.to_string()),
        }
    }
}

/// Reason why a knob could not be set or restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KnobError {
    #[error(
        "knob {name:?}: expected a name of `numalab knobs list`, a sysctl such as vm.swappiness, \
         or a file below /proc/sys or /sys"
    )]
    Unknown { name: String },
    #[error("knob {name}: this kernel has no {}", file.display())]
    Absent { name: String, file: PathBuf },
    #[error("knob {name}: {}: {reason}; run as root, outside a container", file.display())]
    Denied { name: String, file: PathBuf, reason: String },
    #[error(
        "knob {name}: {} can only be written, so its value could not be restored", file.display()
    )]
    WriteOnly { name: String, file: PathBuf },
    #[error("knob {name}: {}: this machine does not support it ({reason})", file.display())]
    Unsupported { name: String, file: PathBuf, reason: String },
    /// Setting it would change another file irreversibly: the kernel rejects that file's current
    /// value.
    #[error(
        "knob {name}: not changed, since {} could not be restored to {value:?} ({reason})",
        file.display()
    )]
    OneWay { name: String, file: PathBuf, value: String, reason: String },
    #[error("knob {name}: the kernel refuses {value:?}{expected}")]
    Refused {
        name: String,
        value: String,
        /// `, expected one of ...` if the kernel lists the choices, else empty.
        expected: String,
    },
    /// The kernel kept another value than the one written.
    #[error("knob {name}: wrote {wanted:?}, {} has {kept:?}", file.display())]
    Clamped { name: String, file: PathBuf, wanted: String, kept: String },
    #[error(
        "knob {name}: {had} of {wanted} pages could be reserved ({}), even after compacting \
         memory: set at most {had}, free memory, or reserve them when the system boots \
         (hugepages={wanted})",
        file.display()
    )]
    FewerPages { name: String, file: PathBuf, wanted: u64, had: u64 },
    #[error(
        "an earlier run ended without restoring {} ({}): run `numalab knobs restore` first",
        numalab_topology::count(*count, "setting"),
        journal.display()
    )]
    Stale { count: usize, journal: PathBuf },
    #[error(
        "another numalab holds the settings of this machine ({} is locked): wait until it ends",
        lock.display()
    )]
    Busy { lock: PathBuf },
    #[error("{}: {reason}: no setting is changed without its journal", journal.display())]
    NoJournal {
        journal: PathBuf,
        reason: String,
        /// True if permission was denied.
        denied: bool,
    },
    #[error(
        "{}, line {line}: {reason}: restore these settings by hand, then remove the file",
        journal.display()
    )]
    Damaged {
        journal: PathBuf,
        /// Line number, from 1.
        line: usize,
        reason: String,
    },
    /// Some settings could not be restored.
    #[error("not restored: {}", .files.join("; "))]
    NotRestored { files: Vec<String> },
}

impl Classed for KnobError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unknown { .. } | Self::Refused { .. } | Self::WriteOnly { .. } => {
                ErrorClass::BadInput
            }
            Self::Absent { .. }
            | Self::Denied { .. }
            | Self::Unsupported { .. }
            | Self::OneWay { .. }
            | Self::Clamped { .. }
            | Self::FewerPages { .. }
            | Self::Stale { .. }
            | Self::NoJournal { denied: true, .. } => ErrorClass::Lacking,
            Self::Busy { .. }
            | Self::NoJournal { .. }
            | Self::Damaged { .. }
            | Self::NotRestored { .. } => ErrorClass::Failed,
        }
    }
}
