//! Advice on a program's memory placement: candidates, predictions and trials.

mod find;
pub mod page;

pub use find::*;
