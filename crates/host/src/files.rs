//! Files that survive a crash: created once, appended to with fsync, replaced atomically.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::bounded::{MOST_RESULT_BYTES, open_file, read_file_text};
use crate::error_class::{Classed, ErrorClass};

/// A result file or directory that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: could not {action}: {source}")]
pub struct FileError {
    pub path: PathBuf,
    pub action: &'static str,
    pub source: io::Error,
}

const READ: &str = "read it";

/// Prefix of the names of drafts.
const DRAFT: &str = ".draft-";

impl FileError {
    /// Returns a function that adds the path and the operation to an error of the system.
    pub fn at(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { path, action, source }
    }
}

impl Classed for FileError {
    fn class(&self) -> ErrorClass {
        // A file to be read that does not exist was named wrongly.
        match self.source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory if self.action == READ => {
                ErrorClass::BadInput
            }
            _ => ErrorClass::Failed,
        }
    }
}

/// Reads the whole text of a result file.
///
/// # Errors
/// [`FileError`] if it cannot be read.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    read_file_text(path, MOST_RESULT_BYTES).map_err(FileError::at(path, READ))
}

/// Creates the directory `parent/name`, or `parent/name-2`, `-3` and so on if it exists; and its
/// parents if they are missing.
///
/// # Errors
/// The system's error, except that the directory exists.
pub fn create_unique_directory(parent: &Path, name: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(parent)?;
    let mut attempt = 1_u32;
    loop {
        let suffix = if attempt == 1 { String::new() } else { format!("-{attempt}") };
        let directory = parent.join(format!("{name}{suffix}"));
        // Atomic: of two processes only one gets the name.
        match fs::create_dir(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Appends `text` and waits until it is on disk. On an error the part already written is removed,
/// so that the next text does not follow half a line.
///
/// # Errors
/// The system's error.
pub fn append_synced(file: &mut File, text: &str) -> io::Result<()> {
    let before = file.metadata()?.len();
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
    if written.is_err() {
        // Truncating works on a full disk too.
        let _ = file.set_len(before);
    }
    written
}

/// Replaces the file atomically, so that a crash leaves the old content or the new. Others may
/// replace it at the same time, as the tasks of a job array do: the last one wins. A device or a
/// pipe is written to: `/dev/null` and `/dev/stdout` must not become files.
///
/// # Errors
/// The system's error; the old file is unchanged.
pub fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    // A device or pipe is written to; a rename would replace it with a file.
    if path.starts_with("/dev") || fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, text);
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut draft = draft_of(path, directory.unwrap_or(Path::new(".")))?;
    draft.write_all(text.as_bytes())?;
    // A crash after the rename could otherwise leave an empty file under the new name.
    draft.as_file().sync_all()?;
    draft.persist(path)?;
    Ok(())
}

/// Creates a draft of a file, which is locked while this process writes it.
fn draft_of(path: &Path, directory: &Path) -> io::Result<NamedTempFile> {
    // tempfile creates files with mode 0600; the umask reduces this one as for any other file.
    let readable = fs::Permissions::from_mode(0o666);
    loop {
        let draft = tempfile::Builder::new()
            .prefix(&prefix_of(path))
            .permissions(readable.clone())
            .tempfile_in(directory)?;
        // On a file system without locks no draft is removed.
        let is_locked = draft.as_file().lock().is_ok();
        // Another process may have removed it before it was locked.
        if !is_locked || draft.as_file().metadata()?.nlink() > 0 {
            return Ok(draft);
        }
    }
}

/// Returns the beginning of the names of a file's drafts.
fn prefix_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{DRAFT}{name}.")
}

/// Removes the drafts that [`write_atomically`] leaves in a directory when its process is killed.
pub(crate) fn remove_drafts(directory: &Path) {
    remove_abandoned(directory, DRAFT);
}

/// Removes the drafts of one file, like `remove_drafts` for a directory.
pub fn remove_drafts_of(path: &Path) {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    remove_abandoned(directory.unwrap_or(Path::new(".")), &prefix_of(path));
}

/// Removes files whose names begin like this, unless a process holds their lock.
fn remove_abandoned(directory: &Path, prefix: &str) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes())
            && open_file(&entry.path()).is_ok_and(|draft| draft.try_lock().is_ok())
        {
            // A draft that cannot be removed does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns the text without an unterminated last line, which a crash leaves behind.
pub fn whole_lines(text: &str) -> &str {
    text.rfind('\n').map_or("", |end| &text[..=end])
}

/// Truncates a file to `bytes`; a shorter file is unchanged.
///
/// # Errors
/// [`FileError`] if it cannot be written.
pub fn cut_to(path: &Path, bytes: usize) -> Result<(), FileError> {
    let cut = || {
        let file = OpenOptions::new().write(true).open(path)?;
        if file.metadata()?.len() > bytes as u64 {
            file.set_len(bytes as u64)?;
        }
        Ok(())
    };
    cut().map_err(FileError::at(path, "cut its last lines"))
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
    fn a_line_without_its_end_is_not_whole() {
        for (text, whole) in [("a\nb\nc", "a\nb\n"), ("a\n", "a\n"), ("a", ""), ("", "")] {
            assert_eq!(whole_lines(text), whole);
        }
    }

    #[test]
    fn a_file_is_cut_and_never_made_longer() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        fs::write(&path, "a\nb").unwrap();
        for bytes in [5, 2, 3] {
            cut_to(&path, bytes).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "a\n");
        let error = cut_to(directory.path(), 1).unwrap_err();
        assert!(error.to_string().contains("could not cut its last lines"), "{error}");
    }

    #[test]
    fn a_pipe_is_written_to_and_stays_one() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        let reader = std::thread::spawn({
            let fifo = fifo.clone();
            move || fs::read_to_string(fifo)
        });
        write_atomically(&fifo, "text").unwrap();
        assert!(!fs::metadata(&fifo).unwrap().is_file());
        assert_eq!(reader.join().unwrap().unwrap(), "text");
    }

    #[test]
    fn a_file_replaced_by_many_at_once_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mapping_check.log");
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        write_atomically(path, &writer.to_string().repeat(1000)).unwrap();
                    }
                });
            }
        });
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, text[..1].repeat(1000));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_replacing_file_has_the_mode_of_a_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let [replaced, plain] = ["run.json", "plain"].map(|name| directory.path().join(name));
        write_atomically(&replaced, "1").unwrap();
        fs::write(&plain, "1").unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&replaced), mode(&plain));
    }

    #[test]
    fn drafts_of_killed_processes_are_removed_and_those_of_running_ones_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.json");
        let running = draft_of(&path, directory.path()).unwrap();
        let (killed, other) = (".draft-run.json.a1b2c3", ".draft-other.json.a1b2c3");
        for name in [killed, other] {
            fs::write(directory.path().join(name), "{").unwrap();
        }
        remove_drafts_of(&path);
        assert!(running.path().exists() && directory.path().join(other).exists());
        assert!(!directory.path().join(killed).exists());
        remove_drafts(directory.path());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn replacing_a_file_leaves_no_draft() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.json");
        write_atomically(&path, "1").unwrap();
        write_atomically(&path, "2").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "2");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let missing = directory.path().join("missing/run.json");
        assert_eq!(write_atomically(&missing, "1").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
