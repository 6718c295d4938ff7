//! A run in memory and, if wanted, in its directory.

use std::collections::BTreeSet;
use std::path::Path;

use numalab_record::{Cell, CellId, Document, Environment, Finished, Outcome, Run, Sample};

use crate::store::{Store, StoreError};

/// Keeps every finished cell in memory for the report, and on disk where there is a store.
#[derive(Debug)]
pub struct RunRecorder {
    run: Run,
    finished: Vec<Finished>,
    samples: Vec<Sample>,
    store: Option<Store>,
}

impl RunRecorder {
    /// A run that is kept in memory only.
    #[must_use]
    pub fn in_memory(run: Run) -> Self {
        Self { run, finished: Vec::new(), samples: Vec::new(), store: None }
    }

    /// A run that is kept in a new directory under `parent` too.
    ///
    /// # Errors
    /// [`StoreError`] if the directory cannot be written.
    pub fn in_directory(run: Run, parent: &Path) -> Result<Self, StoreError> {
        let store = Store::create(parent, &run)?;
        Ok(Self { store: Some(store), ..Self::in_memory(run) })
    }

    /// A run that was measured elsewhere, kept in a new directory under `parent`.
    ///
    /// # Errors
    /// [`StoreError`] if the directory cannot be written.
    pub fn of(document: &Document, parent: &Path) -> Result<Self, StoreError> {
        let mut recorder = Self::in_directory(document.run.clone(), parent)?;
        for result in &document.cells {
            let Some(outcome) = result.ended.clone() else { continue };
            let (cell, placements) = (result.cell.id.clone(), result.placements.clone());
            recorder.record(&Finished { cell, outcome, placements }, &result.samples)?;
        }
        Ok(recorder)
    }

    /// An interrupted run that goes on in its directory.
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

    /// What was known before the first sample.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Where the results are, if on disk.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.store.as_ref().map(Store::directory)
    }

    /// Checks that the run was begun on the system that it goes on with.
    ///
    /// # Errors
    /// [`StoreError::OtherSystem`] names the first fact that differs.
    pub fn check_same_system(&self, now: &Environment) -> Result<(), StoreError> {
        let differences = self.run.environment.differences(now).into_iter();
        // What the measuring itself told is known of the beginning only.
        let mut known = differences.filter_map(|(name, began, now)| Some((name, began?, now?)));
        known.next().map_or(Ok(()), |(field, found, wanted)| {
            Err(StoreError::OtherSystem {
                path: self.directory().map(Path::to_owned).unwrap_or_default(),
                field: field.to_owned(),
                found: found.to_owned(),
                wanted: wanted.to_owned(),
            })
        })
    }

    /// The cells that need not be measured again; failed ones are tried once more.
    #[must_use]
    pub fn done(&self) -> BTreeSet<CellId> {
        let stands = |finished: &&Finished| !matches!(finished.outcome, Outcome::Failed { .. });
        self.finished.iter().filter(stands).map(|finished| finished.cell.clone()).collect()
    }

    /// Adds cells to the plan; those that it has already are left alone.
    ///
    /// # Errors
    /// [`StoreError`] if the grown plan cannot be written.
    pub fn extend_plan(&mut self, cells: &[Cell]) -> Result<(), StoreError> {
        let known: BTreeSet<CellId> = self.run.plan.iter().map(|cell| cell.id.clone()).collect();
        self.run.plan.extend(cells.iter().filter(|cell| !known.contains(&cell.id)).cloned());
        self.store.as_ref().map_or(Ok(()), |store| store.write_run(&self.run))
    }

    /// Keeps one finished cell.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be written.
    pub fn record(&mut self, finished: &Finished, samples: &[Sample]) -> Result<(), StoreError> {
        if let Some(store) = &mut self.store {
            store.append(finished, samples)?;
        }
        self.finished.push(finished.clone());
        self.samples.extend_from_slice(samples);
        Ok(())
    }

    /// Everything kept so far, for analysis.
    #[must_use]
    pub fn document(&self) -> Document {
        Document::join(self.run.clone(), self.finished.clone(), self.samples.clone())
    }
}
