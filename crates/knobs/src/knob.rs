//! One setting and the files that hold it.

use std::path::PathBuf;

use super::catalogue::ranges;
use super::damon;
use super::error::{KnobError, WriteFailure};
use super::file::{self, FileState};
use super::value;
use numalab_host::Root;

/// A named setting of the system, found on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    name: String,
    /// The files that a value is written to.
    pub(super) writes: Vec<String>,
    /// The files with values that are saved and restored: the same ones, unless the written file is the
    /// sum of others.
    pub(super) saves: Vec<String>,
    pub(super) nature: Nature,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// Each of its files takes the value.
    Value,
    /// Files that reject the value are skipped, such as those of interrupts that cannot move.
    WherePossible,
    /// Writing triggers an action; there is no value to restore.
    Trigger,
    /// DAMON's migration: many files, of which only the first is saved.
    Damon,
}

impl Knob {
    pub(super) fn new(name: &str, files: Vec<String>, nature: Nature) -> Self {
        Self { name: name.to_owned(), saves: files.clone(), writes: files, nature }
    }

    /// Creates the knob that makes DAMON watch a process's memory; its values are `watch:PID`.
    pub fn damon_watch() -> Self {
        Self::new("damon_watch", vec![damon::COUNT.to_owned()], Nature::Damon)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the files that are written, relative to the root.
    pub fn files(&self) -> &[String] {
        &self.writes
    }

    /// Reports whether this process may change the setting.
    pub fn may_be_set(&self, root: &Root) -> bool {
        !self.writes.is_empty() && self.writes.iter().all(|path| file::may_write(root, path))
    }

    /// Returns the current value: the common value of all files, or the different values separated
    /// by spaces.
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

    /// Checks a value without writing, by what the files show: their choices, and sysctls that are
    /// numbers; and by the ranges that the kernel documents. The kernel may still refuse other
    /// values.
    ///
    /// # Errors
    /// [`KnobError::Refused`] with the choices or the range.
    pub fn check_value(&self, root: &Root, value: &str) -> Result<(), KnobError> {
        for path in &self.writes {
            self.check_range(path, value)?;
        }
        let checked = if self.nature == Nature::Value { &self.writes[..] } else { &[] };
        for path in checked {
            let choices = file::choices(root, path);
            let is_choice = choices.is_empty() || choices.iter().any(|choice| choice == value);
            let has_number = path.starts_with("proc/sys/")
                && matches!(file::read(root, path), FileState::Value(now) if value::is_number(&now));
            let is_word = value.contains(char::is_alphabetic) && !value::is_number(value);
            if !is_choice {
                return Err(self.failure(root, path, value, WriteFailure::Refused));
            }
            if has_number && is_word {
                let (name, value) = (self.name.clone(), value.to_owned());
                let expected = ", expected a number".to_owned();
                return Err(KnobError::Refused { name, value, expected });
            }
        }
        Ok(())
    }

    fn check_range(&self, path: &str, value: &str) -> Result<(), KnobError> {
        let Some(range) = ranges::of_file(path) else { return Ok(()) };
        let is_within = match value::number(value) {
            Some(number) => u64::try_from(number).is_ok_and(|number| range.contains(&number)),
            None => *range.end() == 1 && value::truth(value).is_some(),
        };
        if is_within {
            return Ok(());
        }
        let (least, most) = range.into_inner();
        let expected = match most {
            u64::MAX => ", expected a number, from 0".to_owned(),
            _ if least == most => format!(", expected {least}"),
            _ => format!(", expected a number from {least} to {most}"),
        };
        Err(KnobError::Refused { name: self.name.clone(), value: value.to_owned(), expected })
    }

    /// Converts a failed write into an error.
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

    /// Returns the file's absolute path, for messages.
    pub(super) fn place(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/{path}"))
    }
}
