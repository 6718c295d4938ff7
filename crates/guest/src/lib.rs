//! NUMA guests on any machine: QEMU arguments, images, pinning, results.
#![forbid(unsafe_code)]

mod cache;
pub mod image;
pub mod init;
pub mod package;
pub mod protocol;
pub mod qemu;
pub mod tool;

pub use cache::{Cache, CacheEntry, CacheError, CacheLock, EntryKind};
pub use image::{BootFiles, Contents, Image, ImageError, Kernel, KernelChoice, KernelError};
pub use protocol::{Exit, Job, Stream};
pub use qemu::{
    Accelerator, AcceleratorChoice, AcceleratorError, AcceleratorKind, Qemu, QemuError, QemuNeeds,
    Version,
};
