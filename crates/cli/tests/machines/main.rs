//! Every machine through every format, and back where there is a way.

mod all;
mod losses;
mod qemu;
#[path = "../schemas/mod.rs"]
mod schemas;
mod tables;
