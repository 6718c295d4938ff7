//! numalab's own kernel, which is a file next to the program: finding it, and putting it on an
//! image.

pub mod iso;

use crate::Companion;

/// The kernel's file.
pub static OWN_KERNEL: Companion = Companion {
    what: "numalab's kernel",
    file: "numalab-kernel.elf",
    variable: "NUMALAB_KERNEL",
    built: Some("x86_64-unknown-none/kernel/numalab-kernel"),
    build: "`rustup target add x86_64-unknown-none` and `make build`",
};
