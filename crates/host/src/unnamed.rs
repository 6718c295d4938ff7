//! Files without a name.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;

/// Opens a file without a name in the directory of temporary files. It ends with its last descriptor.
///
/// # Errors
/// Those of open(2), also if the directory's file system has no such files.
pub fn unnamed_file() -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_TMPFILE).open(std::env::temp_dir())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_file_without_a_name_is_read_and_written() {
        let file = unnamed_file().unwrap();
        file.write_all_at(b"words", 0).unwrap();
        let mut words = [0; 5];
        file.read_exact_at(&mut words, 0).unwrap();
        assert_eq!((&words, file.metadata().unwrap().nlink()), (b"words", 0));
    }
}
