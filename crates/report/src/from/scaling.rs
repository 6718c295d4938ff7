//! A scaling run: its page, and what is seen in it in words.

mod page;
mod rows;
mod words;

use numalab_analysis::scaling::ScalingSummary;
use numalab_record::Kind;

use crate::documents::document;
use crate::page::Page;
use crate::report::Report;
use crate::rows::Rows;

pub use words::{name, sentence};

impl Report for ScalingSummary<'_> {
    fn page(&self) -> Page {
        page::page(self)
    }

    /// A row for each step and size.
    fn rows(&self) -> Option<Rows> {
        Some(rows::rows(&self.figures))
    }

    fn json(&self) -> serde_json::Result<String> {
        document(Kind::Scaling, self)
    }
}
