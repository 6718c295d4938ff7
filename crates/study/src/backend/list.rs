//! The backends that a study may name. The engine knows none; its caller provides the list.

use numalab_host::Interrupt;
use numalab_record::study::SettingList;

use super::contract::{Backend, BackendError};
use super::setting_spec::BackendKind;
use crate::definition::{BackendSpec, Study};
use crate::study_place::StudyPlace;

/// Opens a backend with a study's settings; an interrupt ends the backend's work.
pub type OpenBackend = fn(&BackendSpec, &Interrupt) -> Result<Box<dyn Backend>, BackendError>;

/// Backends with their settings and constructors.
#[derive(Clone, Copy, Debug)]
pub struct Backends(&'static [(&'static BackendKind, OpenBackend)]);

impl Backends {
    /// No backends: their settings are not checked.
    pub const NONE: Self = Self(&[]);

    /// Creates the list of these backends.
    pub const fn new(list: &'static [(&'static BackendKind, OpenBackend)]) -> Self {
        Self(list)
    }

    /// Returns every backend's name and settings.
    pub fn kinds(self) -> impl Iterator<Item = &'static BackendKind> {
        self.0.iter().map(|(kind, _)| *kind)
    }

    /// Returns the backend with this name.
    ///
    /// # Errors
    /// [`BackendError::BadInput`] with the known names.
    pub fn kind(self, name: &str) -> Result<&'static BackendKind, BackendError> {
        self.entry(name).map(|(kind, _)| kind)
    }

    /// Lists the settings of every backend, or of the one with this name.
    ///
    /// # Errors
    /// As [`kind`](Self::kind).
    pub fn settings(self, name: Option<&str>) -> Result<SettingList, BackendError> {
        let one = name.map(|name| self.kind(name)).transpose()?;
        let kinds = self.kinds().filter(|kind| one.is_none_or(|one| one.name == kind.name));
        Ok(SettingList { backends: kinds.map(BackendKind::listed).collect() })
    }

    /// Opens the backend that a study names. `interrupt` ends the backend's work.
    ///
    /// # Errors
    /// [`BackendError::BadInput`] for an unknown kind or setting.
    pub fn open(
        self,
        study: &Study,
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Backend>, BackendError> {
        let (_, open) = self.entry(&study.backend.kind)?;
        open(&study.backend, interrupt)
    }

    fn entry(self, name: &str) -> Result<(&'static BackendKind, OpenBackend), BackendError> {
        let names = || self.kinds().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
        let found = self.0.iter().find(|(kind, _)| kind.name == name).copied();
        found.ok_or_else(|| BackendError::bad_input(StudyPlace::keys(["backend"]), name, names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    const KIND: BackendKind =
        BackendKind { name: "lab", own_metrics: &["local_percent"], ..BackendKind::PLAIN };
    const LAB: Backends = Backends::new(&[(&KIND, |_, _| Err(BackendError::Interrupted))]);

    fn read(backend: &str, backends: Backends) -> Result<Study, String> {
        let text = format!(
            "name = \"s\"\nquestion = \"q?\"\nbackend = \"{backend}\"\n[rules]\n\
             primary = \"w.local_percent\"\n[[factor]]\nname = \"v\"\nlevels = [1, 2]\n\
             [[workload]]\nname = \"w\"\ncommand = [\"true\"]\n\
             metric = [{{ name = \"t\", better = \"lower\", exit-time = true }}]\n"
        );
        parse(&text, "s.toml", backends).map_err(|error| error.to_string())
    }

    #[test]
    fn rules_may_name_the_metrics_of_the_backend_that_the_study_names() {
        assert!(read("lab", LAB).is_ok());
        for (backend, backends) in [("other", LAB), ("lab", Backends::NONE)] {
            let refused = read(backend, backends).unwrap_err();
            assert!(refused.contains("expected workload.metric, one of w.t"), "{refused}");
        }
    }

    #[test]
    fn a_backend_opens_by_name_and_an_unknown_one_is_refused_with_the_known_ones() {
        let mut study = read("lab", LAB).unwrap();
        let interrupt = Interrupt::never();
        let opened = LAB.open(&study, &interrupt).map(drop);
        assert_eq!(opened, Err(BackendError::Interrupted), "as its own function says");
        study.backend.kind = "cloud".to_owned();
        let refused = LAB.open(&study, &interrupt).map(drop).unwrap_err().to_string();
        assert_eq!(refused, "backend: cloud: expected lab");
    }
}
