//! Records to terminal text, Markdown, HTML, CSV and JSON.
//!
//! What `numalab-analysis` finds gets its words and its pages here. Nothing here reads
//! or writes files, asks the time or measures: the same record always gives the same
//! text.
#![forbid(unsafe_code)]

pub mod compare;
mod csv;
pub mod from;
mod html;
mod json;
mod label;
mod markdown;
pub mod memory;
mod number;
pub mod page;
mod published;
mod ranks;
mod run;
pub mod samples;
pub mod scaling;
mod section;
pub mod study;
mod table;
mod terminal;
pub mod text;
pub mod topology;

pub use csv::csv;
pub use html::html;
pub use json::json;
pub use markdown::markdown;
pub use published::PublishedPage;
pub use ranks::{ranks_disturbed, ranks_table};
pub use run::sentences;
pub use terminal::{Style, latency_table, terminal};
