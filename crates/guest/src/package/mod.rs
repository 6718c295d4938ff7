//! Packages of the distribution: found by apt, downloaded and unpacked into the
//! cache, never installed.

mod archive;
mod backports;
mod record;
mod store;

pub use archive::{Archive, PackageError};
pub use backports::backports;
pub use record::PackageRecord;
pub use store::{Unpacked, ensure_unpacked};
pub(crate) use store::{closure, ensure_with_libraries, extract};
