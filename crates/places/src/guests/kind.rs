//! The settings of `[backend.guests]`, and those that levels of factors may set there.

use numalab_study::{BackendKind, Level, SettingKind, SettingSpec, Study};
use serde_json::Value;

use crate::common_settings::{
    EMULATE_BANDWIDTH, EMULATE_CACHE, EMULATE_LATENCY, EMULATE_LIKE, EMULATE_STAGES,
    emulates_memory,
};
use crate::host_side::GUEST_MEMORY;

/// The maximum number of guests of one boot.
const MOST_GUESTS: u64 = 64;

/// The metrics added to those of every workload: shares in percent, and the speed that counted
/// accesses predict. Without emulated memory there is only the first.
pub(super) const OWN_METRICS: [&str; 3] = ["local-memory", "local-accesses", "expected-speed"];
/// The setting that names the hypervisor to boot.
pub(super) const XEN: &str = "xen";

/// The flag that makes the machine's own Xen the place, and the factor of Xen's numa=.
const ON_THIS_DOM0: &str = "on-this-dom0";
const NUMA: &str = "numa";
/// Making a machine takes as long as booting this number of its guests.
const MACHINE_IN_GUESTS: f64 = 3.0;

const GUESTS: SettingSpec = SettingSpec {
    name: "guests",
    kind: SettingKind::Count(MOST_GUESTS),
    default: "4",
    about: "number of guests that run at the same time",
};

pub(crate) const KIND: BackendKind = BackendKind {
    name: "guests",
    about: "many guests of Xen or QEMU on one machine, at the same time",
    settings: &[
        SettingSpec {
            name: "hypervisor",
            kind: SettingKind::OneOf(&["xen", "qemu"]),
            default: "xen",
            about: "Xen in QEMU, or guests of QEMU on this machine's own nodes",
        },
        SettingSpec {
            name: ON_THIS_DOM0,
            kind: SettingKind::Flag,
            default: "false",
            about: "use the Xen that this machine runs: numa is then fixed and cannot be a factor",
        },
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
        SettingSpec {
            name: "guests-per-node",
            kind: SettingKind::Count(MOST_GUESTS),
            default: "4",
            about: "number of guests that fill a node of the generated machine",
        },
        SettingSpec {
            name: "node-memory-mib",
            kind: SettingKind::Count(1 << 20),
            default: "",
            about: "memory of each node of that machine, in MiB; by default, and at least, what \
                    its guests need",
        },
        SettingSpec {
            name: "guest-memory-mib",
            kind: SettingKind::Count(1 << 20),
            default: "224",
            about: "memory of each guest, in MiB",
        },
        SettingSpec {
            name: "guest-vcpus",
            kind: SettingKind::Count(64),
            default: "1",
            about: "virtual cpus of each guest",
        },
        SettingSpec {
            name: "guest-kind",
            kind: SettingKind::OneOf(&["pv", "pvh"]),
            default: "pv",
            about: "type of Xen's domains; frames of pvh are known only with numa=on",
        },
        SettingSpec {
            name: "dom0-memory-mib",
            kind: SettingKind::Count(1 << 20),
            default: "768",
            about: "memory of dom0, in MiB",
        },
        SettingSpec {
            name: "rounds",
            kind: SettingKind::Count(1000),
            default: "",
            about: "$ROUNDS in commands; by default 2, or 1 with emulated memory",
        },
    ],
    own_metrics: &OWN_METRICS,
    // The Xen of this machine has already been booted with or without numa.
    decides: &[(ON_THIS_DOM0, NUMA)],
    place_work: |study| MACHINE_IN_GUESTS + mean_guests(study),
    is_virtual: emulates_memory,
    levels: &[
        SettingSpec {
            name: NUMA,
            kind: SettingKind::Text("on, off or fake=N"),
            default: "on",
            about: "Xen's numa=",
        },
        GUESTS,
        SettingSpec {
            name: "pinning",
            kind: SettingKind::OneOf(&["cpus-and-memory", "cpus", "none", "cpus-as-string"]),
            default: "cpus-and-memory",
            about: "parts of each guest pinned to its node",
        },
        SettingSpec {
            name: "dom0-nodes",
            kind: SettingKind::Text("nodes such as 0, or all"),
            default: "",
            about: "Xen's dom0_nodes=; node 0 if numa is on",
        },
        SettingSpec {
            name: "cpupools",
            kind: SettingKind::Flag,
            default: "false",
            about: "a cpupool for each node",
        },
        SettingSpec {
            name: "machine",
            kind: SettingKind::Text(
                "x460, two-sockets, four-sockets, one of `numalab machine list`, or its file",
            ),
            default: "x460",
            about: "the machine that Xen in QEMU sees",
        },
        SettingSpec {
            name: XEN,
            kind: SettingKind::Text("debian, or the file of a build"),
            default: "debian",
            about: "the hypervisor to boot",
        },
        GUEST_MEMORY,
    ],
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
