//! The settings of a study for a Linux guest.

use numalab_image::Architecture;
use numalab_study::BackendKind;

use crate::common_settings::{
    COUNT_MIGRATIONS, COUNTERS, CPUS, DISTANCES, EMULATE, EMULATE_BANDWIDTH, EMULATE_CACHE,
    EMULATE_LATENCY, EMULATE_LIKE, EMULATE_STAGES, EMULATE_TIERS, LINUX_GUEST, MEMORY,
    WATCH_OUTPUT, WATCH_PAGES, emulates_memory, settings,
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
        ARCH,
        ACCEL,
        ITS_KERNEL,
        FRESH,
        WITH,
        KERNEL_ARGUMENTS,
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

settings! {
    ARCH = "arch", OneOf(&Architecture::NAMES), "",
        "its processor, as for --arch; this machine's by default";
    ACCEL = "accel", OneOf(&["auto", "kvm", "tcg"]), "auto",
        "the accelerator that runs its instructions";
    FRESH = "fresh", Flag, "false", "boot a fresh guest for each treatment of each block";
    KERNEL_ARGUMENTS = "kernel-arguments", List("words"), "",
        "arguments for its kernel's command line";
    /// The guest's kernel, for all treatments or for one.
    pub(super) ITS_KERNEL = KERNEL,
        Text("linux, backports, a Linux image or a kernel package (.deb)"), "linux",
        "the kernel to boot";
    /// The setting for programs and files that the guest's commands need.
    pub(super) WITH = "with", List("programs and files"), "",
        "additional programs (packages by name) and files of this machine (by path) for its \
         commands";
}
