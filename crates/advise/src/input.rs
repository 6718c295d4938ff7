//! Input of the program: empty, or the file to which standard input is redirected.

use std::fs;
use std::path::PathBuf;

/// Returns the regular file on standard input, which every run reads from its beginning. A terminal or a
/// pipe, which only one run could read, is left alone.
#[must_use]
pub fn redirected() -> Option<PathBuf> {
    let own = "/proc/self/fd/0";
    let is_file = fs::metadata(own).is_ok_and(|meta| meta.is_file());
    // One that was removed has no name any more, under which it could be opened.
    fs::read_link(own).ok().filter(|path| is_file && path.is_file())
}
