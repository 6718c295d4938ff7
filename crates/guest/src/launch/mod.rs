//! Runs a guest: arguments, process, console, channel, deadlines, cleanup.

mod arguments;
mod bare;
mod channel;
mod console;
mod failure;
mod guest;
mod host_memory;
mod machine_arguments;
mod process;
mod run;
mod runtime;
mod session;
mod shell;
mod watch;

pub use bare::{BareKernel, BareOutcome};
pub use console::ConsoleTail;
pub use failure::GuestError;
pub use guest::{Guest, Launch, Limits};
pub use host_memory::{HostMemory, HostMemoryError, HostPages};
pub use machine_arguments::MachineError;
pub use run::{Outcome, Times};
pub use runtime::{GuestDirectory, GuestRecord, RunningGuest, Runtime, RuntimeError};
pub use session::{Sink, Task};
pub use watch::Asked;
