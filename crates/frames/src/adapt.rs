//! The allocator in the shapes that kernels ask for. Each adapter knows which cpu calls by a
//! function of the kernel's.

mod ostd;
mod rmm;
#[cfg(feature = "x86_64")]
#[expect(unsafe_code, reason = "x86_64's FrameAllocator is an unsafe trait")]
mod x86_64;

pub use ostd::OstdFrames;
pub use rmm::{RmmFrames, RmmUsage};
#[cfg(feature = "x86_64")]
pub use x86_64::X86Frames;
