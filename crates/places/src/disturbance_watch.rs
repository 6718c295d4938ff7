//! Other activity of this machine while guests take samples of its time.

use numalab_host::{SystemSnapshot, SystemWatch, allowed_now};
use numalab_record::study::{Disturbance, LoadedMachine};
use numalab_study::BackendError;
use numalab_topology::CpuSet;

/// Watches for disturbances of guests that are child processes of this one, by a rule that does not
/// look at their values.
#[derive(Debug)]
pub(super) struct DisturbanceWatch {
    watch: Option<SystemWatch>,
}

impl DisturbanceWatch {
    /// Watches the cpus of this process if the samples are `of_host_time`. This machine cannot
    /// disturb samples of virtual time or of memory's location.
    pub(super) fn new(of_host_time: bool) -> Result<Self, BackendError> {
        let watch = match of_host_time {
            true => Some(SystemWatch::new(&allowed_cpus()?).with_living_children()),
            false => None,
        };
        Ok(Self { watch })
    }

    pub(super) fn now(&mut self) -> Option<SystemSnapshot> {
        self.watch.as_mut().map(SystemWatch::snapshot)
    }

    /// Returns the disturbance between two moments, if there was one.
    pub(super) fn disturbance(
        before: Option<SystemSnapshot>,
        after: Option<SystemSnapshot>,
    ) -> Option<Disturbance> {
        let load = after?.disturbance_since(&before?)?;
        Some(Disturbance::Load { on: LoadedMachine::Host, load })
    }
}

/// Returns the cpus on which this process and its children may run.
pub(super) fn allowed_cpus() -> Result<CpuSet, BackendError> {
    let allowed = allowed_now()
        .map_err(|error| BackendError::failed("finding the cpus of this process", error))?;
    Ok(allowed.cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_outside_of_host_time_are_not_watched() {
        let mut watch = DisturbanceWatch::new(false).unwrap();
        let before = watch.now();
        assert_eq!(before, None);
        assert_eq!(DisturbanceWatch::disturbance(before, watch.now()), None);
        assert!(DisturbanceWatch::new(true).unwrap().now().is_some());
    }
}
