//! Results of numalab's records: findings, their wording and their pages, with a folder per
//! subject.
//!
//! `find` holds rules and figures as values without text; `page` puts them into words and a
//! [`numalab_page::Page`]; `document` adds what JSON needs beyond them. `find` uses neither of the
//! other two.
//!
//! The crate is pure: it has no I/O and reads no clock, so the same record always gives the same
//! text.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]

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
mod judgement;
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
pub use judgement::Judgement;
pub use label::change_words;
pub use report::Report;
pub use verdict::VerdictWord;
