//! The result directory of a study: written once, appended to with fsync, never overwritten.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use numalab_host::files::{
    FileError, append_synced, create_unique_directory, cut_to, read_text, whole_lines,
    write_atomically,
};
use numalab_host::{Classed, DirectoryLock, DirectoryLockError, ErrorClass, UtcTime};
use numalab_record::study::{JournalEntry, StudyDocument, StudyError, StudyRun};
use numalab_record::{Kind, KindError, file};

/// Reason why a study's results cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file or directory could not be read or written.
    #[error("{0}{advice}", advice = advice(&.0.source))]
    Io(#[from] FileError),
    /// The directory holds no results of a study.
    #[error("{path}: {source}")]
    Unreadable {
        path: PathBuf,
        /// The fault in the results.
        source: StudyError,
    },
    /// The directory holds results of another kind.
    #[error("{path} {source}")]
    OtherKind { path: PathBuf, source: KindError },
    /// The journal lost values, and reports made from it would replace good ones.
    #[error(
        "{directory}: {journal} has {found} of the {kept} values in {samples}: it is damaged, and \
         nothing was written",
        journal = file::JOURNAL,
        samples = file::SAMPLES
    )]
    Lost { directory: PathBuf, found: usize, kept: usize },
    /// Another numalab is writing to the directory.
    #[error(transparent)]
    InUse(#[from] DirectoryLockError),
    /// An entry cannot be serialised.
    #[error("cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; choose another place with -o",
        _ => "",
    }
}

impl Classed for JournalError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unreadable { .. } | Self::OtherKind { .. } | Self::Lost { .. } => {
                ErrorClass::BadInput
            }
            Self::Io(error) => error.class(),
            Self::InUse(error) => error.class(),
            Self::Json(_) => ErrorClass::Failed,
        }
    }
}

/// A study's results while they are being taken.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    file: File,
    document: StudyDocument,
    _lock: DirectoryLock,
}

impl Journal {
    /// Creates `parent/<name>-<time>` for a run of the study `definition`.
    ///
    /// # Errors
    /// [`JournalError`] if it cannot be written.
    pub fn create(parent: &Path, run: StudyRun, definition: &str) -> Result<Self, JournalError> {
        let time = UtcTime { unix_ms: run.started_unix_ms }.compact();
        let directory = create_unique_directory(parent, &format!("{}-{time}", run.name))
            .map_err(FileError::at(parent, "create a directory in it"))?;
        let lock = DirectoryLock::acquire(&directory)?;
        let path = directory.join(file::STUDY);
        write_atomically(&path, definition).map_err(FileError::at(&path, "write it"))?;
        write_run(&directory, &run)?;
        let file = open(&directory)?;
        let document = StudyDocument { run, journal: Vec::new() };
        Ok(Self { directory, file, document, _lock: lock })
    }

    /// Opens the directory of a study in order to resume it.
    ///
    /// # Errors
    /// [`JournalError`] if it cannot be read or written, holds no study, or is in use.
    pub fn resume(directory: &Path) -> Result<Self, JournalError> {
        // Read before locking, so that a directory with other content is left unchanged.
        read(directory)?;
        let lock = DirectoryLock::acquire(directory)?;
        let path = directory.join(file::JOURNAL);
        // An entry appended to a line that a crash left unterminated would be unreadable.
        cut_to(&path, whole_lines(&read_text(&path)?).len())?;
        // Read again, because another process may have written until the lock was acquired.
        let (file, document) = (open(directory)?, read(directory)?);
        Ok(Self { directory: directory.to_owned(), file, document, _lock: lock })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns all results so far.
    pub fn document(&self) -> &StudyDocument {
        &self.document
    }

    /// Replaces the facts known before the first sample, such as the number of blocks.
    ///
    /// # Errors
    /// [`JournalError`] if it cannot be written.
    pub fn replace_run(&mut self, run: StudyRun) -> Result<(), JournalError> {
        write_run(&self.directory, &run)?;
        self.document.run = run;
        Ok(())
    }

    /// Appends an entry, and waits until it is on disk.
    ///
    /// # Errors
    /// [`JournalError`] if it cannot be written; the existing content is kept.
    pub fn append(&mut self, entry: JournalEntry) -> Result<(), JournalError> {
        let line = format!("{}\n", serde_json::to_string(&entry)?);
        append_synced(&mut self.file, &line)
            .map_err(FileError::at(&self.directory.join(file::JOURNAL), "append to it"))?;
        self.document.journal.push(entry);
        Ok(())
    }
}

/// Reads the results of a study, finished or not.
///
/// # Errors
/// [`JournalError`] with the file that is missing or damaged; also if it lacks values that reports of
/// it have.
pub fn read(directory: &Path) -> Result<StudyDocument, JournalError> {
    Kind::Study
        .check_directory(|name| directory.join(name).is_file())
        .map_err(|source| JournalError::OtherKind { path: directory.to_owned(), source })?;
    let text = |name: &str| read_text(&directory.join(name));
    let document = StudyDocument::from_files(&text(file::RUN)?, &text(file::JOURNAL)?)
        .map_err(|source| JournalError::Unreadable { path: directory.to_owned(), source })?;
    let found = document.samples().map(|sample| sample.observation.readings.len()).sum();
    // Without this file there is no report yet that could be replaced.
    match text(file::SAMPLES).map_or(0, |samples| values(&samples)) {
        kept if kept > found => {
            Err(JournalError::Lost { directory: directory.to_owned(), found, kept })
        }
        _ => Ok(document),
    }
}

/// Counts the values in a file of samples: its lines after the heading, apart from those in quotes.
fn values(samples: &str) -> usize {
    // A quoted value may contain line breaks.
    let mut is_quoted = false;
    let ends = samples.bytes().filter(|byte| {
        is_quoted ^= *byte == b'"';
        *byte == b'\n' && !is_quoted
    });
    ends.count().saturating_sub(1)
}

/// Reports whether a directory holds the results of a study rather than of a measuring run.
pub fn is_study(directory: &Path) -> bool {
    Kind::of_directory(|name| directory.join(name).is_file()) == Some(Kind::Study)
}

fn open(directory: &Path) -> Result<File, JournalError> {
    let path = directory.join(file::JOURNAL);
    let file = OpenOptions::new().create(true).append(true).open(&path);
    Ok(file.map_err(FileError::at(&path, "open it"))?)
}

fn write_run(directory: &Path, run: &StudyRun) -> Result<(), JournalError> {
    let path = directory.join(file::RUN);
    let text = serde_json::to_string_pretty(run)? + "\n";
    Ok(write_atomically(&path, &text).map_err(FileError::at(&path, "write it"))?)
}
