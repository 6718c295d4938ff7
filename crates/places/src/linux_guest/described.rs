//! A Linux guest of a machine that the user describes, as settings of a study.

use numalab_formats::memory_emulator::{
    GivenCosts, MemoryCosts, format_bandwidth, format_caches, format_latency, format_stages,
};
use numalab_formats::size::format_bytes;
use numalab_study::{BackendSpec, SettingSpec};
use serde_json::{Map, Value};

use super::kind::{ITS_KERNEL, KIND, WITH};
use crate::common_settings::{
    CPUS, DISTANCES, EMULATE, EMULATE_BANDWIDTH, EMULATE_CACHE, EMULATE_LATENCY, EMULATE_LIKE,
    EMULATE_STAGES, EMULATE_TIERS, MEMORY,
};
use crate::machine::{Described, MachineError, MachineRequest};

/// The kernel with memory tiers and weighted interleaving, which Debian's stable one lacks.
const NEW_KERNEL: &str = "backports";

impl MachineRequest {
    /// Returns the settings of a backend that boots this machine as a guest, with these additional
    /// programs and files; memory has the same costs as for a followed program.
    ///
    /// # Errors
    /// [`MachineError`] if a study cannot name the machine.
    pub fn guest_spec(
        &self,
        costs: GivenCosts,
        with: &[String],
    ) -> Result<BackendSpec, MachineError> {
        self.expect_made()?;
        let Described { machine, tiers, .. } = self.describe_guest()?;
        let has_tiers = machine.cpu_nodes().len() < machine.memory_nodes().len();
        let memory = tiers.is_none().then(|| format_bytes(machine.memory_bytes()));
        let mut texts: Vec<(SettingSpec, Option<String>)> = vec![
            (EMULATE, self.emulate.clone()),
            (DISTANCES, self.distances.clone()),
            (EMULATE_TIERS, self.tiers.clone()),
            (EMULATE_LIKE, self.like.clone()),
            (MEMORY, memory),
            (ITS_KERNEL, has_tiers.then(|| NEW_KERNEL.to_owned())),
        ];
        if self.like.is_none() {
            let costs = costs.or(MemoryCosts::usual(tiers.as_ref()));
            texts.push((EMULATE_LATENCY, Some(format_latency(&costs.latency))));
            texts.push((EMULATE_BANDWIDTH, format_bandwidth(&costs.bandwidth)));
            texts.push((EMULATE_CACHE, Some(format_caches(&costs.caches))));
            texts.push((EMULATE_STAGES, Some(format_stages(&costs.stages))));
        }
        let text = |(spec, text): (SettingSpec, Option<String>)| Some((spec, Value::from(text?)));
        let cpus = (CPUS, Value::from(machine.online_cpus().len()));
        let with = (WITH, Value::from(with));
        let settings = texts.into_iter().filter_map(text).chain([cpus, with]);
        let settings: Map<String, Value> =
            settings.map(|(spec, value)| (spec.name.to_owned(), value)).collect();
        Ok(BackendSpec { kind: KIND.name.to_owned(), settings })
    }

    /// Refuses a machine that is read from a source, because no setting of a study can name it.
    fn expect_made(&self) -> Result<(), MachineError> {
        let is_made = self.emulate.is_some() || self.tiers.is_some() || self.like.is_some();
        let others = [
            ("with --cxl", self.cxl),
            ("with --source", self.source.is_some()),
            ("with --topology", self.topology.is_some()),
            ("for this machine", !is_made),
        ];
        match others.into_iter().find(|(_, is_given)| *is_given) {
            Some((what, _)) => Err(MachineError::NoGuest { what }),
            None => Ok(()),
        }
    }
}

/// Returns true if a guest with these settings boots a kernel with weighted interleaving.
pub fn boots_new_kernel(spec: &BackendSpec) -> bool {
    spec.settings.get(ITS_KERNEL.name).is_some_and(|kernel| kernel == NEW_KERNEL)
}
