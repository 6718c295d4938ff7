//! An OSTD kernel on numalab's frame allocator. README.md describes the words of its command line.

#![no_std]
#![deny(unsafe_code, reason = "allowed in `physical` and `words` alone")]

extern crate alloc;

mod allocator;
mod cpus;
mod machine;
mod osdk;
mod physical;
mod recorded;
mod times;
mod words;
mod work;

use alloc::string::String;

use ostd::power::{ExitCode, poweroff};
use ostd::prelude::println;

use crate::words::Words;

/// The reason why a workload failed.
type Failure = String;

#[ostd::main]
fn kernel_main() {
    ostd::boot::smp::register_ap_entry(cpus::serve);
    let done = Words::of_boot().and_then(|words| {
        let plan = machine::made().ok_or("the machine was not planned")?;
        machine::tell(plan, &words);
        work::all(&words, plan)
    });
    match done {
        Ok(()) => {
            println!("numalab-ostd: done");
            poweroff(ExitCode::Success)
        }
        Err(failure) => {
            println!("numalab-ostd: FAILED: {}", failure);
            poweroff(ExitCode::Failure)
        }
    }
}
