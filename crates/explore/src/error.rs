//! Reasons why there is nothing to show.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

use std::io;
use std::path::PathBuf;

use numalab_frames::DumpError;
use numalab_host::{Classed, CommandError, ErrorClass, PageNodesError, SysfsError};

/// Reasons why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum ExploreError {
    /// There is no process with this id.
    #[error(
        "process {process}: does not exist, or /proc hides it (hidepid); expected the id of a \
         running process, as `ps -e` shows it"
    )]
    NoProcess { process: u32 },
    /// The kernel does not show the process's memory: it belongs to another user, or root lacks a
    /// capability.
    #[error(
        "process {process} ({command}): only its user, and root with CAP_SYS_PTRACE, may see \
         where its memory is: sudo numalab explore --pid {process} (in a container: docker run \
         --cap-add SYS_PTRACE)"
    )]
    Denied { process: u32, command: String },
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The machine itself cannot be read.
    #[error(transparent)]
    Machine(#[from] SysfsError),
    /// The kernel provides neither `numa_maps` nor `move_pages`.
    #[error("process {process}: no numa_maps (a kernel without CONFIG_NUMA), and {source}")]
    NoPlacement {
        process: u32,
        /// The error of `move_pages`.
        source: PageNodesError,
    },
    /// A copied tree says nothing about the process's pages.
    #[error(
        "process {process}: this copy has no page in proc/{process}/numa_maps, so it is unknown where \
         its memory is; copy that file as the process's user or root, while the process runs"
    )]
    NotCopied { process: u32 },
    /// A line of `numa_maps` lacks nodes.
    #[error(
        "process {process}: proc/{process}/numa_maps has more anonymous pages at {start:x} than \
         pages on nodes, so the line is cut; copy the whole file, not what a terminal shows"
    )]
    Cut { process: u32, start: u64 },
    /// A file is not a valid dump.
    #[error("{}: {source}", path.display())]
    Dump { path: PathBuf, source: DumpError },
    /// A file does not contain a dump.
    #[error("{}: contains no heap; expected heap.bin of `numalab guest run --kernel numalab -o \
        DIR -- dump=heap`, that kernel's console, or Xen's console with the output of `xl \
        debug-keys u` or `xl debug-keys H`", path.display())]
    NoHeap { path: PathBuf },
    /// `xl` failed.
    #[error("{0}")]
    Xl(#[from] CommandError),
    /// The terminal failed.
    #[error("terminal: {0}")]
    Terminal(io::Error),
}

impl Classed for ExploreError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NoProcess { .. }
            | Self::NotCopied { .. }
            | Self::Cut { .. }
            | Self::Dump { .. }
            | Self::NoHeap { .. } => ErrorClass::BadInput,
            Self::Denied { .. } | Self::NoPlacement { .. } => ErrorClass::Lacking,
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
