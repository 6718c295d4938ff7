//! Records to terminal text, Markdown, HTML, CSV and JSON.
//!
//! What `numalab-analysis` finds gets its words and its pages here. Nothing here reads
//! or writes files, asks the time or measures: the same record always gives the same
//! text.
#![forbid(unsafe_code)]

pub mod documents;
pub mod from;
mod html;
mod label;
mod markdown;
mod mood;
mod number;
pub mod page;
mod ranks;
mod report;
pub mod rows;
mod table;
mod terminal;
pub mod text;

pub use documents::document;
pub use label::change_words;
pub use page::Page;
pub use ranks::RanksReport;
pub use report::Report;
pub use terminal::{Style, latency_table};
