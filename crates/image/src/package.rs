//! Packages of the distribution: located by apt, downloaded and unpacked into the cache, never
//! installed.

mod archive;
mod backports;
mod error;
mod members;
mod record;
mod store;

pub use archive::Archive;
pub use backports::{backports, packages_for, with_firmware};
pub use error::{MemberError, PackageError};
pub(crate) use members::each_member;
pub use members::extract;
#[cfg(test)]
pub(crate) use members::tests::Package as TestPackage;
pub use record::PackageRecord;
pub use store::{Unpacked, closure, ensure_unpacked, ensure_unpacked_for, ensure_with_libraries};
