//! What a run found, in words.

mod oddity;
mod sentences;

pub(crate) use oddity::sentence as finding;
pub use sentences::sentences;
pub(crate) use sentences::{cycles, remote_tile};
