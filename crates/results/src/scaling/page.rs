//! Page, JSON and rows of a scaling run.

mod parts;
mod rows;
mod words;

pub(crate) use rows::columns;
pub use words::{name, sentence};

use numalab_page::Page;
use numalab_page::rows::Rows;

use crate::document::document_of;
use crate::report::Report;
use crate::scaling::ScalingSummary;

impl Report for ScalingSummary<'_> {
    fn page(&self) -> Page {
        parts::page(self)
    }

    /// Returns one row per step and size.
    fn rows(&self) -> Option<Rows> {
        Some(rows::rows(&self.figures))
    }

    document_of!(Scaling);
}
