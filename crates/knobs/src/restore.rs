//! Restores prior values.

use std::fmt::{self, Display, Formatter};

use super::damon;
use super::error::KnobError;
use super::file::{self, FileState};
use super::journal::{Content, JOURNAL, Journal};
use super::value;
use numalab_host::Root;

/// A file that has been restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredFile {
    /// The file, relative to the root.
    pub path: String,
    pub found: String,
    pub value: String,
}

/// The outcome of restoring the settings of an earlier run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    Nothing,
    /// The machine has been restarted since, which undid the settings.
    Restarted {
        /// Number of files in the journal.
        count: usize,
    },
    Files(Vec<RestoredFile>),
}

impl Display for Restored {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => writeln!(f, "nothing to restore"),
            Self::Restarted { count } => writeln!(
                f,
                "{count} settings are from a run before the last boot, which reset them: nothing \
                 to restore"
            ),
            Self::Files(files) => files.iter().try_for_each(|file| {
                writeln!(f, "/{}: {} again (was {})", file.path, file.value, file.found)
            }),
        }
    }
}

/// Restores the settings of an earlier run that was killed.
///
/// # Errors
/// [`KnobError::Busy`] while that run continues, [`KnobError::NotRestored`] with the files that
/// remain, [`KnobError::Damaged`] for a journal that cannot be parsed.
pub fn restore_stale(root: &Root) -> Result<Restored, KnobError> {
    // Returns before taking the lock, which needs permissions that may be missing.
    if !root.path(JOURNAL).exists() {
        return Ok(Restored::Nothing);
    }
    let mut journal = Journal::hold(root)?;
    let content = journal.left()?;
    let count = content.saved.len();
    if count == 0 {
        journal.close()?;
        return Ok(Restored::Nothing);
    }
    if is_of_another_boot(root, &content) {
        journal.close()?;
        return Ok(Restored::Restarted { count });
    }
    put_back(root, &mut journal, &content.saved).map(Restored::Files)
}

/// Returns the files that an earlier run left changed, with their prior values. Changes nothing.
///
/// # Errors
/// As [`restore_stale`].
pub fn stale(root: &Root) -> Result<Vec<(String, String)>, KnobError> {
    if !root.path(JOURNAL).exists() {
        return Ok(Vec::new());
    }
    let content = Journal::hold(root)?.left()?;
    Ok(if is_of_another_boot(root, &content) { Vec::new() } else { content.saved })
}

/// Reports whether the journal was written before the last restart, which undid its settings.
pub(super) fn is_of_another_boot(root: &Root, content: &Content) -> bool {
    let now = root.boot_id();
    !now.is_empty() && !content.boot.is_empty() && content.boot != now
}

/// Restores files, and removes the journal unless some remain.
pub(super) fn put_back(
    root: &Root,
    journal: &mut Journal,
    saved: &[(String, String)],
) -> Result<Vec<RestoredFile>, KnobError> {
    let mut restored = Vec::new();
    let mut failed = Vec::new();
    for (path, outcome) in settle(root, saved) {
        match outcome {
            Ok((found, value)) => {
                // Recorded one by one, so that an interrupted restore can be continued.
                journal.restored(&path)?;
                restored.push(RestoredFile { path, found, value });
            }
            Err(reason) => failed.push(reason),
        }
    }
    if failed.is_empty() {
        journal.close()?;
        return Ok(restored);
    }
    Err(KnobError::NotRestored { files: failed })
}

/// Number of rounds after which files that change each other have settled. The second round
/// restores files that a later write changed, or that can only follow another.
const ROUNDS: usize = 3;

/// A file, with its value before and after, or the reason why it could not be restored.
type Settled = (String, Result<(String, String), String>);

/// Writes the prior values, in reverse order, continuing after failures, until all files have them,
/// since a write to one file can change another.
pub(super) fn settle(root: &Root, saved: &[(String, String)]) -> Vec<Settled> {
    let mut files: Vec<File<'_>> =
        saved.iter().rev().map(|(path, prior)| File::of(root, path, prior)).collect();
    for _ in 0..ROUNDS {
        for file in &mut files {
            file.failure = write_back(root, file.path, file.prior).err();
        }
        if files.iter().all(|file| file.has_prior(root)) {
            break;
        }
    }
    files.into_iter().map(|file| (file.path.to_owned(), file.outcome(root))).collect()
}

struct File<'a> {
    path: &'a str,
    prior: &'a str,
    /// The value before restoring, or the reason why it cannot be read.
    found: Result<String, String>,
    /// The reason why the last write failed.
    failure: Option<String>,
}

impl<'a> File<'a> {
    fn of(root: &Root, path: &'a str, prior: &'a str) -> Self {
        Self { path, prior, found: read(root, path), failure: None }
    }

    fn has_prior(&self, root: &Root) -> bool {
        read(root, self.path).is_ok_and(|now| value::same(&now, self.prior))
    }

    fn outcome(self, root: &Root) -> Result<(String, String), String> {
        let (path, prior) = (self.path, self.prior);
        let left = |reason: String| format!("/{path} to {prior:?}: {reason}");
        let kept = read(root, path).map_err(left)?;
        if value::same(&kept, prior) {
            return Ok((self.found.map_err(left)?, prior.to_owned()));
        }
        Err(left(self.failure.unwrap_or_else(|| format!("it kept {kept:?}"))))
    }
}

/// Writes the prior value if the file has another one.
fn write_back(root: &Root, path: &str, prior: &str) -> Result<(), String> {
    if value::same(&read(root, path)?, prior) {
        return Ok(());
    }
    // The kernel does not change the number of DAMON's threads while any runs.
    if path == damon::COUNT {
        damon::stop(root).map_err(|(file, _, why)| format!("/{file}: {why}"))?;
    }
    file::write(root, path, prior).map_err(|why| why.to_string())
}

fn read(root: &Root, path: &str) -> Result<String, String> {
    match file::read(root, path) {
        FileState::Value(value) => Ok(value),
        FileState::Absent => Err("it no longer exists".to_owned()),
        FileState::WriteOnly => Err("it is write-only".to_owned()),
        FileState::Denied(reason) => Err(reason),
    }
}
