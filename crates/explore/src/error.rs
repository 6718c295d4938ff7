//! Why there is nothing to be seen.

use std::io;
use std::path::PathBuf;

use numalab_frames::DumpError;
use numalab_host::{CommandError, ErrorClass, PageNodesError, SysfsError};

/// Why there is nothing to be seen.
#[derive(Debug, thiserror::Error)]
pub enum ExploreError {
    /// There is no process of this number.
    #[error(
        "process {process}: not there; expected the number of a running process, as `ps -e` shows it"
    )]
    NoProcess {
        /// The number.
        process: u32,
    },
    /// The process belongs to somebody else.
    #[error(
        "process {process} ({command}) belongs to another user, who alone may see where its memory lies; as root: sudo numalab explore --pid {process}"
    )]
    Foreign {
        /// The number.
        process: u32,
        /// Its name.
        command: String,
    },
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The machine itself cannot be read.
    #[error(transparent)]
    Machine(#[from] SysfsError),
    /// The kernel tells neither by `numa_maps` nor by `move_pages`.
    #[error("process {process}: no numa_maps (a kernel without CONFIG_NUMA), and {source}")]
    NoPlacement {
        /// The process.
        process: u32,
        /// What `move_pages` says.
        source: PageNodesError,
    },
    /// A file that is no dump of ours.
    #[error("{}: {source}", path.display())]
    Dump {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: DumpError,
    },
    /// A file without any dump in it.
    #[error("{}: no heap in it; expected a dump of numalab's kernel (NLHEAP), or Xen's console with the output of `xl debug-keys u` or `xl debug-keys H`", path.display())]
    NoHeap {
        /// The file.
        path: PathBuf,
    },
    /// `xl` failed.
    #[error("{0}")]
    Xl(#[from] CommandError),
    /// The terminal failed.
    #[error("terminal: {0}")]
    Terminal(io::Error),
}

impl ExploreError {
    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NoProcess { .. } | Self::Dump { .. } | Self::NoHeap { .. } => {
                ErrorClass::BadInput
            }
            Self::Foreign { .. } | Self::NoPlacement { .. } => ErrorClass::Lacking,
            Self::Machine(error) => error.class(),
            Self::Unreadable { source, .. } => match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => ErrorClass::BadInput,
                io::ErrorKind::PermissionDenied => ErrorClass::Lacking,
                _ => ErrorClass::Failed,
            },
            Self::Xl(error) => error.class(),
            Self::Terminal(_) => ErrorClass::Failed,
        }
    }
}
