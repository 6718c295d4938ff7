//! Pages made from what was found, and findings put into words.

pub mod advice;
pub mod bisect;
pub mod capture;
pub mod compare;
pub mod explore;
pub mod fleet;
pub mod health;
pub mod machine;
pub mod memory;
mod over_time;
mod plan;
pub mod profile;
pub mod published;
pub mod run;
pub mod samples;
pub mod scaling;
mod self_test;
mod settings;
pub mod study;
pub mod system;
mod tiering;
mod topology;

pub use plan::{time_words, too_few_blocks};

use numalab_analysis::run::{Entry, Matrix};

use crate::number::figure;
pub use crate::number::seconds_words;
use crate::table::Table;

/// A matrix as a table.
fn matrix_table(matrix: &Matrix, caption: String) -> Table {
    let corner = format!("{} \\ {}", matrix.rows_are.name(), matrix.columns_are.name());
    let table = matrix
        .columns
        .iter()
        .fold(Table::new(caption).words(corner), |table, column| table.figures(column.to_string()));
    let rows = matrix.rows.iter().zip(&matrix.entries);
    table.rows(rows.map(|(row, entries)| {
        let value = |entry: &Option<Entry>| {
            entry.as_ref().map_or_else(|| "–".to_owned(), |entry| figure(entry.value))
        };
        let label = format!("{} {row}", matrix.rows_are.name());
        core::iter::once(label).chain(entries.iter().map(value)).collect()
    }))
}
