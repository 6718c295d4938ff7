//! Files of `/proc` and `/sys` under a root.

use std::fs;
use std::io;
use std::path::PathBuf;

use numalab_host::Root;

use crate::error::ExploreError;

/// The path of `relative` under the root.
pub(crate) fn path(root: &Root, relative: &str) -> PathBuf {
    root.directory().join(relative)
}

/// The text of a file; bytes that are no UTF-8 are replaced.
///
/// # Errors
/// [`ExploreError::Unreadable`], with the path.
pub(crate) fn text(root: &Root, relative: &str) -> Result<String, ExploreError> {
    let path = path(root, relative);
    match fs::read(&path) {
        Ok(bytes) => Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())),
        Err(source) => Err(ExploreError::Unreadable { path, source }),
    }
}

/// The trimmed text of a file that may be absent.
pub(crate) fn value(root: &Root, relative: &str) -> Option<String> {
    text(root, relative).ok().map(|text| text.trim().to_owned())
}

/// A file with one number.
pub(crate) fn number(root: &Root, relative: &str) -> Option<u64> {
    value(root, relative)?.parse().ok()
}

/// The names in a directory, sorted; none if it cannot be read.
pub(crate) fn names(root: &Root, relative: &str) -> Vec<String> {
    let entries = fs::read_dir(path(root, relative)).into_iter().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// The entries of a directory that are numbers, ascending.
pub(crate) fn numbers(root: &Root, relative: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> =
        names(root, relative).iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Whether an error says that the file is another user's.
pub(crate) fn is_denied(error: &ExploreError) -> bool {
    matches!(error, ExploreError::Unreadable { source, .. }
        if source.kind() == io::ErrorKind::PermissionDenied)
}
