//! What a Linux guest boots: a kernel, and an initramfs made by our own code.

pub mod cpio;
pub mod elf;
pub mod libraries;
pub mod modules;

mod build;
mod contents;
mod kernel;
mod tree;

pub use build::{BootFiles, Image, ImageError};
pub(crate) use build::{Builder, CHANNEL_MODULES};
pub use contents::{Contents, ContentsError};
pub use kernel::{Kernel, KernelChoice, KernelError};
pub use modules::ModuleError;
