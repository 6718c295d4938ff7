//! Putting back what was there before.

use super::damon;
use super::error::KnobError;
use super::file::{self, FileState};
use super::journal::{Content, JOURNAL, Journal};
use super::value;
use crate::root::Root;

/// A file that has its prior value again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredFile {
    /// The file below the root.
    pub path: String,
    /// What it had.
    pub found: String,
    /// What it has again.
    pub value: String,
}

/// What came of putting back what an earlier run left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    /// Nothing was left.
    Nothing,
    /// The machine was restarted since, so that its settings are its own again.
    Restarted {
        /// How many files the journal named.
        count: usize,
    },
    /// These files have their prior values again.
    Files(Vec<RestoredFile>),
}

/// Puts back what an earlier run left when it was killed.
///
/// # Errors
/// [`KnobError::Busy`] while that run goes on, [`KnobError::NotRestored`] with what is
/// left to do, [`KnobError::Damaged`] for a journal that cannot be understood.
pub fn restore_stale(root: &Root) -> Result<Restored, KnobError> {
    // Without a journal there is nothing to do, and no permission needed to do it.
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

/// What an earlier run left: files below the root and their prior values. Changes
/// nothing.
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

/// Whether the settings of a journal went with a restart of the machine.
pub(super) fn is_of_another_boot(root: &Root, content: &Content) -> bool {
    let now = root.boot_id();
    !now.is_empty() && !content.boot.is_empty() && content.boot != now
}

/// Puts files back; the journal is gone afterwards unless something is left to do.
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

/// Rounds after which files that change each other have settled: the second one for those that a
/// later write changed, or that another one had to come before.
const ROUNDS: usize = 3;

/// A file, and what it had before with what it has again, or why it could not be put back.
type Settled = (String, Result<(String, String), String>);

/// Gives files their prior values, the last one first, and goes on where one fails; again until
/// all have them, since a write to one file can change another.
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

/// A file that is put back.
struct File<'a> {
    path: &'a str,
    prior: &'a str,
    /// What it had before, or why that cannot be read.
    found: Result<String, String>,
    /// Why it could not be written in the last round.
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

/// Writes the prior value of a file that has another one.
fn write_back(root: &Root, path: &str, prior: &str) -> Result<(), String> {
    if value::same(&read(root, path)?, prior) {
        return Ok(());
    }
    if path == damon::COUNT {
        damon::stop(root).map_err(|(file, _, why)| format!("/{file}: {why}"))?;
    }
    file::write(root, path, prior).map_err(|why| why.to_string())
}

fn read(root: &Root, path: &str) -> Result<String, String> {
    match file::read(root, path) {
        FileState::Value(value) => Ok(value),
        FileState::Absent => Err("it is not there any more".to_owned()),
        FileState::WriteOnly => Err("it can only be written".to_owned()),
        FileState::Denied(reason) => Err(reason),
    }
}
