//! Process 1 of a guest as a separate program, for the tests of this crate; `numalab` contains the
//! same code.
#![forbid(unsafe_code)]

fn main() {
    if numalab_guest_agent::init::is_wanted() {
        numalab_guest_agent::init::main();
    }
    eprintln!("numalab-guest-init: expected to be process 1 of a guest");
    std::process::exit(2);
}
