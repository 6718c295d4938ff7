//! Files that survive a crash: created once, appended to and synced, replaced in one step.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Creates the directory `parent/name`; if that exists, with `-2`, `-3` and so on behind it.
///
/// # Errors
/// That of the system, unless it is that the directory exists.
pub fn create_unique_directory(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let mut attempt = 1_u32;
    loop {
        let suffix = if attempt == 1 { String::new() } else { format!("-{attempt}") };
        let directory = parent.join(format!("{name}{suffix}"));
        match fs::create_dir(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Appends `text` and waits until it is on disk.
///
/// # Errors
/// That of the system.
pub fn append_synced(file: &mut File, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.sync_data()
}

/// Replaces the file in one step, so that a crash leaves the old one or the new one.
///
/// # Errors
/// That of the system; the old file is still there.
pub fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension("tmp");
    let written = File::create(&draft)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&draft, path));
    written.inspect_err(|_| {
        // The draft is useless now; the error that is returned says why.
        let _ = fs::remove_file(&draft);
    })
}

/// Cuts a last line without its end, which a crash leaves behind.
///
/// # Errors
/// That of the system.
pub fn drop_cut_line(path: &Path) -> io::Result<()> {
    let bytes = fs::read(path)?;
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    if whole == bytes.len() {
        return Ok(());
    }
    OpenOptions::new().write(true).open(path)?.set_len(whole as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_exists_is_never_used_again() {
        let parent = tempfile::tempdir().unwrap();
        let first = create_unique_directory(parent.path(), "run").unwrap();
        let second = create_unique_directory(parent.path(), "run").unwrap();
        assert_eq!(first, parent.path().join("run"));
        assert_eq!(second, parent.path().join("run-2"));
    }

    #[test]
    fn a_cut_line_is_dropped_and_whole_ones_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        for (text, left) in [("a\nb\nc", "a\nb\n"), ("a\n", "a\n"), ("a", ""), ("", "")] {
            fs::write(&path, text).unwrap();
            drop_cut_line(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), left);
        }
    }

    #[test]
    fn replacing_a_file_leaves_no_draft() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.json");
        write_atomically(&path, "1").unwrap();
        write_atomically(&path, "2").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "2");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
