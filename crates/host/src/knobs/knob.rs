//! A knob: one setting, and the file or files that hold it.

use std::path::PathBuf;

use super::damon;
use super::error::{KnobError, WriteFailure};
use super::file::{self, FileState};
use crate::root::Root;

/// A setting of the system by name, found on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    name: String,
    /// The files that a value is written to.
    pub(super) writes: Vec<String>,
    /// The files whose values are kept and put back; the same, unless one file stands
    /// for the sum of others.
    pub(super) saves: Vec<String>,
    pub(super) nature: Nature,
}

/// What kind of setting a knob is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// Each of its files takes the value.
    Value,
    /// Files that cannot take the value are left out, as interrupts that may not move.
    WherePossible,
    /// Writing makes something happen once; there is nothing to put back.
    Trigger,
    /// Many files, of which the first one is kept: DAMON's migration.
    Damon,
}

impl Knob {
    pub(super) fn new(name: &str, files: Vec<String>, nature: Nature) -> Self {
        Self { name: name.to_owned(), saves: files.clone(), writes: files, nature }
    }

    /// DAMON watching the memory of a process: its values are `watch:PID`.
    #[must_use]
    pub fn damon_watch() -> Self {
        Self::new("damon_watch", vec![damon::COUNT.to_owned()], Nature::Damon)
    }

    /// Its name as it was asked for.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The files that are written, below the root.
    #[must_use]
    pub fn files(&self) -> &[String] {
        &self.writes
    }

    /// Whether this process may change it.
    #[must_use]
    pub fn may_be_set(&self, root: &Root) -> bool {
        !self.writes.is_empty() && self.writes.iter().all(|path| file::may_write(root, path))
    }

    /// What it holds now: the value that all of its files have, or those that differ,
    /// separated by blanks.
    #[must_use]
    pub fn state(&self, root: &Root) -> FileState {
        if self.nature == Nature::Damon {
            return damon::state(root);
        }
        let mut values: Vec<String> = Vec::new();
        for path in &self.writes {
            match file::read(root, path) {
                FileState::Value(value) if !values.contains(&value) => values.push(value),
                FileState::Value(_) => {}
                other => return other,
            }
        }
        if values.is_empty() { FileState::Absent } else { FileState::Value(values.join(" ")) }
    }

    /// The error for a file that cannot be written.
    pub(super) fn failure(
        &self,
        root: &Root,
        path: &str,
        value: &str,
        why: WriteFailure,
    ) -> KnobError {
        let (name, file) = (self.name.clone(), self.place(path));
        match why {
            WriteFailure::Absent => KnobError::Absent { name, file },
            WriteFailure::Denied(reason) => KnobError::Denied { name, file, reason },
            WriteFailure::Unsupported(reason) => KnobError::Unsupported { name, file, reason },
            WriteFailure::Refused => {
                let choices = file::choices(root, path);
                let mut expected = String::new();
                if !choices.is_empty() {
                    expected = format!(", expected one of {}", choices.join(", "));
                }
                KnobError::Refused { name, value: value.to_owned(), expected }
            }
        }
    }

    /// The file as people know it.
    pub(super) fn place(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/{path}"))
    }
}
