//! A study's samples to answers, and answers to pages.

mod analysis;
mod contrasts;
mod data;
mod html;
mod method;
mod pair;
mod placeholder;
mod tables;
mod text;
mod words;

pub use analysis::{AaArm, Effect, StudySummary, Subject};
pub use contrasts::EffectKind;
pub use pair::StudyPair;
