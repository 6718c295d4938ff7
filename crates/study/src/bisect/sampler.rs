//! Takes samples of a built file: one boot each, in the backend that a study describes.

use std::path::Path;

use numalab_host::Interrupt;
use numalab_record::study::{Quantity, Setting, Treatment};
use numalab_workload::Workload;
use serde_json::Value;

use super::error::BisectError;
use crate::backend::{BackendError, BackendKind, Backends, Preparation, SampleRequest, Scope};
use crate::definition::Study;
use crate::plan::Plan;

/// The level, or the placeholder in a command (`{kernel}`), that is replaced by the built file.
pub(super) const KERNEL: &str = "kernel";

pub(super) struct Sampler<'a> {
    plan: &'a Plan,
    backends: Backends,
    treatment: Treatment,
    workload: Workload,
    metric: String,
    interrupt: &'a Interrupt,
}

impl<'a> Sampler<'a> {
    /// Creates a sampler for one treatment and one workload of a plan.
    pub(super) fn new(
        plan: &'a Plan,
        backends: Backends,
        treatment: Treatment,
        workload: Workload,
        metric: &str,
        interrupt: &'a Interrupt,
    ) -> Self {
        Self { plan, backends, treatment, workload, metric: metric.to_owned(), interrupt }
    }

    /// Checks that samples run what a commit's build makes.
    pub(super) fn check(&self) -> Result<(), BisectError> {
        let is_setting = |kind: &BackendKind| {
            kind.built_file.is_some() || kind.levels.iter().any(|level| level.name == KERNEL)
        };
        let is_named = |word: &String| word.contains(&format!("{{{KERNEL}}}"));
        if self.kind().is_some_and(is_setting) || self.workload.command.iter().any(is_named) {
            return Ok(());
        }
        let (backend, workload) =
            (self.plan.study().backend.kind.clone(), self.workload.name.clone());
        Err(BisectError::BuildUnused { backend, workload })
    }

    pub(super) fn describe(&self) -> Result<String, BisectError> {
        Ok(self.backends.open(self.plan.study(), self.interrupt)?.describe())
    }

    /// Takes the sample with this number in a separate boot. All commits use the same seed for the
    /// same number.
    pub(super) fn sample(
        &self,
        file: &Path,
        number: usize,
    ) -> Result<(Quantity, f64), BisectError> {
        let (study, treatment) = self.with_file(file);
        let backend = self.backends.open(&study, self.interrupt)?;
        let (treatments, workloads) = ([treatment], [self.workload.clone()]);
        let scope = Scope { treatments: &treatments, workloads: &workloads };
        let prepared = backend.prepare(&scope).map_err(|error| match error.restore {
            Some(restore) => BisectError::NotRestored(*restore),
            None => error.cause.into(),
        })?;
        let Preparation { mut backend, .. } = prepared;
        let request = SampleRequest {
            treatment: &treatments[0],
            workload: &workloads[0],
            // By number and not by commit, so that all commits do the same work in a sample.
            seed: self.plan.sample_seed(number, 0),
        };
        let sampled = backend.apply(&treatments[0]).and_then(|_| backend.sample(&request));
        // Before the sample's own failure is reported: settings that stay changed would spoil all
        // later commits.
        backend.restore().map_err(BisectError::NotRestored)?;
        let readings = sampled?.readings;
        let found = readings.iter().find(|reading| reading.quantity.metric == self.metric);
        let Some(reading) = found else {
            let names = readings.iter().map(|reading| reading.quantity.metric.as_str());
            let known = match names.collect::<Vec<_>>() {
                // If time has no meaning there, the study measures no metrics.
                none if none.is_empty() => "another study: this one has no result here".to_owned(),
                names => format!("one of {}", names.join(", ")),
            };
            return Err(BisectError::NoMetric { wanted: self.metric.clone(), known });
        };
        if !(reading.value > 0.0 && reading.value.is_finite()) {
            let (metric, value) = (self.metric.clone(), reading.value);
            return Err(BisectError::NoRatio { metric, value });
        }
        Ok((reading.quantity.clone(), reading.value))
    }

    /// Returns the study and its treatment with the built file filled in.
    fn with_file(&self, file: &Path) -> (Study, Treatment) {
        let (mut study, mut treatment) = (self.plan.study().clone(), self.treatment.clone());
        let file = file.display().to_string();
        match self.kind().and_then(|kind| kind.built_file) {
            Some(setting) => {
                study.backend.settings.insert(setting.to_owned(), Value::String(file));
            }
            None => {
                treatment.settings.insert(KERNEL.to_owned(), Setting::Text(file));
            }
        }
        (study, treatment)
    }

    /// Reports whether the study's time is virtual, so that earlier samples can be compared with
    /// later ones.
    pub(super) fn is_virtual(&self) -> bool {
        self.kind().is_some_and(|kind| (kind.is_virtual)(&self.plan.study().backend))
    }

    fn kind(&self) -> Option<&'static BackendKind> {
        self.backends.kind(&self.plan.study().backend.kind).ok()
    }
}

/// Reports whether a failure is caused by the built file rather than by this machine or the study.
pub(super) fn is_of_the_commit(error: &BisectError) -> bool {
    matches!(error, BisectError::Backend(BackendError::Failed { .. }) | BisectError::NoRatio { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_does_not_run_is_skipped_and_a_failed_restore_ends_the_search() {
        let failed = || BackendError::failed("a boot", "no");
        assert!(is_of_the_commit(&failed().into()));
        assert!(!is_of_the_commit(&BisectError::NotRestored(failed())));
        assert!(!is_of_the_commit(&BackendError::Interrupted.into()));
    }
}
