#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]
#![expect(clippy::missing_errors_doc, reason = "error types that list what can fail")]

pub mod bind;
mod hostlist;
pub mod identity;
pub mod local;
pub mod near;
pub mod scale;
pub mod session;
pub mod suite;
pub mod team;
