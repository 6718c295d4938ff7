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

/// Puts files back, the last one first, and goes on where one fails. The journal is gone
/// afterwards unless something is left to do.
pub(super) fn put_back(
    root: &Root,
    journal: &mut Journal,
    saved: &[(String, String)],
) -> Result<Vec<RestoredFile>, KnobError> {
    let mut restored = Vec::new();
    let mut failed = Vec::new();
    for (path, prior) in saved.iter().rev() {
        match put_back_one(root, path, prior) {
            Ok(found) => {
                journal.restored(path)?;
                let (path, value) = (path.clone(), prior.clone());
                restored.push(RestoredFile { path, found, value });
            }
            Err(reason) => failed.push(format!("/{path} to {prior:?}: {reason}")),
        }
    }
    if failed.is_empty() {
        journal.close()?;
        return Ok(restored);
    }
    Err(KnobError::NotRestored { files: failed })
}

/// Gives what the file had before it was put back.
fn put_back_one(root: &Root, path: &str, prior: &str) -> Result<String, String> {
    let found = read(root, path)?;
    if value::same(&found, prior) {
        return Ok(found);
    }
    if path == damon::COUNT {
        damon::stop(root).map_err(|(file, _, why)| format!("/{file}: {why}"))?;
    }
    file::write(root, path, prior).map_err(|why| why.to_string())?;
    let kept = read(root, path)?;
    if value::same(&kept, prior) { Ok(found) } else { Err(format!("it kept {kept:?}")) }
}

fn read(root: &Root, path: &str) -> Result<String, String> {
    match file::read(root, path) {
        FileState::Value(value) => Ok(value),
        FileState::Absent => Err("it is not there any more".to_owned()),
        FileState::WriteOnly => Err("it can only be written".to_owned()),
        FileState::Denied(reason) => Err(reason),
    }
}
