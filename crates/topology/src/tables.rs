//! Machines from ACPI tables, and tables of machines.

mod bytes;
mod domains;
mod hmat;
mod layout;
mod read;
mod verify;
mod write;

pub use bytes::{TableBytes, TableError};
