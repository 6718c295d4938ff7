#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]
#![expect(clippy::missing_errors_doc, reason = "error types that list what can fail")]

mod choose;
mod code;
mod damon;
mod emulated;
mod error;
mod follow;
mod look;
mod nodes;
mod pages;
mod program;
mod referenced;
mod resident;
mod session;
mod space;
mod summary;
#[cfg(test)]
mod test_records;
mod threads;
mod timeline;
mod watch;

pub use choose::{SourceChoice, choose};
pub use emulated::EmulatedRun;
pub use error::ProfileError;
pub use nodes::profiled_nodes;
pub use session::Watched;
pub use watch::watch;
