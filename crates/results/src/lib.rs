//! What records show: findings, their words and their pages, a folder a subject.
//!
//! `find` holds rules and figures as values, without text for people; `page` puts them into
//! words and a [`numalab_page::Page`]; `document` is what JSON holds beyond them. `find` uses
//! nothing of the other two.
//!
//! Pure: no input or output, no clock. The same record always gives the same text.
#![forbid(unsafe_code)]

pub mod advice;
pub mod bisect;
pub mod capture;
pub mod compare;
mod document;
pub mod documents;
pub mod explore;
mod finding;
pub mod fleet;
pub mod health;
mod label;
pub mod machine;
mod over_time;
pub mod profile;
pub mod program;
mod report;
pub mod run;
pub mod samples;
pub mod scaling;
pub mod self_test;
mod settings;
pub mod shape;
pub mod study;
pub mod system;
pub mod tiering;
mod topology;
mod verdict;

pub use document::document;
pub use finding::Finding;
pub use label::change_words;
pub use report::Report;
pub use verdict::VerdictWord;
