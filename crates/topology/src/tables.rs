//! Conversion of machines from and to ACPI tables.

mod bytes;
mod domains;
mod hmat;
mod layout;
mod read;
mod verify;
mod write;

pub use bytes::{TableBytes, TableError};
