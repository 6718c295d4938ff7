//! Text and tables within 80 columns, for pages of other crates.

pub use crate::number::{count, figure, size};
pub use crate::table::{Align, Column, Table, one_line};
pub use crate::terminal::layout::{WIDTH, cut, cut_middle, hanging, table, wrap};
