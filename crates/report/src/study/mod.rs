//! A study's answers to pages.

mod data;
mod html;
mod method;
mod pair;
mod placeholder;
mod tables;
mod text;
mod words;

use std::ops::Deref;

use numalab_analysis::study::StudySummary;

pub use pair::PairPage;

/// A study as a page shows it.
#[derive(Debug)]
pub struct StudyPage<'a>(pub &'a StudySummary<'a>);

impl<'a> Deref for StudyPage<'a> {
    type Target = StudySummary<'a>;

    fn deref(&self) -> &StudySummary<'a> {
        self.0
    }
}
