//! Input of the program: empty, or the file to which standard input is redirected.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;

/// Standard input of this process.
const OWN: &str = "/proc/self/fd/0";

/// Returns the regular file on standard input, which every run reads from its beginning; `None` for
/// a terminal or a pipe, which only one run could read.
pub fn redirected() -> Option<PathBuf> {
    let is_file = fs::metadata(OWN).is_ok_and(|meta| meta.is_file());
    // A deleted file has no name under which it could be opened again.
    fs::read_link(OWN).ok().filter(|path| is_file && path.is_file())
}

/// Returns true if standard input is a pipe.
pub fn is_piped() -> bool {
    fs::metadata(OWN).is_ok_and(|meta| meta.file_type().is_fifo())
}
