//! A tree of files that represents a machine.

use std::fs;
use std::path::Path;

/// Writes a file of the tree, creating its directories.
pub fn write(top: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = top.join(path);
    fs::create_dir_all(path.parent().expect("below the tree")).expect("made");
    fs::write(path, content).expect("written");
}
