#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]

pub mod bind;
mod hostlist;
pub mod identity;
pub mod local;
pub mod near;
pub mod scale;
pub mod session;
pub mod suite;
pub mod team;
