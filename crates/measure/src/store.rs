//! The result directory: created once, appended to, never overwritten.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use numalab_host::files::{
    FileError, append_synced, create_unique_directory, cut_to, read_text, write_atomically,
};
use numalab_host::{Classed, DirectoryLock, DirectoryLockError, ErrorClass, UtcTime};
use numalab_record::{
    CSV_HEADER, CellLine, Document, DocumentError, Finished, Kind, KindError, Run, Sample,
    SampleLines, complete_part, file, write_sample,
};

/// Reason why results could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory could not be read or written.
    #[error("{0}{advice}", advice = advice(&.0.source))]
    Io(#[from] FileError),
    /// Another process is writing to the directory.
    #[error(transparent)]
    InUse(#[from] DirectoryLockError),
    /// The directory holds no readable results.
    #[error("{path}: {source}")]
    Unreadable {
        path: PathBuf,
        /// The fault in the results.
        source: DocumentError,
    },
    /// The directory holds results of another kind.
    #[error("{path} {source}")]
    OtherKind { path: PathBuf, source: KindError },
    /// The directory holds no results.
    #[error(
        "{path}: holds no result; expected a result directory{}",
        below.as_ref().map(|found| format!(", such as {}", found.display())).unwrap_or_default()
    )]
    NoResult {
        path: PathBuf,
        /// A result below it.
        below: Option<PathBuf>,
    },
    #[error("the run cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{path} was started with {field} `{found}`, but now it is `{wanted}`: start a new run")]
    OtherSystem {
        path: PathBuf,
        field: String,
        /// The value in the directory.
        found: String,
        wanted: String,
    },
}

impl Classed for StoreError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::OtherSystem { .. }
            | Self::Unreadable { .. }
            | Self::OtherKind { .. }
            | Self::NoResult { .. } => ErrorClass::BadInput,
            Self::Io(error) => error.class(),
            Self::InUse(error) => error.class(),
            Self::Json(_) => ErrorClass::Failed,
        }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; samples written so far are kept: free some space; `measure` can resume its own runs"
        }
        io::ErrorKind::PermissionDenied => "; choose another place with -o",
        _ => "",
    }
}

/// The files of a run.
const PARTS: [&str; 3] = [file::RUN, file::CELLS, file::SAMPLES];

/// A result directory that only this process writes to.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    cells: File,
    samples: File,
    /// Lines of `samples.csv` without its header.
    written: usize,
    _lock: DirectoryLock,
}

impl Store {
    /// Creates `DIR/<name>-<time>[-label]`, or the same with `-2`, `-3` and so on if it exists.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the directory or its files cannot be written.
    pub fn create(parent: &Path, run: &Run) -> Result<Self, StoreError> {
        let directory = create_unique_directory(parent, &directory_name(run))
            .map_err(FileError::at(parent, "create a directory in it"))?;
        // Held until the run ends, so that no other process resumes it meanwhile.
        let lock = DirectoryLock::acquire(&directory)?;
        let mut store = Self::open(directory, lock, 0)?;
        append_synced(&mut store.samples, &format!("{CSV_HEADER}\n"))
            .map_err(FileError::at(&store.directory.join(file::SAMPLES), "write its header"))?;
        store.write_run(run)?;
        Ok(store)
    }

    /// Opens the directory of an interrupted run and returns its content. Data that belongs to no
    /// finished cell is removed: an unterminated line, and the samples of an unfinished cell.
    ///
    /// # Errors
    /// [`StoreError`] if the directory cannot be read or written, holds no run, or is in use.
    pub fn resume(directory: &Path) -> Result<(Self, Document), StoreError> {
        // Read before locking, so that a directory with other content is left unchanged.
        read(directory)?;
        let lock = DirectoryLock::acquire(directory)?;
        let [cells_path, samples_path] =
            [file::CELLS, file::SAMPLES].map(|name| directory.join(name));
        // Read again under the lock: another process may have written in between.
        let (cells, samples) = (read_text(&cells_path)?, read_text(&samples_path)?);
        let complete =
            complete_part(&cells, &samples).map_err(|error| unreadable(directory)(error.into()))?;
        cut_to(&cells_path, complete.cells_bytes)?;
        cut_to(&samples_path, complete.samples_bytes)?;
        let run = read_text(&directory.join(file::RUN))?;
        let document =
            Document::from_files(&run, &cells, &samples).map_err(unreadable(directory))?;
        Ok((Self::open(directory.to_owned(), lock, complete.samples)?, document))
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Replaces `run.json` atomically, so that a crash leaves the old or the new one.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be written.
    pub fn write_run(&self, run: &Run) -> Result<(), StoreError> {
        let mut text = serde_json::to_string_pretty(run)?;
        text.push('\n');
        let path = self.directory.join(file::RUN);
        Ok(write_atomically(&path, &text).map_err(FileError::at(&path, "write it"))?)
    }

    /// Appends the samples of a finished cell, then the cell, and waits until both are on disk.
    ///
    /// # Errors
    /// [`StoreError::Io`] if they cannot be written; the existing content is kept.
    pub fn append(&mut self, finished: &Finished, samples: &[Sample]) -> Result<(), StoreError> {
        let mut text = String::new();
        for sample in samples {
            write_sample(&mut text, sample);
        }
        // Samples first: after a crash, a cell without its samples would look finished.
        append_synced(&mut self.samples, &text)
            .map_err(FileError::at(&self.directory.join(file::SAMPLES), "append samples"))?;
        let part = SampleLines { first: self.written, count: samples.len() };
        let line = CellLine { finished: finished.clone(), samples: Some(part) };
        let line = format!("{}\n", serde_json::to_string(&line)?);
        append_synced(&mut self.cells, &line)
            .map_err(FileError::at(&self.directory.join(file::CELLS), "append the cell"))?;
        self.written += samples.len();
        Ok(())
    }

    /// Writes a separate file, such as a report, into the directory.
    ///
    /// # Errors
    /// [`StoreError::Io`] if it cannot be written.
    pub fn write_file(directory: &Path, name: &str, text: &str) -> Result<PathBuf, StoreError> {
        let path = directory.join(name);
        write_atomically(&path, text).map_err(FileError::at(&path, "write it"))?;
        Ok(path)
    }

    fn open(directory: PathBuf, lock: DirectoryLock, written: usize) -> Result<Self, StoreError> {
        let append = |name: &str| {
            let path = directory.join(name);
            let file = OpenOptions::new().create(true).append(true).open(&path);
            file.map_err(FileError::at(&path, "open it"))
        };
        let (cells, samples) = (append(file::CELLS)?, append(file::SAMPLES)?);
        Ok(Self { directory, cells, samples, written, _lock: lock })
    }
}

fn unreadable(directory: &Path) -> impl Fn(DocumentError) -> StoreError {
    |source| StoreError::Unreadable { path: directory.to_owned(), source }
}

/// Reads a result directory, finished or not.
///
/// # Errors
/// [`StoreError`] with the file that is missing or damaged.
pub fn read(directory: &Path) -> Result<Document, StoreError> {
    // The kind first: a directory of another kind has other files.
    Kind::Run
        .check_directory(|name| directory.join(name).is_file())
        .map_err(|source| StoreError::OtherKind { path: directory.to_owned(), source })?;
    if directory.is_dir() && !PARTS.iter().any(|name| directory.join(name).exists()) {
        let below = results_in(directory).pop();
        return Err(StoreError::NoResult { path: directory.to_owned(), below });
    }
    let text = |name: &str| read_text(&directory.join(name));
    Document::from_files(&text(file::RUN)?, &text(file::CELLS)?, &text(file::SAMPLES)?)
        .map_err(unreadable(directory))
}

/// Returns the runs inside a directory that is not a run, sorted by name: oldest first.
pub fn runs_in(path: &Path) -> Vec<PathBuf> {
    if is_result(path) {
        return Vec::new();
    }
    let mut runs = results_in(path);
    runs.retain(|path| path.join(file::CELLS).is_file());
    runs
}

fn is_result(path: &Path) -> bool {
    Kind::of_directory(|name| path.join(name).is_file()).is_some()
}

/// Returns the results of any kind inside a directory, sorted by name.
fn results_in(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut results: Vec<PathBuf> = entries.filter(|path| is_result(path)).collect();
    results.sort();
    results
}

/// Returns the name of a run's directory: `measure-20261121-024500-label`.
pub fn directory_name(run: &Run) -> String {
    let time = UtcTime { unix_ms: run.started_unix_ms }.compact();
    let label = run.label.as_deref().map(|label| format!("-{}", file_name_part(label)));
    format!("{}-{time}{}", run.name, label.unwrap_or_default())
}

fn file_name_part(label: &str) -> String {
    let safe = |c: char| {
        if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' }
    };
    // Bounded, since file systems limit names to 255 bytes.
    label.chars().take(80).map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_results_is_refused_with_the_name_of_one() {
        let place = tempfile::tempdir().unwrap();
        let said = || read(place.path()).unwrap_err().to_string();
        assert!(said().ends_with("holds no result; expected a result directory"), "{}", said());
        for name in ["latency-20261121-024500", "notes"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        let result = place.path().join("latency-20261121-024500");
        fs::write(result.join(file::RUN), "{}").unwrap();
        assert!(said().ends_with(&format!("such as {}", result.display())), "{}", said());
    }

    #[test]
    fn a_run_without_one_of_its_files_names_the_file() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join(file::CELLS), "").unwrap();
        let said = read(place.path()).unwrap_err().to_string();
        assert!(said.contains(file::RUN), "{said}");
    }

    #[test]
    fn a_label_cannot_leave_the_directory() {
        assert_eq!(file_name_part("../a b"), ".._a_b");
    }
}
