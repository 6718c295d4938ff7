//! A run in memory and, if requested, in its directory.

use std::collections::BTreeSet;
use std::path::Path;

use numalab_record::{Cell, CellId, Document, Environment, Finished, Outcome, Run, Sample};

use crate::store::{Store, StoreError};

/// Keeps every finished cell in memory for the report, and on disk if there is a store.
#[derive(Debug)]
pub struct RunRecorder {
    run: Run,
    finished: Vec<Finished>,
    samples: Vec<Sample>,
    store: Option<Store>,
}

impl RunRecorder {
    /// Creates a recorder that keeps a run in memory only.
    pub fn in_memory(run: Run) -> Self {
        Self { run, finished: Vec::new(), samples: Vec::new(), store: None }
    }

    /// Creates a recorder that also keeps the run in a new directory under `parent`.
    ///
    /// # Errors
    /// [`StoreError`] if the directory cannot be written.
    pub fn in_directory(run: Run, parent: &Path) -> Result<Self, StoreError> {
        let store = Store::create(parent, &run)?;
        Ok(Self { store: Some(store), ..Self::in_memory(run) })
    }

    /// Stores a run that was measured elsewhere in a new directory under `parent`.
    ///
    /// # Errors
    /// [`StoreError`] if the directory cannot be written.
    pub fn of(document: &Document, parent: &Path) -> Result<Self, StoreError> {
        let mut recorder = Self::in_directory(document.run.clone(), parent)?;
        for result in &document.cells {
            // A cell without an outcome was interrupted, so its samples are incomplete.
            let Some(outcome) = result.ended.clone() else { continue };
            let (cell, placements) = (result.cell.id.clone(), result.placements.clone());
            recorder.record(&Finished { cell, outcome, placements }, &result.samples)?;
        }
        Ok(recorder)
    }

    /// Resumes an interrupted run in its directory.
    ///
    /// # Errors
    /// [`StoreError`] if the directory cannot be read or written.
    pub fn resumed(directory: &Path) -> Result<Self, StoreError> {
        let (store, document) = Store::resume(directory)?;
        let (mut finished, mut samples) = (Vec::new(), Vec::new());
        for result in document.cells {
            samples.extend(result.samples);
            if let Some(outcome) = result.ended {
                let (cell, placements) = (result.cell.id, result.placements);
                finished.push(Finished { cell, outcome, placements });
            }
        }
        Ok(Self { run: document.run, finished, samples, store: Some(store) })
    }

    /// Returns the facts known before the first sample.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Returns the directory of the results, if they are on disk.
    pub fn directory(&self) -> Option<&Path> {
        self.store.as_ref().map(Store::directory)
    }

    /// Checks that the run was started on this system.
    ///
    /// # Errors
    /// [`StoreError::OtherSystem`] names the first fact that differs.
    pub fn check_same_system(&self, now: &Environment) -> Result<(), StoreError> {
        let differences = self.run.environment.differences(now).into_iter();
        // Facts found by measuring exist only in the original run.
        let mut known = differences.filter_map(|(name, began, now)| Some((name, began?, now?)));
        known.next().map_or(Ok(()), |(field, found, wanted)| {
            Err(StoreError::OtherSystem {
                path: self.directory().map(Path::to_owned).unwrap_or_default(),
                field: field.to_owned(),
                found: found.to_string(),
                wanted: wanted.to_string(),
            })
        })
    }

    /// Returns the cells that need not be measured again; failed ones are tried again.
    pub fn done(&self) -> BTreeSet<CellId> {
        let stands = |finished: &&Finished| !matches!(finished.outcome, Outcome::Failed { .. });
        self.finished.iter().filter(stands).map(|finished| finished.cell.clone()).collect()
    }

    /// Adds cells to the plan, except those that it has already.
    ///
    /// # Errors
    /// [`StoreError`] if the extended plan cannot be written.
    pub fn extend_plan(&mut self, cells: &[Cell]) -> Result<(), StoreError> {
        let known: BTreeSet<CellId> = self.run.plan.iter().map(|cell| cell.id.clone()).collect();
        self.run.plan.extend(cells.iter().filter(|cell| !known.contains(&cell.id)).cloned());
        self.store.as_ref().map_or(Ok(()), |store| store.write_run(&self.run))
    }

    /// Records one finished cell.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be written.
    pub fn record(&mut self, finished: &Finished, samples: &[Sample]) -> Result<(), StoreError> {
        // On disk first, so that memory never has a cell that the directory lacks.
        if let Some(store) = &mut self.store {
            store.append(finished, samples)?;
        }
        self.finished.push(finished.clone());
        self.samples.extend_from_slice(samples);
        Ok(())
    }

    /// Returns everything recorded so far, for analysis.
    pub fn document(&self) -> Document {
        Document::join(self.run.clone(), self.finished.clone(), self.samples.clone())
    }
}
