//! One file that holds a setting.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;

use numalab_record::system::KnobState;
use serde::{Deserialize, Serialize};

use super::error::WriteFailure;
use super::value;
use crate::root::Root;

/// What a file that holds a setting tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileState {
    /// Its value.
    Value(String),
    /// It can be written and not read.
    WriteOnly,
    /// It is not there.
    Absent,
    /// It is there and may not be read.
    Denied(String),
}

impl FileState {
    /// Whether it has a value, and which.
    #[must_use]
    pub fn into_parts(self) -> (KnobState, Option<String>) {
        match self {
            Self::Value(value) => (KnobState::Value, Some(value)),
            Self::WriteOnly => (KnobState::WriteOnly, None),
            Self::Absent => (KnobState::Absent, None),
            Self::Denied(_) => (KnobState::Denied, None),
        }
    }
}

/// Reads the file at `path` below the root, which begins with `sys/` or `proc/`.
pub(super) fn read(root: &Root, path: &str) -> FileState {
    let place = root.path(path);
    let metadata = match fs::metadata(&place) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return FileState::Absent,
        Err(error) => return FileState::Denied(error.to_string()),
    };
    if metadata.permissions().mode() & 0o444 == 0 {
        return FileState::WriteOnly;
    }
    match root.value(path) {
        Ok(text) => FileState::Value(value::current(&text).to_owned()),
        Err(error) => match WriteFailure::of(&error) {
            WriteFailure::Absent => FileState::Absent,
            _ => FileState::Denied(error.to_string()),
        },
    }
}

/// Whether the file's mode lets anybody write it; root may all the same be refused.
pub(super) fn is_writable(root: &Root, path: &str) -> bool {
    let metadata = fs::metadata(root.path(path));
    metadata.is_ok_and(|metadata| metadata.permissions().mode() & 0o222 != 0)
}

/// Whether this process may write the file (access(2)).
pub(super) fn may_write(root: &Root, path: &str) -> bool {
    rustix::fs::access(root.path(path), rustix::fs::Access::WRITE_OK).is_ok()
}

/// The words that the file offers, if it is of that kind.
pub(super) fn choices(root: &Root, path: &str) -> Vec<String> {
    root.value(path).map(|text| value::choices(&text)).unwrap_or_default()
}

/// Writes a value with the line's end that an empty value needs, in one system call.
pub(super) fn write(root: &Root, path: &str, value: &str) -> Result<(), WriteFailure> {
    // Never made: a missing file is a missing setting.
    let file = OpenOptions::new().write(true).truncate(true).open(root.path(path));
    let mut file = file.map_err(|error| WriteFailure::of(&error))?;
    let text = format!("{value}\n");
    file.write_all(text.as_bytes()).map_err(|error| WriteFailure::of(&error))
}
