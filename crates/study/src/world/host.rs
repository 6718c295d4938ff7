//! This machine.

use numalab_host::Root;
use numalab_record::Environment;
use numalab_record::study::{Evidence, Study, Taken, Treatment, WorldSpec};

use super::{Order, World, WorldError};

/// This machine, with settings as parts of the commands that are run.
#[derive(Debug)]
pub(super) struct Host;

impl Host {
    /// Refuses settings: this world has none.
    pub(super) fn open(spec: &WorldSpec) -> Result<Self, WorldError> {
        match spec.settings.keys().next() {
            None => Ok(Self),
            Some(name) => Err(WorldError::BadInput {
                place: "world.host".to_owned(),
                found: name.clone(),
                expected: "no settings".to_owned(),
            }),
        }
    }
}

impl World for Host {
    fn describe(&self) -> String {
        "this machine".to_owned()
    }

    fn check(&mut self, _study: &Study) -> Result<Vec<String>, WorldError> {
        Ok(Vec::new())
    }

    fn environment(&mut self) -> Result<Environment, WorldError> {
        let facts = numalab_host::Environment::read(&Root::live()).facts();
        Ok(Environment { facts })
    }

    fn apply(&mut self, _treatment: &Treatment) -> Result<Vec<Evidence>, WorldError> {
        Ok(Vec::new())
    }

    fn sample(&mut self, _order: &Order<'_>) -> Result<Taken, WorldError> {
        Ok(Taken::default())
    }

    fn restore(&mut self) -> Result<(), WorldError> {
        Ok(())
    }
}
