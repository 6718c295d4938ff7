#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod cache;
mod digest;
pub mod emulator;
pub mod image;
pub mod init;
mod launch;
pub mod own_kernel;
pub mod package;
pub mod protocol;
pub mod qemu;
pub mod qmp;
pub mod xen;

pub use cache::{Cache, CacheEntry, CacheError, CacheLock, EntryKind};
pub use emulator::{EmulatorMode, MemoryEmulator, PluginError};
pub use image::{
    BootFiles, Contents, ContentsError, Image, ImageError, Kernel, KernelChoice, KernelError,
    ModuleError,
};
pub use launch::{
    Asked, BareKernel, BareOutcome, ConsoleTail, Guest, GuestDirectory, GuestError, GuestRecord,
    HostMemory, HostMemoryError, HostPages, Hypervisor, Launch, Limits, Outcome, Phase, Pins,
    RunningGuest, Runtime, RuntimeError, SessionError, Sink, Task, Times,
};
pub use protocol::{Exit, Job, Stream};
pub use qemu::{
    Accelerator, AcceleratorChoice, AcceleratorError, AcceleratorKind, Qemu, QemuError, QemuNeeds,
    Version,
};
pub use qmp::{PinPlan, PinReport, QmpAddress, QmpClient, QmpError};
