#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]
#![expect(clippy::missing_errors_doc, reason = "error types that list what can fail")]

extern crate alloc;
#[cfg(any(test, feature = "host"))]
extern crate std;

pub mod arena_size;
pub mod boot_info;
pub mod command;
pub mod event;
pub mod memory_map;
pub mod plan;
#[cfg(feature = "host")]
pub mod results;
#[cfg(feature = "host")]
pub mod run;
pub mod tables;
pub mod wire;
pub mod work;
