//! System settings ("knobs") that are changed for one run and always restored. A [`Tuning`] holds
//! the settings of one run. Before a file is written for the first time, its prior value is in a
//! journal that has been synced to disk; every write is read back. All settings are restored at the
//! end, on ctrl-C, or after a SIGKILL by [`restore_stale`], before which no other run may begin.

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
