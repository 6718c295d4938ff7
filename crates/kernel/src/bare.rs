//! The bare machine: from the loader's jump to the last result.

mod address;
mod apic;
mod arena;
mod boot;
mod cpus;
mod exit;
mod interrupts;
mod memory;
mod meter;
mod paging;
mod processor;
mod report;
mod serial;
mod time;
mod window;
mod work;
