//! Tells the linker of a bare-metal target the address of the kernel.

fn main() {
    println!("cargo:rerun-if-changed=kernel.ld");
    println!("cargo:rerun-if-changed=src/bare/boot.s");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    if variable("CARGO_CFG_TARGET_OS") == "none" {
        let script = format!("-T{}/kernel.ld", variable("CARGO_MANIFEST_DIR"));
        for argument in [&script, "--no-pie", "--build-id=none", "--gc-sections", "--icf=all"] {
            println!("cargo:rustc-link-arg-bins={argument}");
        }
    }
}
