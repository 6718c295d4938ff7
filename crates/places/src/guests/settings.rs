//! The guest settings of a study: the backend's own, and each treatment's.

use std::collections::BTreeMap;
use std::path::PathBuf;

use numalab_guest::HostPages;
use numalab_guest::xen::{DomainKind, Pinning};
use numalab_record::study::{Setting, Treatment};
use numalab_study::{BackendError, StudyPlace};
use numalab_topology::Machine;
use serde::Deserialize;

use super::errors::bad;
use super::kind::{KIND, XEN};
use super::machine;
use crate::common_settings::MemoryCostSettings;
use crate::host_side::{self, HOST};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum HypervisorKind {
    /// Xen, either in QEMU or running on this machine.
    #[default]
    Xen,
    /// QEMU on this machine, one process per guest.
    Qemu,
}

/// `[backend.guests]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct GuestsSettings {
    pub hypervisor: HypervisorKind,
    /// Xen: true to use this machine's toolstack instead of a Xen in QEMU.
    pub on_this_dom0: bool,
    #[serde(flatten)]
    pub costs: MemoryCostSettings,
    /// The number of guests, unless a factor sets it.
    pub guests: u32,
    /// The number of guests that fill a node.
    pub guests_per_node: u32,
    /// Memory of each node of the created machine, if more than the guests need.
    pub node_memory_mib: Option<u64>,
    pub guest_memory_mib: u64,
    pub guest_vcpus: u32,
    pub guest_kind: DomainKind,
    pub dom0_memory_mib: u64,
    /// The number of rounds for workloads that can repeat: `$ROUNDS` in their commands.
    pub rounds: Option<u32>,
}

/// The rounds under emulation: a domain of Xen in QEMU takes some seconds for one round of dbench,
/// and ten times that with emulated memory.
const EMULATED_ROUNDS: u32 = 1;
const ROUNDS: u32 = 2;
/// Divisor for the share of the first domain's memory that a saved guest may take at most; the rest
/// holds the images.
const SAVED_PART: u64 = 3;

impl GuestsSettings {
    /// Returns true if memory has emulated costs, in virtual time.
    pub(super) fn emulates_memory(&self) -> bool {
        self.costs.are_emulated()
    }

    /// Returns true if other work on this machine disturbs the samples and can be distinguished
    /// from the guests' own. For the first domain of this machine's Xen, the guests are other work
    /// too.
    pub(super) fn in_host_time(&self) -> bool {
        !self.emulates_memory() && !self.on_this_dom0
    }

    /// Returns true if guests are domains of a Xen in QEMU.
    pub(super) fn xen_in_qemu(&self) -> bool {
        self.hypervisor == HypervisorKind::Xen && !self.on_this_dom0
    }

    /// Returns true if one guest is booted and all are restored from it: for slow guests whose
    /// memory fits into the first domain.
    pub(super) fn restores(&self) -> bool {
        let fits = self.guest_memory_mib * SAVED_PART <= self.dom0_memory_mib;
        self.xen_in_qemu() && self.guest_kind == DomainKind::Pv && fits
    }

    /// Returns the number of rounds for workloads that can repeat.
    pub(super) fn rounds(&self) -> u32 {
        let usual = if self.emulates_memory() { EMULATED_ROUNDS } else { ROUNDS };
        self.rounds.unwrap_or(usual)
    }
}

#[cfg(test)]
impl GuestsSettings {
    pub(super) fn of(settings: serde_json::Value) -> Result<Self, BackendError> {
        let serde_json::Value::Object(settings) = settings else { unreachable!() };
        KIND.read(&numalab_study::BackendSpec { kind: "guests".to_owned(), settings })
    }
}

#[cfg(test)]
impl Default for GuestsSettings {
    fn default() -> Self {
        Self::of(serde_json::json!({})).unwrap()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GuestTreatment {
    /// The value of Xen's `numa=`: `on`, `off`, `fake=4`.
    pub numa: String,
    pub guests: u32,
    pub pinning: Pinning,
    /// The value of Xen's `dom0_nodes=`: 0 if the treatment does not set it and numa is on, `None`
    /// for all.
    pub dom0_nodes: Option<String>,
    pub pools: bool,
    /// The machine under the guests, from its file, with memory sized to fit them.
    pub machine: Machine,
    /// The hypervisor supplied by the user; Debian's if absent.
    pub xen: Option<PathBuf>,
    /// The pages that back the memory of QEMU guests.
    pub pages: HostPages,
}

impl GuestTreatment {
    /// Reads a treatment's settings, all of which must be known here.
    pub(super) fn of(
        treatment: &Treatment,
        backend: &GuestsSettings,
    ) -> Result<Self, BackendError> {
        let settings = &treatment.settings;
        for (name, value) in settings.iter().filter(|(name, _)| !name.starts_with(HOST)) {
            KIND.check_level(name, value)?;
        }
        let numa = text(settings, "numa").unwrap_or_else(|| "on".to_owned());
        let fake = numa.strip_prefix("fake=").and_then(|nodes| nodes.parse::<u32>().ok());
        if !matches!(numa.as_str(), "on" | "off") && fake.is_none_or(|nodes| nodes == 0) {
            return Err(refused("numa", numa, "on, off or fake=N"));
        }
        let guests = text(settings, "guests").and_then(|guests| guests.parse().ok());
        let pools = text(settings, "cpupools").is_some_and(|pools| pools == "true");
        if pools && fake.is_some() {
            // With fake nodes, the pools would not match the machine's nodes.
            return Err(refused("numa", numa, "on or off with cpupools"));
        }
        Ok(Self {
            // Node 0 has room for dom0; on other nodes dom0 would take memory from guests. Fake
            // nodes may be too small for it.
            dom0_nodes: text(settings, "dom0-nodes")
                .or_else(|| (numa == "on").then(|| "0".to_owned()))
                .filter(|nodes| nodes != "all"),
            numa,
            guests: guests.unwrap_or(backend.guests),
            pinning: pinning(settings),
            pools,
            machine: machine(settings, backend)?,
            xen: text(settings, XEN).filter(|xen| xen != DEBIANS_XEN).map(PathBuf::from),
            pages: host_side::pages(settings)?,
        })
    }

    /// Returns true if each node gets a cpupool; if Xen sees a single node there is nothing to
    /// split.
    pub(super) fn splits_pools(&self) -> bool {
        self.pools && self.numa != "off"
    }
}

/// The value of the setting `xen` for Debian's hypervisor.
const DEBIANS_XEN: &str = "debian";
/// The default machine under the guests.
const MACHINE: &str = "x460";

fn text(settings: &BTreeMap<String, Setting>, name: &str) -> Option<String> {
    settings.get(name).map(ToString::to_string)
}

fn pinning(settings: &BTreeMap<String, Setting>) -> Pinning {
    let all = [Pinning::CpusAndMemory, Pinning::Cpus, Pinning::None, Pinning::CpusAsString];
    let name = text(settings, "pinning");
    let named = all.into_iter().find(|pinning| name.as_deref() == Some(pinning.name()));
    named.unwrap_or(Pinning::CpusAndMemory)
}

/// Returns the error for an invalid value of a setting.
fn refused(name: &str, found: String, expected: &str) -> BackendError {
    bad(StudyPlace::Setting(name.to_owned()), found, expected)
}

/// Returns the machine under the guests: the one whose memory is known, or the factor's.
fn machine(
    settings: &BTreeMap<String, Setting>,
    backend: &GuestsSettings,
) -> Result<Machine, BackendError> {
    let named = text(settings, "machine");
    match (backend.costs.like(KIND.name)?, named) {
        (None, named) => machine::read(named.as_deref().unwrap_or(MACHINE)),
        (Some(file), None) => Ok(file.machine),
        (Some(_), Some(named)) => Err(refused("machine", named, "none with emulate-like")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn treatment(settings: &[(&str, &str)]) -> Treatment {
        let settings = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Setting::Text((*value).to_owned())));
        Treatment { name: "t".to_owned(), levels: Vec::new(), settings: settings.collect() }
    }

    #[test]
    fn a_treatment_gets_defaults_for_missing_settings() {
        let wanted =
            GuestTreatment::of(&treatment(&[("numa", "off")]), &GuestsSettings::default()).unwrap();
        assert_eq!((wanted.numa.as_str(), wanted.guests), ("off", 4));
        assert_eq!(wanted.pinning, Pinning::CpusAndMemory);
        assert_eq!(wanted.machine.nodes.len(), 4);
        assert_eq!(wanted.xen, None);
        let dom0_nodes = |settings: &[(&str, &str)]| {
            GuestTreatment::of(&treatment(settings), &GuestsSettings::default()).unwrap().dom0_nodes
        };
        assert_eq!(dom0_nodes(&[]).as_deref(), Some("0"));
        assert_eq!(dom0_nodes(&[("numa", "fake=3")]), None);
        assert_eq!(dom0_nodes(&[("dom0-nodes", "all")]), None);
    }

    #[test]
    fn the_machine_is_the_one_with_known_memory_or_the_one_of_the_factor() {
        let like = GuestsSettings::of(json!({ "emulate-like": "xeon-8360y-2s" })).unwrap();
        let wanted = |settings: &[(&str, &str)]| GuestTreatment::of(&treatment(settings), &like);
        assert_eq!(wanted(&[]).unwrap().machine.nodes.len(), 2);
        let error = wanted(&[("machine", "x460")]).unwrap_err().to_string();
        assert!(error.contains("machine: x460: expected none with emulate-like"), "{error}");
        let absent = GuestsSettings::of(json!({ "emulate-like": "cray-1" })).unwrap();
        let error = GuestTreatment::of(&treatment(&[]), &absent).unwrap_err().to_string();
        assert!(
            error.contains("backend.guests.emulate-like") && error.contains("cray-1"),
            "{error}"
        );
    }

    #[test]
    fn a_hypervisor_is_debians_or_a_file() {
        let xen = |name: &str| {
            GuestTreatment::of(&treatment(&[("xen", name)]), &GuestsSettings::default())
                .unwrap()
                .xen
        };
        assert_eq!(xen("debian"), None);
        assert_eq!(xen("./debian"), Some(PathBuf::from("./debian")));
    }

    #[test]
    fn only_the_machines_own_nodes_get_pools() {
        let pools = |numa: &str| {
            let mut treatment = treatment(&[("numa", numa)]);
            treatment.settings.insert("cpupools".to_owned(), Setting::Bool(true));
            GuestTreatment::of(&treatment, &GuestsSettings::default())
        };
        assert!(pools("on").unwrap().splits_pools());
        assert!(!pools("off").unwrap().splits_pools());
        let error = pools("fake=2").unwrap_err().to_string();
        assert!(error.contains("cpupools") && error.contains("fake=2"), "{error}");
    }

    #[test]
    fn unknown_values_are_refused_with_the_known_ones() {
        for (name, value, words) in [
            ("numa", "maybe", "on, off or fake=N"),
            ("numa", "fake=0", "on, off or fake=N"),
            ("guests", "0", "1 to 64"),
            ("pinning", "hard", "cpus-and-memory"),
            ("machine", "mainframe", "two-sockets"),
            ("swappiness", "1", "one of numa, guests, pinning"),
            ("guest-memory", "4k", "normal, 2m or 1g"),
            ("guest_memory", "2m", "did you mean `guest-memory`?"),
        ] {
            let backend = GuestsSettings::default();
            let wanted = GuestTreatment::of(&treatment(&[(name, value)]), &backend);
            let error = wanted.unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn guests_are_restored_where_the_first_domain_has_room_for_one_that_is_saved() {
        let restores = |settings| GuestsSettings::of(settings).unwrap().restores();
        assert!(restores(json!({ "guest-memory-mib": 256, "dom0-memory-mib": 768 })));
        assert!(!restores(json!({ "guest-memory-mib": 257, "dom0-memory-mib": 768 })));
        assert!(!restores(json!({ "guest-kind": "pvh" })));
        assert!(!restores(json!({ "on-this-dom0": true })));
        assert!(!restores(json!({ "hypervisor": "qemu" })));
    }

    #[test]
    fn work_is_repeated_less_often_in_virtual_time_by_default() {
        let rounds = |settings| GuestsSettings::of(settings).map(|settings| settings.rounds());
        assert_eq!(rounds(json!({})).unwrap(), 2);
        assert_eq!(rounds(json!({ "emulate-latency": "100" })).unwrap(), 1);
        assert_eq!(rounds(json!({ "emulate-latency": "100", "rounds": 5 })).unwrap(), 5);
        assert!(rounds(json!({ "rounds": 0 })).is_err());
    }

    #[test]
    fn virtual_time_and_this_machines_own_xen_are_not_gated() {
        let watched = |settings| GuestsSettings::of(settings).unwrap().in_host_time();
        assert!(watched(json!({})));
        assert!(!watched(json!({ "emulate-latency": "flat:90" })));
        assert!(!watched(json!({ "on-this-dom0": true })));
    }

    #[test]
    fn unknown_settings_of_the_backend_are_named() {
        let error = GuestsSettings::of(json!({ "guest-memory": 1 })).unwrap_err().to_string();
        assert!(error.starts_with("backend.guests.guest-memory: no such setting"), "{error}");
        let error = GuestsSettings::of(json!({ "emulate-memory": true })).unwrap_err().to_string();
        assert!(error.ends_with("did you mean `emulate-latency`?"), "{error}");
    }
}
