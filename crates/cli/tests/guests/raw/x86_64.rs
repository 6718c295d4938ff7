//! The kernel of `integrations/x86_64`, built and booted by `numalab guest run --raw`.

use std::path::Path;
use std::process::Command;

use crate::kernel_lab::{Lab, text};

const TARGET: &str = "x86_64-unknown-none";
/// The end of node 0, without a hole below 4 GiB.
const NODE_1: u64 = 256 << 20;

fn kernel() -> String {
    let integration = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/x86_64");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("x86_64");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-q", "--release", "--locked", "--target", TARGET]);
    cargo.current_dir(&integration).env("CARGO_TARGET_DIR", &target);
    let built = cargo.status().expect("cargo starts");
    assert!(built.success(), "cargo build in {}: {built}", integration.display());
    let program = target.join(TARGET).join("release/numalab-x86_64");
    program.to_str().expect("UTF-8").to_owned()
}

#[test]
fn pages_that_the_x86_64_crate_maps_are_on_the_node_of_their_cpu() {
    let Some(lab) = Lab::open() else { return };
    let raw = ["guest", "run", "--raw", "--accel", "tcg", "--quiet", "--timeout", "60s"];
    let ends = ["--expect", "^numalab-x86_64: done", "--fail", "FAILED"];
    let machine = ["--emulate", "256M,256M", "--cpus", "2", "--kernel", &kernel()];
    let said = text(&lab.numalab(&[&raw[..], &ends, &machine].concat()), 0);
    let mut frames = Vec::new();
    let mut home = None;
    for line in said.lines() {
        if let Some((_, node)) = line.strip_prefix("cpu ").and_then(|cpu| cpu.split_once("node ")) {
            home = Some(node.parse::<u64>().expect(line));
        }
        let Some((_, frame)) = line.split_once(": frame 0x") else { continue };
        let (address, node) = frame.split_once(", node ").expect(line);
        let address = u64::from_str_radix(address, 16).expect(line);
        assert_eq!(Some(u64::from(address >= NODE_1)), home, "{said}");
        assert_eq!(node.parse().ok(), home, "{said}");
        frames.push(address);
    }
    frames.sort_unstable();
    frames.dedup();
    assert_eq!(frames.len(), 8, "{said}");
}
