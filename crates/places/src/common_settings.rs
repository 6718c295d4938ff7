//! Settings that several backends share.

use std::fmt::Display;

use numalab_formats::machine_toml::MachineFile;
use numalab_formats::memory_emulator::{
    EmulatedMachine, GivenCosts, MemoryCosts, describe, parse_bandwidth, parse_caches,
    parse_latency, parse_stages,
};
use numalab_formats::tiers;
use numalab_study::{BackendError, BackendSpec, SettingSpec, StudyPlace};
use numalab_topology::{Machine, TierSpec};
use serde::Deserialize;
use serde_json::Value;

use crate::machine::{MachineError, machine_file};

/// The name of the backend that is a Linux guest.
pub(super) const LINUX_GUEST: &str = "linux-guest";

/// Defines settings: the name, the values, the default, and the description of each.
macro_rules! settings {
    ($($(#[$doc:meta])* $vis:vis $id:ident =
        $name:expr, $kind:ident $(($values:expr))?, $default:expr, $about:expr;)+) => {
        $($(#[$doc])* $vis const $id: numalab_study::SettingSpec = numalab_study::SettingSpec {
            name: $name,
            kind: numalab_study::SettingKind::$kind $(($values))?,
            default: $default,
            about: $about,
        };)+
    };
}
pub(crate) use settings;

settings! {
    pub(super) EMULATE = "emulate", Text("nodes, as for --emulate, such as 4 or 1G,1G"), "1",
        "nodes of the guest, as for --emulate: 4, or 1G,1G";
    pub(super) CPUS = "cpus", Count(4096), "2", "total number of cpus";
    pub(super) MEMORY = "memory", Text("a size such as 2G"), "2G", "total memory";
    pub(super) DISTANCES = "distances", Text("rows such as 10,20;20,10"), "",
        "distances between nodes, as for --distances";
    pub(super) EMULATE_TIERS = "emulate-tiers", Text("tiers such as 512M@100ns,1G@300ns,10G/s"), "",
        "memory tiers with latencies, as for --emulate-tiers; replaces emulate, memory and \
         distances";
    pub(super) EMULATE_LIKE = "emulate-like",
        Text("a machine file, or a name of `numalab machine list`"), "",
        "a known machine to emulate, as for --emulate-like, with `cpus` and `memory` for its size; \
         replaces emulate and distances";
    pub(super) EMULATE_LATENCY = "emulate-latency",
        Text("nanoseconds of local memory such as 100, hmat, or flat:100"), "",
        "memory latency in virtual time, as for --emulate-latency";
    pub(super) EMULATE_BANDWIDTH = "emulate-bandwidth", Text("limits such as 10G, or hmat"), "",
        "bandwidth limits of that memory, as for --emulate-bandwidth";
    pub(super) EMULATE_CACHE = "emulate-cache", Text("sizes such as 32K,1M"), "",
        "caches in front of that memory, as for --emulate-cache";
    pub(super) EMULATE_STAGES = "emulate-stages", Text("stages such as load"), "",
        "stages of the memory model, as for --emulate-stages";
    pub(super) COUNTERS = "counters",
        List("names in /proc/vmstat, or emulated_walks, emulated_walk_references, \
              emulated_longest_walk, emulated_translation_ns, emulated_time_ns, \
              emulated_accesses"), "",
        "counters of /proc/vmstat and of the memory emulator to show with each metric";
    pub(super) COUNT_MIGRATIONS = "count-migrations", Flag, "false",
        "count migrations and context switches of each workload with perf stat";
    pub(super) WATCH_PAGES = "watch-pages", Flag, "false",
        "record which pages each workload's memory is on while it runs";
    /// Records a hash of each workload's output.
    pub WATCH_OUTPUT = "watch-output", Flag, "false",
        "record a hash of each workload's output, to show whether it varies";
}

/// The emulated costs of a guest's memory, written as on the command line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct MemoryCostSettings {
    pub(super) emulate_tiers: Option<String>,
    pub(super) emulate_like: Option<String>,
    emulate_latency: Option<String>,
    emulate_bandwidth: Option<String>,
    emulate_cache: Option<String>,
    emulate_stages: Option<String>,
}

/// Returns true if a guest's memory has emulated costs with these settings, in virtual time.
pub(super) fn emulates_memory(spec: &BackendSpec) -> bool {
    let costs = serde_json::from_value(Value::Object(spec.settings.clone()));
    costs.is_ok_and(|costs: MemoryCostSettings| costs.are_emulated())
}

impl MemoryCostSettings {
    /// Returns true if memory has costs; caches alone do not count.
    pub(super) fn are_emulated(&self) -> bool {
        self.emulate_latency.is_some()
            || self.emulate_bandwidth.is_some()
            || self.emulate_tiers.is_some()
            || self.emulate_like.is_some()
    }

    /// Returns true if they are the costs of a machine whose memory is known.
    pub(super) fn are_like_a_machine(&self) -> bool {
        self.emulate_like.is_some()
    }

    /// Returns the machine file that the guest imitates, if any.
    pub(super) fn like(&self, kind: &str) -> Result<Option<MachineFile>, BackendError> {
        let file = self.emulate_like.as_deref().map(machine_file).transpose();
        file.map_err(|error| self.bad_machine(kind, &error))
    }

    /// Returns the error for the setting that does not describe a machine.
    pub(super) fn bad_machine(&self, kind: &str, error: &MachineError) -> BackendError {
        let like = self.emulate_like.as_deref().unwrap_or_default();
        let bad_like = |expected: &dyn Display| bad(kind, EMULATE_LIKE.name, like, expected);
        match error {
            MachineError::Option { option, value, reason } => {
                bad(kind, option, value, &reason.strip_prefix("expected ").unwrap_or(reason))
            }
            MachineError::File { reason, .. } => bad_like(reason),
            MachineError::Absent { names, .. } => bad_like(&format!("a file, or one of {names}")),
            error => bad_like(error),
        }
    }

    /// Describes the memory of a guest that is this machine, with usual costs for those that are
    /// not set.
    pub(super) fn described(
        &self,
        kind: &str,
        machine: &Machine,
        usual: fn(Option<&TierSpec>) -> MemoryCosts,
    ) -> Result<EmulatedMachine, BackendError> {
        let (key, described) = match self.like(kind)? {
            Some(file) => (EMULATE_LIKE, file.emulated(machine)),
            None => (
                EMULATE_LATENCY,
                describe(machine, &self.given(kind)?.or(usual(self.tiers(kind)?.as_ref()))),
            ),
        };
        described.map_err(|error| bad(kind, key.name, &error.to_string(), &COSTS_OF_MACHINE))
    }

    /// Returns the memory tiers of the machine, if it has any.
    pub(super) fn tiers(&self, kind: &str) -> Result<Option<TierSpec>, BackendError> {
        read(kind, EMULATE_TIERS, self.emulate_tiers.as_ref(), tiers::parse)
    }

    /// Returns the latency as written: of local memory, or of each tier.
    pub(super) fn latency(&self) -> Option<String> {
        let tiers = self.emulate_tiers.as_ref().map(|tiers| format!("tiers {tiers}"));
        let like = self.emulate_like.as_ref().map(|name| format!("like {name}"));
        let latency = self.emulate_latency.as_ref().map(|latency| format!("{latency} ns"));
        latency.or(tiers).or(like)
    }

    /// Returns the costs of a guest's memory, for a backend of this kind.
    pub(super) fn costs(&self, kind: &str) -> Result<MemoryCosts, BackendError> {
        Ok(self.given(kind)?.or(MemoryCosts::of_guest(self.tiers(kind)?.as_ref())))
    }

    fn given(&self, kind: &str) -> Result<GivenCosts, BackendError> {
        Ok(GivenCosts {
            latency: read(kind, EMULATE_LATENCY, self.emulate_latency.as_ref(), parse_latency)?,
            bandwidth: read(
                kind,
                EMULATE_BANDWIDTH,
                self.emulate_bandwidth.as_ref(),
                parse_bandwidth,
            )?,
            caches: read(kind, EMULATE_CACHE, self.emulate_cache.as_ref(), parse_caches)?,
            stages: read(kind, EMULATE_STAGES, self.emulate_stages.as_ref(), parse_stages)?,
        })
    }
}

pub(super) const COSTS_OF_MACHINE: &str = "costs of this machine";

/// Reads a setting of a backend's table, if it is given.
fn read<T, E: Display>(
    kind: &str,
    spec: SettingSpec,
    text: Option<&String>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, BackendError> {
    let parsed = text.map(|text| parse(text).map_err(|error| bad(kind, spec.name, text, &error)));
    parsed.transpose()
}

/// Returns the error for a value of a backend's table.
pub(super) fn bad(kind: &str, key: &str, found: &str, expected: &dyn Display) -> BackendError {
    BackendError::bad_input(StudyPlace::backend(kind, key), format!("{found:?}"), expected)
}

#[cfg(test)]
mod tests;
