//! The measuring loops: cycles, pointer chases, memory streams and timers.
//!
//! Everything works on memory and synchronisation words which the caller supplies, so that
//! the same loops serve a Linux host and a bare-metal kernel. The crate never starts a
//! thread, opens a file or allocates. x86-64 and aarch64.
//!
//! A latency in brief: plan a [`Cycle`], build it into [`Line`]s as a [`Chase`], and take
//! [`Window`]s of its [`Walk`]. A bandwidth: choose a [`Kernel`], an [`Access`] and an
//! [`Isa`], and let a [`Stream`] make passes.
//!
//! ```
//! use numalab_membench::{Chase, Clock, Cycle, Line, LineSize, Pattern};
//!
//! let epoch = std::time::Instant::now();
//! let clock = Clock::calibrate(|| epoch.elapsed().as_nanos() as u64, 20_000_000)?;
//! let mut memory = vec![Line::ZERO; 1024];
//! let cycle = Cycle::new(Pattern::Random, 64 * 1024, LineSize::Bytes64, 1)?;
//! let chase = Chase::build(cycle, &mut memory)?;
//! let mut walk = chase.walk();
//! walk.window(20_000)?; // the first one warms up
//! println!("{:.2} ns", walk.window(20_000)?.ns_per_load(&clock));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#[cfg(test)]
extern crate std;

#[cfg_attr(target_arch = "x86_64", path = "arch/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "arch/aarch64.rs")]
mod arch;
mod atomic;
mod barrier;
mod c2c;
mod chase;
mod clock;
mod cycle;
mod frequency;
mod isa;
mod line;
mod loaded;
mod page_times;
mod random;
mod stream;
mod window;
mod words;

pub use atomic::AtomicAdds;
pub use barrier::{Aborted, Barrier};
pub use c2c::{C2cError, Ping, Pong, RoundTrips};
pub use chase::{Chase, Walk};
pub use clock::{Clock, ClockError, Stamp, Ticks};
pub use cycle::{BuiltPart, Cycle, CycleError, CyclePart, LineSize, Parts, Pattern};
pub use frequency::{Adds, dependent_adds};
pub use isa::Isa;
pub use line::{Line, MemoryError};
pub use loaded::{Throttle, generate};
pub use page_times::PageTimes;
pub use random::{Random, random_reads, touch};
pub use stream::{Access, Arrays, Kernel, Stream, StreamError};
pub use window::Window;
pub use words::WordChain;
