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
mod report;
mod serial;
mod time;
mod window;
mod work;

use boot::{enable_vectors, is_real_hardware, place_of};
