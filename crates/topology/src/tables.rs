//! Machines from ACPI tables, and tables of machines.

mod domains;
mod hmat;
mod layout;
mod read;
mod verify;
mod write;

pub use write::{TableBytes, TableError};
