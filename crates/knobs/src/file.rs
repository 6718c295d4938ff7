//! Reads and writes one file of a setting.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;

use numalab_record::system::KnobState;
use serde::{Deserialize, Serialize};

use super::error::WriteFailure;
use super::value;
use numalab_host::Root;

/// The readable state of a setting's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileState {
    Value(String),
    /// The file is writable but not readable.
    WriteOnly,
    /// The file does not exist.
    Absent,
    /// The file may not be read, for this reason.
    Denied(String),
}

impl FileState {
    /// Splits the state into its kind and the value, for records.
    pub fn into_parts(self) -> (KnobState, Option<String>) {
        match self {
            Self::Value(value) => (KnobState::Value, Some(value)),
            Self::WriteOnly => (KnobState::WriteOnly, None),
            Self::Absent => (KnobState::Absent, None),
            Self::Denied(_) => (KnobState::Denied, None),
        }
    }
}

/// Reads the file at `path` below the root; the path begins with `sys/` or `proc/`.
pub(super) fn read(root: &Root, path: &str) -> FileState {
    let place = root.path(path);
    let metadata = match fs::metadata(&place) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return FileState::Absent,
        Err(error) => return FileState::Denied(error.to_string()),
    };
    // The mode is examined because access(2) grants root everything.
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

/// Reports whether the file has any write permission bit; the kernel can refuse root anyway.
pub(super) fn is_writable(root: &Root, path: &str) -> bool {
    let metadata = fs::metadata(root.path(path));
    metadata.is_ok_and(|metadata| metadata.permissions().mode() & 0o222 != 0)
}

/// Reports whether this process may write the file (access(2)).
pub(super) fn may_write(root: &Root, path: &str) -> bool {
    rustix::fs::access(root.path(path), rustix::fs::Access::WRITE_OK).is_ok()
}

/// Returns the words that the file offers, such as `always [madvise] never`.
pub(super) fn choices(root: &Root, path: &str) -> Vec<String> {
    root.value(path).map(|text| value::choices(&text)).unwrap_or_default()
}

/// Writes a value and a newline, which an empty value needs, in one system call.
pub(super) fn write(root: &Root, path: &str, value: &str) -> Result<(), WriteFailure> {
    // Not created: a missing file is a missing setting.
    let file = OpenOptions::new().write(true).truncate(true).open(root.path(path));
    let mut file = file.map_err(|error| WriteFailure::of(&error))?;
    let text = format!("{value}\n");
    file.write_all(text.as_bytes()).map_err(|error| WriteFailure::of(&error))
}
