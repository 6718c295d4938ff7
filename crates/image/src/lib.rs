#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]
#![expect(clippy::missing_errors_doc, reason = "error types that list what can fail")]

mod architecture;
pub mod build;
mod cache;
mod companion;
mod contents;
pub mod elf;
mod kernel;
pub mod libraries;
mod medium;
pub mod modules;
pub mod own_kernel;
pub mod package;
mod supplies;
mod tree;
pub mod vmlinux;

pub use architecture::Architecture;
pub use build::{BootFiles, Image, ImageError};
pub use cache::{Cache, CacheEntry, CacheError, CacheLock, EntryKind};
pub use companion::{Companion, CompanionError};
pub use contents::{CXL_MODULES, Contents, ContentsError};
pub use kernel::{Kernel, KernelChoice, KernelError, with_tiers};
pub use medium::{DiskFormat, Medium, MediumError};
pub use modules::ModuleError;
pub use supplies::Supplies;
