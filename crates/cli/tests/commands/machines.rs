//! Every machine through every format, and back where the format can be read.

mod all;
mod losses;
mod qemu;
mod tables;
