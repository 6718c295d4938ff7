//! Settings that a self-test changes, and their values before and after.

use numalab_record::self_test::{CheckFound, PutBack};

use super::error::KnobError;
use super::file::FileState;
use super::knob::Knob;
use super::tuning::Tuning;
use numalab_host::Root;

/// Settings that are changed for a test: through the journal, and restored on drop.
#[derive(Debug)]
pub struct ChangedSettings {
    root: Root,
    tuning: Tuning,
    changed: Vec<(Knob, String)>,
}

impl ChangedSettings {
    /// Creates the value without changing a setting.
    ///
    /// # Errors
    /// [`KnobError`] if another run left settings behind.
    pub fn new(root: &Root) -> Result<Self, KnobError> {
        let tuning = Tuning::new(root)?;
        Ok(Self { root: root.clone(), tuning, changed: Vec::new() })
    }

    /// Returns a setting's current value; empty if this kernel does not report it.
    ///
    /// # Errors
    /// [`KnobError`] if there is no such setting.
    pub fn value(&self, name: &str) -> Result<String, KnobError> {
        let knob = Knob::find(&self.root, name)?;
        Ok(value_of(&knob, &self.root))
    }

    /// Changes a setting.
    ///
    /// # Errors
    /// [`KnobError`] if it cannot be set.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), KnobError> {
        let knob = Knob::find(&self.root, name)?;
        let before = value_of(&knob, &self.root);
        self.tuning.set(&knob, value)?;
        if self.changed.iter().all(|(known, _)| known.name() != name) {
            self.changed.push((knob, before));
        }
        Ok(())
    }

    /// Restores every setting and reads it back.
    ///
    /// # Errors
    /// [`KnobError`] if one cannot be restored.
    pub fn put_back(&mut self) -> Result<CheckFound, KnobError> {
        self.tuning.restore()?;
        let settings = self.changed.iter().map(|(knob, before)| PutBack {
            name: knob.name().to_owned(),
            before: before.clone(),
            after: value_of(knob, &self.root),
        });
        Ok(CheckFound::Settings { settings: settings.collect() })
    }
}

fn value_of(knob: &Knob, root: &Root) -> String {
    match knob.state(root) {
        FileState::Value(value) => value,
        FileState::WriteOnly | FileState::Absent | FileState::Denied(_) => String::new(),
    }
}
