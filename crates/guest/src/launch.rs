//! Runs a guest: arguments, process, console, channel, deadlines, cleanup.

mod arguments;
mod collected;
mod console;
mod failure;
mod guest;
mod host_memory;
mod lines;
mod machine_arguments;
mod process;
mod raw;
mod run;
mod running;
mod runtime;
mod serial;
mod session;
mod shell;
mod watch;

pub use console::ConsoleTail;
pub use failure::GuestError;
pub use guest::{Disk, Guest, Hypervisor, Launch, Limits, Pins};
pub use host_memory::{HostMemory, HostMemoryError, HostPages};
pub use raw::{Patterns, RawEnd, RawOutcome, RawTask};
pub use run::Outcome;
pub use runtime::{GuestDirectory, GuestRecord, RunningGuest, Runtime, RuntimeError};
pub use session::{SessionError, Sink, Task};
pub use watch::{Phase, StopCheck};
