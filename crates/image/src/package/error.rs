//! Errors in getting packages.

use std::io;
use std::path::PathBuf;

use numalab_host::{Classed, CommandError};
use tar::EntryType;

use crate::cache::CacheError;

/// The maximum size of one member in bytes; a kernel with debugging information has about 800 MB.
pub(super) const MOST_MEMBER_BYTES: u64 = 2 << 30;
/// The prefix of numalab's own files in a package's tree.
pub(super) const OWN_PREFIX: &str = ".numalab";

/// Reasons why a package cannot be obtained.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// A tool failed or is absent.
    #[error(transparent)]
    Tool(#[from] CommandError),
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error("apt knows no package named {name:?}")]
    Unknown { name: String },
    #[error("{system}: {packages} are needed, which numalab can download only on Debian")]
    OtherSystem { system: String, packages: String },
    #[error("{package}: member {member:?}: {source}")]
    Member {
        package: PathBuf,
        /// The member's name in the package.
        member: String,
        source: MemberError,
    },
    /// A file of a package cannot be read or written.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Classed for PackageError {
    fn remedy(&self) -> Option<String> {
        match self {
            Self::Tool(CommandError::NotFound { program }) => Some(format!(
                "{program} is needed to download packages: use a Debian or Ubuntu system, or \
                 provide the files yourself"
            )),
            Self::Tool(_) => Some("check the network and run: apt-get update".to_owned()),
            Self::Unknown { .. } => Some("apt-get update".to_owned()),
            Self::OtherSystem { .. } => Some("use Debian 12 or later".to_owned()),
            Self::Cache(_) | Self::Member { .. } | Self::Io { .. } => None,
        }
    }
}

/// The reason why a member is rejected.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The member has no name, or a name that leads out of the package's directory.
    #[error("expected a name below the package's directory, without `..` and control characters")]
    Name,
    #[error("a hard link to {0:?}, expected one to a member of the same package")]
    HardLink(String),
    #[error("an earlier member is a link at this path that leads out of the package's directory")]
    ThroughLink,
    #[error("names that begin with {OWN_PREFIX} are reserved for numalab")]
    Own,
    #[error("kind {0:?}, expected a file, directory or link")]
    Kind(EntryType),
    /// The member exceeds the size limit of a package's files.
    #[error("{size_bytes} bytes, expected at most {MOST_MEMBER_BYTES}")]
    Size {
        /// The size that the archive declares.
        size_bytes: u64,
    },
    /// The member cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}
