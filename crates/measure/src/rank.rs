//! What one rank of many measures: its own buffer, from its own cpu.
//!
//! A [`RankBuffer`] has the memory, with proof of its node; on it a [`RankChase`] or a
//! [`RankStream`] is made for each size. When to begin and to end is for the caller, who
//! knows the other ranks.

mod buffer;
mod chase;
mod stream;

pub use buffer::{MemorySource, RankBuffer};
pub use chase::{Chain, ChaseRules, RankChase, RankWalk, RankWindows};
pub use stream::{RankStream, Span, StreamRules};
