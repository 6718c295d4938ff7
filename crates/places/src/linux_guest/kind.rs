//! The settings of a study for a Linux guest.

use numalab_study::{BackendKind, SettingKind, SettingSpec};

use crate::common_settings::{
    COUNT_MIGRATIONS, COUNTERS, CPUS, DISTANCES, EMULATE, EMULATE_BANDWIDTH, EMULATE_CACHE,
    EMULATE_LATENCY, EMULATE_LIKE, EMULATE_STAGES, EMULATE_TIERS, LINUX_GUEST, MEMORY,
    WATCH_OUTPUT, WATCH_PAGES, emulates_memory,
};
use crate::guest_launcher::KERNEL;
use crate::{host_side, nested_paging, placement};

pub(crate) const KIND: BackendKind = BackendKind {
    name: LINUX_GUEST,
    about: "a Linux guest in QEMU: factors are knobs of its kernel, knobs of the host (host:KNOB), \
            or placements in it",
    settings: &[
        EMULATE,
        CPUS,
        MEMORY,
        DISTANCES,
        SettingSpec {
            name: "arch",
            kind: SettingKind::OneOf(&["x86_64", "aarch64"]),
            default: "",
            about: "its processor, as for --arch; this machine's by default",
        },
        SettingSpec {
            name: "accel",
            kind: SettingKind::OneOf(&["auto", "kvm", "tcg"]),
            default: "auto",
            about: "the accelerator that runs its instructions",
        },
        ITS_KERNEL,
        SettingSpec {
            name: "fresh",
            kind: SettingKind::Flag,
            default: "false",
            about: "boot a fresh guest for each treatment of each block",
        },
        WITH,
        SettingSpec {
            name: "kernel-arguments",
            kind: SettingKind::List("words"),
            default: "",
            about: "arguments for its kernel's command line",
        },
        EMULATE_TIERS,
        EMULATE_LIKE,
        EMULATE_LATENCY,
        EMULATE_BANDWIDTH,
        EMULATE_CACHE,
        EMULATE_STAGES,
        COUNTERS,
        COUNT_MIGRATIONS,
        WATCH_PAGES,
        WATCH_OUTPUT,
    ],
    is_virtual: emulates_memory,
    levels: &[
        placement::CPUS,
        placement::NODES,
        placement::POLICY,
        placement::RANKS,
        placement::THREADS,
        placement::ENVIRONMENT,
        host_side::GUEST_MEMORY,
        nested_paging::EMULATED_HOST_PAGES,
        ITS_KERNEL,
    ],
    ..BackendKind::PLAIN
};

/// The guest's kernel, for all treatments or for one.
pub(super) const ITS_KERNEL: SettingSpec = SettingSpec {
    name: KERNEL,
    kind: SettingKind::Text("linux, backports, a Linux image or a kernel package (.deb)"),
    default: "linux",
    about: "the kernel to boot",
};
/// The setting for programs and files that its commands need.
pub(super) const WITH: SettingSpec = SettingSpec {
    name: "with",
    kind: SettingKind::List("programs and files"),
    default: "",
    about: "additional programs (packages by name) and files of this machine (by path) for its \
            commands",
};
