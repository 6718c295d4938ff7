//! This machine: treatments are parts of the commands that are run.

use std::env;
use std::path::Path;

use numalab_host::{Interrupt, Root, SystemWatch, allowed_now};
use numalab_record::Environment;
use numalab_record::study::{Evidence, Taken, Treatment};
use numalab_workload::Workload;

use super::{Order, World, WorldError};
use crate::definition::WorldSpec;
use crate::exec;

/// This machine. Settings are written into the commands and given as environment
/// variables `NUMALAB_<NAME>`, with the seed as `NUMALAB_SEED`.
#[derive(Debug)]
pub(super) struct Host {
    interrupt: Interrupt,
    watch: SystemWatch,
}

impl Host {
    /// Refuses settings: this world has none.
    pub(super) fn open(spec: &WorldSpec, interrupt: &Interrupt) -> Result<Self, WorldError> {
        if let Some(name) = spec.settings.keys().next() {
            return Err(WorldError::BadInput {
                place: "world.host".to_owned(),
                found: name.clone(),
                expected: "no settings".to_owned(),
            });
        }
        let allowed = allowed_now().map_err(|error| WorldError::Failed {
            doing: "finding the cpus of this process".to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self { interrupt: interrupt.clone(), watch: SystemWatch::new(&allowed.cpus) })
    }
}

impl World for Host {
    fn describe(&self) -> String {
        "this machine".to_owned()
    }

    fn check(
        &mut self,
        _treatments: &[Treatment],
        workloads: &[Workload],
    ) -> Result<Vec<String>, WorldError> {
        for workload in workloads {
            let program = |tool: &&numalab_workload::Tool| !is_there(&tool.program);
            if let Some(tool) = workload.tools.iter().find(program) {
                return Err(exec::missing(workload, &tool.program));
            }
        }
        Ok(Vec::new())
    }

    fn environment(&mut self) -> Result<Environment, WorldError> {
        let facts = numalab_host::Environment::read(&Root::live()).facts();
        Ok(Environment { facts })
    }

    fn apply(&mut self, _treatment: &Treatment) -> Result<Vec<Evidence>, WorldError> {
        Ok(Vec::new())
    }

    fn sample(&mut self, order: &Order<'_>) -> Result<Taken, WorldError> {
        let before = self.watch.snapshot();
        let readings = exec::run(order, &self.interrupt)?;
        let disturbance = self.watch.snapshot().disturbance_since(&before);
        let disturbances = disturbance.map(|reason| reason.to_string()).into_iter().collect();
        Ok(Taken { readings, disturbances, ..Taken::default() })
    }

    fn restore(&mut self) -> Result<(), WorldError> {
        Ok(())
    }
}

/// Whether a program is a file at its path, or on the search path.
fn is_there(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
