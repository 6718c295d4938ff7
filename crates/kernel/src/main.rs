//! The kernel. For a target with an operating system the program only prints a notice.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod bare;

#[cfg(not(target_os = "none"))]
fn main() -> std::process::ExitCode {
    eprintln!(
        "numalab-kernel is a kernel: build it with \
         `cargo build --profile kernel -p numalab-kernel --target x86_64-unknown-none`"
    );
    std::process::ExitCode::from(2)
}
