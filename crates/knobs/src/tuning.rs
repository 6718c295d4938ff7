//! The settings of one run.

use std::collections::BTreeMap;

use super::companions;
use super::damon;
use super::error::{KnobError, WriteFailure};
use super::file::{self, FileState};
use super::journal::{JOURNAL, Journal};
use super::knob::{Knob, Nature};
use super::pool;
use super::restore::{is_of_another_boot, put_back, settle};
use super::value;
use numalab_host::Root;

/// A knob that was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub name: String,
    pub wanted: String,
    /// The value read back, or the one written to a file that cannot be read.
    pub found: String,
    /// Files that rejected the value, with the reason; only of knobs whose files may be skipped.
    pub left_out: Vec<String>,
}

/// The settings of one run: set, read back, and restored on drop.
///
/// One process at a time holds the settings of a machine. Before the first knob is set nothing is
/// written and no permission is needed.
#[derive(Debug)]
pub struct Tuning {
    root: Root,
    journal: Option<Journal>,
    /// Files and prior values in the order in which they were saved.
    saved: Vec<(String, String)>,
}

impl Tuning {
    /// Begins a run that has changed nothing yet.
    ///
    /// # Errors
    /// [`KnobError::Stale`] if an earlier run left settings behind, [`KnobError::Damaged`] if its
    /// journal cannot be parsed.
    pub fn new(root: &Root) -> Result<Self, KnobError> {
        let tuning = Self { root: root.clone(), journal: None, saved: Vec::new() };
        // A process that may not write there cannot have left settings, so a missing directory is
        // fine.
        if root.path(JOURNAL).exists() {
            check_nothing_left(root, &Journal::hold(root)?)?;
        }
        Ok(tuning)
    }

    /// Sets a knob: saves the prior values of its files, writes, and reads back.
    ///
    /// # Errors
    /// [`KnobError`] if the value is rejected or clamped, or the file is absent or not writable.
    /// Files written before the error are restored later.
    pub fn set(&mut self, knob: &Knob, value: &str) -> Result<Applied, KnobError> {
        if knob.writes.is_empty() {
            let file = knob.place("");
            return Err(KnobError::Absent { name: knob.name().to_owned(), file });
        }
        if knob.nature == Nature::Damon {
            check_damon(&self.root, knob, value)?;
        }
        // A trigger, such as drop_caches, has no value to restore.
        if knob.nature != Nature::Trigger {
            self.save(knob)?;
        }
        let mut left_out = Vec::new();
        let mut found = value.to_owned();
        for path in &knob.writes {
            match self.write(knob, path, value) {
                Ok(kept) => found = kept,
                Err(why) if knob.nature == Nature::WherePossible => {
                    left_out.push(format!("{}: {why}", knob.place(path).display()));
                }
                Err(error) => return Err(error),
            }
        }
        let (name, wanted) = (knob.name().to_owned(), value.to_owned());
        Ok(Applied { name, wanted, found, left_out })
    }

    /// Restores a knob's prior value; it stays in the journal until the end. Does nothing for a
    /// knob that was not set.
    ///
    /// # Errors
    /// [`KnobError::NotRestored`] with the files that could not be restored.
    pub fn put_back(&mut self, knob: &Knob) -> Result<(), KnobError> {
        let of_knob = |(path, _): &&(String, String)| knob.saves.contains(path);
        let saved: Vec<_> = self.saved.iter().filter(of_knob).cloned().collect();
        let settled = settle(&self.root, &saved).into_iter();
        let files: Vec<String> = settled.filter_map(|(_, outcome)| outcome.err()).collect();
        if files.is_empty() { Ok(()) } else { Err(KnobError::NotRestored { files }) }
    }

    /// Restores everything. Calling it again does nothing.
    ///
    /// # Errors
    /// [`KnobError::NotRestored`] with the files that could not be restored; the journal stays.
    pub fn restore(&mut self) -> Result<(), KnobError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        if !self.saved.is_empty() {
            put_back(&self.root, journal, &self.saved)?;
        }
        self.saved.clear();
        self.journal = None;
        Ok(())
    }

    /// Saves the prior values of the files that are not saved yet.
    fn save(&mut self, knob: &Knob) -> Result<(), KnobError> {
        // Only the value before the first change is the one to restore.
        let known = |path: &String| self.saved.iter().any(|(saved, _)| saved == path);
        let new: Vec<&String> = knob.saves.iter().filter(|path| !known(path)).collect();
        let mut values = BTreeMap::new();
        for path in new {
            values.insert(path.clone(), self.prior(knob, path)?);
        }
        if values.is_empty() {
            return Ok(());
        }
        self.check_ways_back(knob, &values)?;
        if self.journal.is_none() {
            let journal = Journal::hold(&self.root)?;
            // Checked again under the lock, since another run may have been killed meanwhile.
            check_nothing_left(&self.root, &journal)?;
            self.journal = Some(journal);
        }
        if let Some(journal) = &mut self.journal {
            journal.save(&self.root, values.clone())?;
        }
        self.saved.extend(values);
        Ok(())
    }

    /// Fails if a file that changes with the knob would reject its current value: on machines
    /// without HMAT, Linux 6.16 lets interleave weights be set but not be computed again.
    fn check_ways_back(
        &self,
        knob: &Knob,
        values: &BTreeMap<String, String>,
    ) -> Result<(), KnobError> {
        for (path, value) in values.iter().filter(|(path, _)| companions::may_be_one_way(path)) {
            // A write of the current value changes nothing.
            if let Err(why) = file::write(&self.root, path, value) {
                let (name, file, value) = (knob.name().to_owned(), knob.place(path), value.clone());
                return Err(KnobError::OneWay { name, file, value, reason: why.to_string() });
            }
        }
        Ok(())
    }

    fn prior(&self, knob: &Knob, path: &str) -> Result<String, KnobError> {
        let (name, file) = (knob.name().to_owned(), knob.place(path));
        match file::read(&self.root, path) {
            FileState::Value(value) => Ok(value),
            FileState::Absent => Err(KnobError::Absent { name, file }),
            FileState::WriteOnly => Err(KnobError::WriteOnly { name, file }),
            FileState::Denied(reason) => Err(KnobError::Denied { name, file, reason }),
        }
    }

    /// Ends DAMON's threads, and starts one if the value requires it.
    fn write_damon(&self, knob: &Knob, wanted: &str) -> Result<String, KnobError> {
        let failed =
            |(path, value, why): damon::Failed| knob.failure(&self.root, &path, &value, why);
        damon::stop(&self.root).map_err(failed)?;
        for (path, value) in damon::writes(&self.root, wanted).unwrap_or_default() {
            damon::write(&self.root, &path, &value).map_err(failed)?;
        }
        match damon::state(&self.root) {
            FileState::Value(kept) if kept == wanted => Ok(kept),
            found => {
                let (name, file) = (knob.name().to_owned(), knob.place(damon::COUNT));
                let kept = if let FileState::Value(kept) = found { kept } else { String::new() };
                Err(KnobError::Clamped { name, file, wanted: wanted.to_owned(), kept })
            }
        }
    }

    /// Writes one file and returns the value read back.
    fn write(&self, knob: &Knob, path: &str, wanted: &str) -> Result<String, KnobError> {
        if knob.nature == Nature::Damon {
            // The saved value is the number of threads, and only 0 can be restored.
            return self.write_damon(knob, if wanted == "0" { "off" } else { wanted });
        }
        let failure = |why: WriteFailure| knob.failure(&self.root, path, wanted, why);
        file::write(&self.root, path, wanted).map_err(failure)?;
        if knob.nature == Nature::Trigger {
            return Ok(wanted.to_owned());
        }
        // The kernel accepts some values and keeps others.
        let mut kept = self.prior(knob, path)?;
        let of_pool = pool::counts(path, wanted, &kept);
        if of_pool.is_some_and(pool::Counts::is_short) {
            kept = self.fill_pool(knob, path, wanted)?;
        }
        if value::same(&kept, wanted) {
            return Ok(kept);
        }
        let (name, file) = (knob.name().to_owned(), knob.place(path));
        if let Some(pool::Counts { wanted, had }) = pool::counts(path, wanted, &kept) {
            return Err(KnobError::FewerPages { name, file, wanted, had });
        }
        Err(KnobError::Clamped { name, file, wanted: wanted.to_owned(), kept })
    }
}

impl Tuning {
    /// Requests the pages of a pool again after compacting memory, which changes no setting. A
    /// kernel without compaction leaves the first result.
    fn fill_pool(&self, knob: &Knob, path: &str, wanted: &str) -> Result<String, KnobError> {
        let failure = |why: WriteFailure| knob.failure(&self.root, path, wanted, why);
        if file::write(&self.root, pool::COMPACT, "1").is_ok() {
            file::write(&self.root, path, wanted).map_err(failure)?;
        }
        self.prior(knob, path)
    }
}

impl Drop for Tuning {
    /// Files that cannot be restored stay in the journal, which blocks the next run.
    fn drop(&mut self) {
        // Files that cannot be restored stay in the journal, for `numalab knobs restore`.
        let _ = self.restore();
    }
}

/// Rejects values that DAMON cannot be set to, and a DAMON that another user has set up.
fn check_damon(root: &Root, knob: &Knob, value: &str) -> Result<(), KnobError> {
    let (name, file) = (knob.name().to_owned(), knob.place(damon::COUNT));
    if let Some(found) = damon::in_use(root) {
        let reason = format!("DAMON is in use, with {found}");
        return Err(KnobError::Unsupported { name, file, reason });
    }
    if damon::writes(root, value).is_none() {
        let expected = format!(", expected one of {}", damon::choices());
        return Err(KnobError::Refused { name, value: value.to_owned(), expected });
    }
    Ok(())
}

fn check_nothing_left(root: &Root, journal: &Journal) -> Result<(), KnobError> {
    let content = journal.left()?;
    if content.saved.is_empty() || is_of_another_boot(root, &content) {
        return Ok(());
    }
    Err(KnobError::Stale { count: content.saved.len(), journal: journal.path().to_owned() })
}
