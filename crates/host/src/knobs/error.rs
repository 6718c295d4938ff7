//! What can go wrong with a knob.

use std::io;
use std::path::PathBuf;

use crate::error_class::ErrorClass;

/// Why a value could not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteFailure {
    /// No such file.
    #[error("this kernel does not have it")]
    Absent,
    /// Not allowed.
    #[error("permission denied ({0})")]
    Denied(String),
    /// The kernel takes no such value.
    #[error("the kernel refuses this value")]
    Refused,
    /// It is there and cannot be used on this machine.
    #[error("this machine cannot do it ({0})")]
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

/// Why a knob could not be set or put back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KnobError {
    /// Neither a name of the catalogue, nor a sysctl, nor a path.
    #[error(
        "knob {name:?}: expected a name of `numalab knobs list`, a sysctl such as vm.swappiness, \
         or a file below /proc/sys or /sys"
    )]
    Unknown {
        /// The name as given.
        name: String,
    },
    /// The kernel has no such setting.
    #[error("knob {name}: this kernel has no {}", file.display())]
    Absent {
        /// The knob.
        name: String,
        /// The file that is not there.
        file: PathBuf,
    },
    /// Not allowed.
    #[error("knob {name}: {}: {reason}; run as root, outside a container", file.display())]
    Denied {
        /// The knob.
        name: String,
        /// The file.
        file: PathBuf,
        /// The kernel's answer.
        reason: String,
    },
    /// Nobody can know its prior value.
    #[error(
        "knob {name}: {} can only be written, so that nobody could put it back", file.display()
    )]
    WriteOnly {
        /// The knob.
        name: String,
        /// The file.
        file: PathBuf,
    },
    /// It is there and cannot be used on this machine.
    #[error("knob {name}: {}: this machine cannot do it ({reason})", file.display())]
    Unsupported {
        /// The knob.
        name: String,
        /// The file.
        file: PathBuf,
        /// The kernel's answer.
        reason: String,
    },
    /// It changes a file for good: the kernel does not take back what that file has now.
    #[error(
        "knob {name}: left as it is, since {} could not be set back to {value:?} ({reason})",
        file.display()
    )]
    OneWay {
        /// The knob.
        name: String,
        /// The file that would stay changed.
        file: PathBuf,
        /// What it has now.
        value: String,
        /// The kernel's answer to a write of just that.
        reason: String,
    },
    /// The kernel takes no such value.
    #[error("knob {name}: the kernel refuses {value:?}{expected}")]
    Refused {
        /// The knob.
        name: String,
        /// The value.
        value: String,
        /// `, expected one of ...` where the kernel tells.
        expected: String,
    },
    /// The kernel kept another value than was written.
    #[error("knob {name}: wrote {wanted:?}, {} has {kept:?}", file.display())]
    Clamped {
        /// The knob.
        name: String,
        /// The file.
        file: PathBuf,
        /// What was written.
        wanted: String,
        /// What was read back.
        kept: String,
    },
    /// A pool of huge pages got fewer than were asked for.
    #[error(
        "knob {name}: {had} of {wanted} pages could be had ({}), after compacting memory too: \
         set at most {had}, free memory, or reserve them when the system boots (hugepages={wanted})",
        file.display()
    )]
    FewerPages {
        /// The knob.
        name: String,
        /// The file.
        file: PathBuf,
        /// Pages that were asked for.
        wanted: u64,
        /// Pages that are there.
        had: u64,
    },
    /// An earlier run left settings behind.
    #[error(
        "an earlier run ended without putting back {count} settings ({}): \
         run `numalab knobs restore` first", journal.display()
    )]
    Stale {
        /// How many files still have to be put back.
        count: usize,
        /// The journal.
        journal: PathBuf,
    },
    /// Another process changes settings now.
    #[error(
        "another numalab holds the settings of this machine ({} is locked): wait for its end",
        lock.display()
    )]
    Busy {
        /// The lock.
        lock: PathBuf,
    },
    /// The journal could not be written, so that nothing was changed.
    #[error("{}: {reason}: no setting is changed without its journal", journal.display())]
    NoJournal {
        /// The journal.
        journal: PathBuf,
        /// What went wrong.
        reason: String,
        /// Whether it is for lack of permission.
        denied: bool,
    },
    /// The journal cannot be understood.
    #[error(
        "{}, line {line}: {reason}: put these settings back by hand, then remove the file",
        journal.display()
    )]
    Damaged {
        /// The journal.
        journal: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Some settings could not be put back.
    #[error("not put back: {}", .files.join("; "))]
    NotRestored {
        /// Each file, what it should have and what it has.
        files: Vec<String>,
    },
}

impl KnobError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
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
