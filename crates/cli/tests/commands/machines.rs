//! Every machine through every format, and back where there is a way.

mod all;
mod losses;
mod qemu;
mod tables;
