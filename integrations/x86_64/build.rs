//! Passes the linker the address of the kernel.

fn main() {
    println!("cargo:rerun-if-changed=kernel.ld");
    println!("cargo:rerun-if-changed=src/boot.s");
    let directory = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    for argument in [&format!("-T{directory}/kernel.ld"), "--no-pie", "--build-id=none"] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
