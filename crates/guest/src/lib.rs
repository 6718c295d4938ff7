#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]
#![expect(clippy::missing_errors_doc, reason = "error types that list what can fail")]

mod board;
mod boot;
pub mod emulator;
mod launch;
pub mod program;
pub mod qemu;
pub mod qmp;
pub mod xen;

pub use board::BoardError;
pub use boot::Boot;
pub use emulator::{EmulatorMode, EmulatorStart, MemoryEmulator};
pub use launch::{
    ConsoleTail, Disk, Guest, GuestDirectory, GuestError, GuestRecord, HostMemory, HostMemoryError,
    HostPages, Hypervisor, Launch, Limits, Outcome, Patterns, Phase, Pins, RawEnd, RawOutcome,
    RawTask, RunningGuest, Runtime, RuntimeError, SessionError, Sink, StopCheck, Task,
};
pub use qemu::{
    Accelerator, AcceleratorChoice, AcceleratorError, AcceleratorKind, Qemu, QemuError, QemuHazard,
    QemuNeeds, Version,
};
pub use qmp::{PinPlan, PinReport, QmpAddress, QmpClient, QmpError};
