//! Page, JSON and rows of a scaling run.

mod parts;
mod rows;
mod words;

pub use words::{name, sentence};

use numalab_page::Page;
use numalab_page::rows::Rows;
use numalab_record::Kind;

use crate::document::document;
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

    fn json(&self) -> serde_json::Result<String> {
        document(Kind::Scaling, self)
    }
}
