#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]
#![expect(clippy::missing_errors_doc, reason = "error types that list what can fail")]

mod digest;
pub mod init;
pub mod nested_paging;
pub mod protocol;
pub mod xen;

pub use digest::sha256;
pub use protocol::{Exit, Job, Stream};
