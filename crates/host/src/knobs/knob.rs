//! A knob: one setting, and the file or files that hold it.

use std::path::PathBuf;

use super::acts::{self, Acts};
use super::catalogue;
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
}

impl Knob {
    pub(super) fn new(name: &str, files: Vec<String>, nature: Nature) -> Self {
        Self { name: name.to_owned(), saves: files.clone(), writes: files, nature }
    }

    /// Finds a knob by a name of the catalogue, as a sysctl (`vm.swappiness`), or as a
    /// file below `/proc/sys`, `/proc/irq` or `/sys`.
    ///
    /// # Errors
    /// [`KnobError::Unknown`] if it is none of these. A setting that this kernel does
    /// not have is found too, and is [`FileState::Absent`].
    pub fn find(root: &Root, name: &str) -> Result<Self, KnobError> {
        if let Some(knob) = catalogue::find(root, name) {
            return Ok(knob);
        }
        let path = match name.strip_prefix('/') {
            Some(path) => path.to_owned(),
            None if name.contains('.') && !name.contains('/') => {
                format!("proc/sys/{}", name.replace('.', "/"))
            }
            None => name.to_owned(),
        };
        let places = ["proc/sys/", "proc/irq/", "sys/"];
        let stays = !path.split('/').any(|part| part.is_empty() || part == "..");
        if stays && places.iter().any(|place| path.starts_with(place)) {
            let nature = catalogue::nature_of_file(&path);
            return Ok(Self::new(name, vec![path], nature));
        }
        Err(KnobError::Unknown { name: name.to_owned() })
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

    /// What it holds now: the value that all of its files have, or those that differ,
    /// separated by blanks.
    #[must_use]
    pub fn state(&self, root: &Root) -> FileState {
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

    /// Whether a change can have an effect on this machine.
    #[must_use]
    pub fn acts(&self, root: &Root) -> Acts {
        acts::acts(root, self)
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
