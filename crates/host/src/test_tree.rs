//! Trees of files that represent machines, for tests.

use std::fs;

use tempfile::TempDir;

/// Returns a tree of these files.
pub(crate) fn tree(files: &[(&str, &str)]) -> TempDir {
    let top = tempfile::tempdir().unwrap();
    files.iter().for_each(|(path, text)| write(&top, path, text));
    top
}

/// Writes a file of a tree, creating its directories.
pub(crate) fn write(top: &TempDir, path: &str, text: &str) {
    let path = top.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
