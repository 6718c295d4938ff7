//! Packages of the distribution: located by apt, downloaded and unpacked into the cache, never
//! installed.

mod archive;
mod backports;
mod members;
mod record;
mod store;

pub use archive::{Archive, PackageError};
pub use backports::{backports, packages_for, with_firmware};
pub(crate) use members::each_member;
#[cfg(test)]
pub(crate) use members::tests::Package as TestPackage;
pub use members::{MemberError, extract};
pub use record::PackageRecord;
pub use store::{Unpacked, closure, ensure_unpacked, ensure_unpacked_for, ensure_with_libraries};
