//! What a run found, in words.

mod oddity;
mod sentences;

pub use oddity::{Oddity, OddityKind, oddities};
pub use sentences::sentences;
pub(crate) use sentences::{cycles, remote_tile};
