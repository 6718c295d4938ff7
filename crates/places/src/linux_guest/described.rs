//! A Linux guest of a machine that the user describes, as settings of a study.

use numalab_formats::memory_emulator::{
    GivenCosts, MemoryCosts, format_bandwidth, format_caches, format_latency, format_stages,
};
use numalab_formats::size::format_bytes;
use numalab_study::{BackendSpec, SettingSpec};
use numalab_topology::{Machine, TierSpec};
use serde_json::{Map, Value};

use super::kind::{ITS_KERNEL, KIND, WITH};
use crate::common_settings::{
    CPUS, DISTANCES, EMULATE, EMULATE_BANDWIDTH, EMULATE_CACHE, EMULATE_LATENCY, EMULATE_LIKE,
    EMULATE_STAGES, EMULATE_TIERS, MEMORY,
};

/// The kernel with memory tiers and weighted interleaving, which Debian's stable one lacks.
const NEW_KERNEL: &str = "backports";

/// A described machine: one of `emulate`, `tiers` and `like`, as the options of those names take
/// them.
#[derive(Clone, Debug)]
pub struct DescribedGuest<'a> {
    /// The nodes.
    pub emulate: Option<&'a str>,
    /// The distances between nodes.
    pub distances: Option<&'a str>,
    /// The tiers of memory, as text and as read.
    pub tiers: Option<(&'a str, &'a TierSpec)>,
    /// The machine with known memory.
    pub like: Option<&'a str>,
    /// The machine that these give.
    pub machine: &'a Machine,
    /// The costs of its memory.
    pub costs: GivenCosts,
    /// Additional programs and files that its commands need.
    pub with: &'a [String],
}

impl DescribedGuest<'_> {
    /// Returns the backend's settings; memory costs what it does for a program that is followed.
    pub fn spec(&self) -> BackendSpec {
        let tiers = self.tiers.map(|(text, _)| text);
        let has_tiers = self.machine.cpu_nodes().len() < self.machine.memory_nodes().len();
        let memory = tiers.is_none().then(|| format_bytes(self.machine.memory_bytes()));
        let mut texts: Vec<(SettingSpec, Option<String>)> = vec![
            (EMULATE, self.emulate.map(str::to_owned)),
            (DISTANCES, self.distances.map(str::to_owned)),
            (EMULATE_TIERS, tiers.map(str::to_owned)),
            (EMULATE_LIKE, self.like.map(str::to_owned)),
            (MEMORY, memory),
            (ITS_KERNEL, has_tiers.then(|| NEW_KERNEL.to_owned())),
        ];
        if self.like.is_none() {
            let usual = MemoryCosts::usual(self.tiers.map(|(_, tiers)| tiers));
            let costs = self.costs.clone().or(usual);
            texts.push((EMULATE_LATENCY, Some(format_latency(&costs.latency))));
            texts.push((EMULATE_BANDWIDTH, format_bandwidth(&costs.bandwidth)));
            texts.push((EMULATE_CACHE, Some(format_caches(&costs.caches))));
            texts.push((EMULATE_STAGES, Some(format_stages(&costs.stages))));
        }
        let text = |(spec, text): (SettingSpec, Option<String>)| Some((spec, Value::from(text?)));
        let cpus = (CPUS, Value::from(self.machine.online_cpus().len()));
        let with = (WITH, Value::from(self.with));
        let settings = texts.into_iter().filter_map(text).chain([cpus, with]);
        let settings: Map<String, Value> =
            settings.map(|(spec, value)| (spec.name.to_owned(), value)).collect();
        BackendSpec { kind: KIND.name.to_owned(), settings }
    }
}

/// Returns true if a guest with these settings boots a kernel with weighted interleaving.
pub fn boots_new_kernel(spec: &BackendSpec) -> bool {
    spec.settings.get(ITS_KERNEL.name).is_some_and(|kernel| kernel == NEW_KERNEL)
}
