//! The allocator behind the interfaces of kernels. Each adapter determines the calling cpu by a
//! function of the kernel.

mod ostd;
mod rmm;
#[cfg(feature = "x86_64")]
#[expect(unsafe_code, reason = "x86_64's FrameAllocator is an unsafe trait")]
mod x86_64;

pub use ostd::OstdFrames;
pub use rmm::{RmmFrames, RmmUsage};
#[cfg(feature = "x86_64")]
pub use x86_64::X86Frames;
