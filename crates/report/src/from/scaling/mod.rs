//! A scaling run: its page, and what is seen in it in words.

mod csv;
mod page;
mod words;

use numalab_analysis::scaling::ScalingSummary;
use numalab_record::Kind;

use crate::page::{Page, Report};

pub use words::{name, sentence};

impl Report for ScalingSummary<'_> {
    fn page(&self) -> Page {
        page::page(self)
    }

    /// A line for each step and size.
    fn csv(&self) -> String {
        csv::csv(&self.figures)
    }

    fn json(&self) -> serde_json::Result<String> {
        super::document(Kind::Scaling, self)
    }
}
