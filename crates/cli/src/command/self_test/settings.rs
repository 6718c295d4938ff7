//! Settings that a self-test changes, and their values before and after.

use numalab_host::Root;
use numalab_host::knobs::{FileState, Knob, Tuning};
use numalab_record::self_test::{CheckFound, PutBack};

use crate::failure::Failure;

/// Changed through the journal; put back when it is dropped.
pub(super) struct Settings {
    root: Root,
    tuning: Tuning,
    changed: Vec<(Knob, String)>,
}

impl Settings {
    pub(super) fn new(root: &Root) -> Result<Self, Failure> {
        let tuning = Tuning::new(root)?;
        Ok(Self { root: root.clone(), tuning, changed: Vec::new() })
    }

    /// What a setting holds now; nothing if this kernel does not have it or does not tell.
    pub(super) fn value(&self, name: &str) -> Result<String, Failure> {
        let knob = Knob::find(&self.root, name)?;
        Ok(value_of(&knob, &self.root))
    }

    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let knob = Knob::find(&self.root, name)?;
        let before = value_of(&knob, &self.root);
        self.tuning.set(&knob, value)?;
        if self.changed.iter().all(|(known, _)| known.name() != name) {
            self.changed.push((knob, before));
        }
        Ok(())
    }

    /// Puts every setting back and reads it once more.
    pub(super) fn put_back(&mut self) -> Result<CheckFound, Failure> {
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
        _ => String::new(),
    }
}
