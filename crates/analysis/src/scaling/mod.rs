//! Scaling over ranks: figures of each step, and ranks in groups.

pub mod figures;
pub mod groups;

pub use figures::StepFigures;
pub use groups::{Group, GroupKind};
