#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]

mod acts;
mod catalogue;
mod changed;
mod companions;
mod damon;
mod directories;
mod error;
mod file;
mod journal;
mod knob;
mod pool;
mod restore;
mod tuning;
mod value;

pub use acts::Acts;
pub use catalogue::{HUGE_PAGES, list};
pub use changed::ChangedSettings;
pub use damon::{WATCH_LOOKS, WATCH_SAMPLE_US, WatchedRegion, watch_hindrance, watched_regions};
pub use error::{KnobError, WriteFailure};
pub use file::FileState;
pub use journal::JOURNAL;
pub use knob::Knob;
pub use restore::{Restored, RestoredFile, restore_stale, stale};
pub use tuning::{Applied, Tuning};
