//! Input of the program: empty, or the file to which standard input is redirected.

use std::fs;
use std::path::PathBuf;

/// Returns the regular file on standard input, which every run reads from its beginning; `None` for
/// a terminal or a pipe, which only one run could read.
pub fn redirected() -> Option<PathBuf> {
    let own = "/proc/self/fd/0";
    let is_file = fs::metadata(own).is_ok_and(|meta| meta.is_file());
    // A deleted file has no name under which it could be opened again.
    fs::read_link(own).ok().filter(|path| is_file && path.is_file())
}
