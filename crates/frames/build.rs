//! Declares `cfg(loom)`, which replaces the atomics by those of the model checker.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(loom)");
    println!("cargo::rerun-if-changed=build.rs");
}
