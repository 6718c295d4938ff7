#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unreachable,
    clippy::unwrap_used
)]

#[macro_use]
mod record;
#[macro_use]
mod entry;
#[macro_use]
mod flags;

pub mod acpidump;
mod builder;
pub mod cedt;
mod check;
mod finding;
mod header;
pub mod hmat;
mod list;
pub mod madt;
mod problem;
mod processor;
mod size;
pub mod slit;
pub mod srat;
mod table;
mod tables;
mod writer;

pub use builder::Builder;
pub use cedt::Cedt;
pub use check::{Refusal, ScratchTooShort, Slot, check};
pub use entry::{EntryHead, RawEntry, TypedEntry};
pub use finding::{Finding, Severity};
pub use header::{Header, Signature, checksum};
pub use hmat::Hmat;
pub use list::{List, Scalar};
pub use madt::Madt;
pub use problem::{
    LimitProblem, MAX_DOMAINS, MAX_PROCESSORS, MAX_TABLE_BYTES, OverlapProblem, Problem,
    WindowProblem,
};
pub use record::Record;
pub use slit::Slit;
pub use srat::Srat;
pub use table::{Entries, Format, Located, Table};
pub use tables::{AnyTable, Tables};
pub use writer::BuildError;
