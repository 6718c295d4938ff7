//! Machines from ACPI tables, and tables of machines.

mod domains;
mod hmat;
mod read;
mod write;

pub use write::{TableBytes, TableError};
