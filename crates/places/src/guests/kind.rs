//! The settings of `[backend.guests]`, and those that levels of factors may set there.

use numalab_study::{BackendKind, Level, SettingSpec, Study};
use serde_json::Value;

use crate::common_settings::{
    EMULATE_BANDWIDTH, EMULATE_CACHE, EMULATE_LATENCY, EMULATE_LIKE, EMULATE_STAGES,
    emulates_memory, settings,
};
use crate::host_side::GUEST_MEMORY;

/// The maximum number of guests of one boot.
const MOST_GUESTS: u64 = 64;

/// The metrics added to those of every workload: shares in percent, and the speed that counted
/// accesses predict. Without emulated memory there is only the first.
pub(super) const OWN_METRICS: [&str; 3] = ["local-memory", "local-accesses", "expected-speed"];
/// The setting that names the hypervisor to boot.
pub(super) const XEN: &str = "xen";

/// Making a machine takes as long as booting this number of its guests.
const MACHINE_IN_GUESTS: f64 = 3.0;

settings! {
    HYPERVISOR = "hypervisor", OneOf(&["xen", "qemu"]), "xen",
        "Xen in QEMU, or guests of QEMU on this machine's own nodes";
    ON_THIS_DOM0 = "on-this-dom0", Flag, "false",
        "use the Xen that this machine runs: numa is then fixed and cannot be a factor";
    GUESTS_PER_NODE = "guests-per-node", Count(MOST_GUESTS), "4",
        "number of guests that fill a node of the generated machine";
    NODE_MEMORY_MIB = "node-memory-mib", Count(1 << 20), "",
        "memory of each node of that machine, in MiB; by default, and at least, what its guests \
         need";
    GUEST_MEMORY_MIB = "guest-memory-mib", Count(1 << 20), "224", "memory of each guest, in MiB";
    GUEST_VCPUS = "guest-vcpus", Count(64), "1", "vCPUs of each guest";
    GUEST_KIND = "guest-kind", OneOf(&["pv", "pvh"]), "pv",
        "type of Xen's domains; frames of pvh are known only with numa=on";
    DOM0_MEMORY_MIB = "dom0-memory-mib", Count(1 << 20), "768", "memory of dom0, in MiB";
    ROUNDS = "rounds", Count(1000), "",
        "$ROUNDS in commands; by default 2, or 1 with emulated memory";
    NUMA = "numa", Text("on, off or fake=N"), "on", "Xen's numa=";
    PINNING = "pinning",
        OneOf(&["cpus-and-memory", "cpus", "none", "cpus-as-string"]), "cpus-and-memory",
        "parts of each guest pinned to its node";
    DOM0_NODES = "dom0-nodes", Text("nodes such as 0, or all"), "",
        "Xen's dom0_nodes=; node 0 if numa is on";
    CPUPOOLS = "cpupools", Flag, "false", "a cpupool for each node";
    MACHINE = "machine",
        Text("x460, two-sockets, four-sockets, one of `numalab machine list`, or its file"), "x460",
        "the machine that Xen in QEMU sees";
    XENS_BUILD = XEN, Text("debian, or the file of a build"), "debian", "the hypervisor to boot";
    GUESTS = "guests", Count(MOST_GUESTS), "4", "number of guests that run at the same time";
}

pub(crate) const KIND: BackendKind = BackendKind {
    name: "guests",
    about: "many guests of Xen or QEMU on one machine, at the same time",
    settings: &[
        HYPERVISOR,
        ON_THIS_DOM0,
        SettingSpec {
            about: "a known machine to emulate, as for --emulate-like, with the number of \
                    nodes that guests fill; replaces the factor machine",
            ..EMULATE_LIKE
        },
        EMULATE_LATENCY,
        EMULATE_BANDWIDTH,
        SettingSpec { default: "32K,1M", ..EMULATE_CACHE },
        EMULATE_STAGES,
        GUESTS,
        GUESTS_PER_NODE,
        NODE_MEMORY_MIB,
        GUEST_MEMORY_MIB,
        GUEST_VCPUS,
        GUEST_KIND,
        DOM0_MEMORY_MIB,
        ROUNDS,
    ],
    own_metrics: &OWN_METRICS,
    // The Xen of this machine has already been booted with or without numa.
    decides: &[(ON_THIS_DOM0.name, NUMA.name)],
    place_work: |study| MACHINE_IN_GUESTS + mean_guests(study),
    is_virtual: emulates_memory,
    levels: &[NUMA, GUESTS, PINNING, DOM0_NODES, CPUPOOLS, MACHINE, XENS_BUILD, GUEST_MEMORY],
    ..BackendKind::PLAIN
};

/// Returns the mean number of guests of a study's treatments.
fn mean_guests(study: &Study) -> f64 {
    let factor = study.factors.iter().find(|factor| factor.name == GUESTS.name);
    let levels: Vec<f64> = factor.map_or_else(
        || study.backend.settings.get(GUESTS.name).and_then(Value::as_f64).into_iter().collect(),
        |factor| factor.levels.iter().filter_map(Level::number).collect(),
    );
    levels.iter().sum::<f64>() / levels.len().max(1) as f64
}
