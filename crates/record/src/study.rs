//! A study: its question, the order of its treatments, and every sample.
//!
//! `study.toml` holds the definition as its author wrote it, `run.json` a [`StudyRun`], and
//! `journal.jsonl` one [`JournalEntry`] per line, append-only. [`StudyDocument`] joins them.

mod accelerator;
pub mod counter;
mod definition;
mod disturbance;
mod document;
mod journal;
mod notice;
mod plan;
mod planned;
mod published;
mod quantity;
mod setting;

pub use accelerator::{AcceleratorReason, KvmFault};
pub use definition::{Factor, FactorKind, Rules, Workload};
pub use disturbance::{Disturbance, Load, LoadedMachine};
pub use document::{Cells, Counted, StudyDocument, StudyError, StudyRun};
pub use journal::{
    Applied, CachedFile, EndReason, Evidence, GuestPlace, JournalEntry, Observation, SampleEntry,
};
pub use notice::{EmulatedCosts, Notice};
pub use plan::{Arm, Treatment, Visit};
pub use planned::{
    BackendSettings, Decision, Decisions, ListedSetting, ListedStudy, PlannedLevel, PlannedStudy,
    PlannedWorkload, SettingList, ShownStudy, StudyList, StudyTime,
};
pub use published::Published;
pub use quantity::{Quantity, Reading};
pub use setting::Setting;
