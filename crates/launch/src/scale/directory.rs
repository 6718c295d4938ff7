//! The result directory of a scaling run.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use numalab_host::files::{create_unique_directory, write_atomically};
use numalab_host::{Classed, DirectoryLock, DirectoryLockError, ErrorClass, UtcTime};

use numalab_record::file;

use super::manifest::Manifest;
use super::step::LaunchStep;

/// Reason why a result directory cannot be created, read or written.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error("{0}: already has results; complete them with:\n  numalab scale --resume {0}", .path.display())]
    Exists { path: PathBuf },
    /// Another process is writing to the directory.
    #[error(transparent)]
    InUse(#[from] DirectoryLockError),
    #[error("{}: {reason}; expected the directory of a `numalab scale` run", .path.display())]
    NoRun { path: PathBuf, reason: String },
    #[error("{}: {error}; results so far are kept", .path.display())]
    Write { path: PathBuf, error: io::Error },
}

impl Classed for DirectoryError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Write { .. } | Self::InUse(_) => ErrorClass::Failed,
            Self::Exists { .. } | Self::NoRun { .. } => ErrorClass::BadInput,
        }
    }
}

/// A result directory that only this process may write to.
#[derive(Debug)]
pub struct ResultDirectory {
    path: PathBuf,
    id: String,
    /// `None` if the directory is only read.
    lock: Option<DirectoryLock>,
}

impl ResultDirectory {
    /// Creates `parent/job_<id>[_label]` for a SLURM job, else `parent/local_<time>[_label]`, with
    /// a suffix `-2`, `-3` and so on if that exists, and writes the manifest into it.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Exists`], [`DirectoryError::Write`].
    pub fn create(
        parent: &Path,
        job: Option<&str>,
        manifest: &Manifest,
    ) -> Result<Self, DirectoryError> {
        let now = UtcTime::now().compact();
        let (kind, id) = job.map_or(("local", now.as_str()), |job| ("job", job));
        let label = manifest.label.as_deref().map(|label| format!("_{label}"));
        let name = format!("{kind}_{id}{}", label.unwrap_or_default());
        let failed = |error| DirectoryError::Write { path: parent.join(&name), error };
        fs::create_dir_all(parent).map_err(failed)?;
        let path = match job {
            // A requeued job has its results there.
            Some(_) => {
                let path = parent.join(&name);
                match fs::create_dir(&path) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        return Err(DirectoryError::Exists { path });
                    }
                    made => made.map(|()| path).map_err(failed)?,
                }
            }
            None => create_unique_directory(parent, &name).map_err(failed)?,
        };
        let lock = Some(DirectoryLock::acquire(&path)?);
        let text = serde_json::to_string_pretty(manifest)
            .map_err(|error| failed(io::Error::other(error)))?;
        let directory = Self { id: id.to_owned(), path: path.clone(), lock };
        directory.write_whole(file::SCALE, &text)?;
        Ok(directory)
    }

    /// Opens the directory of an earlier run in order to continue it.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::NoRun`] if it has no manifest, or a damaged one; [`DirectoryError::InUse`]
    /// while another process is writing to it.
    pub fn resume(path: &Path) -> Result<(Self, Manifest), DirectoryError> {
        let (mut directory, manifest) = Self::open(path)?;
        directory.lock = Some(DirectoryLock::acquire(path)?);
        Ok((directory, manifest))
    }

    /// Opens the directory of an earlier run for reading.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::NoRun`] if it has no manifest, or a damaged one.
    pub fn open(path: &Path) -> Result<(Self, Manifest), DirectoryError> {
        let no_run = |reason: String| DirectoryError::NoRun { path: path.to_owned(), reason };
        let text = fs::read_to_string(path.join(file::SCALE))
            .map_err(|error| no_run(format!("{}: {error}", file::SCALE)))?;
        let manifest =
            Manifest::read(&text).map_err(|error| no_run(format!("{} {error}", file::SCALE)))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let id = name.split('_').nth(1).unwrap_or("0").to_owned();
        Ok((Self { path: path.to_owned(), id, lock: None }, manifest))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if a step's result exists and is complete.
    pub fn has(&self, step: &LaunchStep, end: &str) -> bool {
        self.path.join(format!("{}.{end}", step.stem)).is_file()
    }

    /// Returns the path of the text log, `slurm_run_numa_benchmarks_<id>.log`.
    pub fn log_path(&self) -> PathBuf {
        self.path.join(format!("slurm_run_numa_benchmarks_{}.log", self.id))
    }

    /// Opens the text log for appending.
    pub fn log(&self) -> Result<(PathBuf, File), DirectoryError> {
        let path = self.log_path();
        match OpenOptions::new().create(true).append(true).open(&path) {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(DirectoryError::Write { path, error }),
        }
    }

    pub fn write_whole(&self, name: &str, text: &str) -> Result<(), DirectoryError> {
        let path = self.path.join(name);
        write_atomically(&path, text).map_err(|error| DirectoryError::Write { path, error })
    }
}
