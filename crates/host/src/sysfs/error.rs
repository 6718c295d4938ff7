//! The reasons why no machine could be read.

use std::path::PathBuf;

use numalab_topology::NodeSet;
use rustix::io::Errno;

use crate::error_class::{Classed, ErrorClass};

/// Reason why no machine could be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SysfsError {
    /// The directory has no cpus in `sys/devices/system/cpu`, in `proc/cpuinfo` or on nodes.
    #[error(
        "{directory}: no sys/devices/system/cpu/cpu* and no processor in proc/cpuinfo: expected a directory that holds sys/ and proc/ of a Linux machine{}",
        instead.as_ref().map(|found| format!(", such as {}", found.display())).unwrap_or_default()
    )]
    NoCpus {
        directory: PathBuf,
        /// A directory above or below it that holds them.
        instead: Option<PathBuf>,
        /// True if it is the running system.
        live: bool,
    },
    /// The directory does not exist.
    #[error("{0}: no such directory")]
    NoDirectory(PathBuf),
    /// A file, such as an archive of a tree.
    #[error(
        "{0}: not a directory: unpack it (tar xf FILE), and give the directory with sys/ and proc/"
    )]
    NotDirectory(PathBuf),
    /// The process or the system has too many open files, so that every file would seem absent.
    #[error(
        "{directory}: {errno}: raise the limit (`ulimit -n 256`), or close other files of the system"
    )]
    TooManyOpen {
        directory: PathBuf,
        /// `EMFILE` or `ENFILE`.
        errno: Errno,
    },
    /// The running system reports no size of memory in any file.
    #[error(
        "/proc/meminfo has no MemTotal, nor has any /sys/devices/system/node/node*/meminfo: this \
         system's memory is unknown; mount /proc (mount -t proc proc /proc), or start the \
         container with it"
    )]
    NoMemory,
    /// The running system has several nodes, but does not show them.
    #[error(
        "/sys/devices/system/node is missing, and this process may use memory of nodes {nodes}: the \
         nodes' cpus are unknown; mount /sys (mount -t sysfs sysfs /sys), or start the container with \
         it"
    )]
    NoNodes {
        /// The nodes of the process's memory.
        nodes: NodeSet,
    },
}

impl Classed for SysfsError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NoCpus { live: true, .. }
            | Self::TooManyOpen { .. }
            | Self::NoMemory
            | Self::NoNodes { .. } => ErrorClass::Lacking,
            Self::NoCpus { live: false, .. } | Self::NoDirectory(_) | Self::NotDirectory(_) => {
                ErrorClass::BadInput
            }
        }
    }
}
