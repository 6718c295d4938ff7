//! QEMU accepts the arguments written for every machine.

use std::io::Write as _;
use std::process::{Command, Stdio};

use numalab_formats::qemu;
use numalab_topology::Machine;

use super::all::all;

/// Bytes of memory on every node that has some: the test is about shapes, as this machine has less
/// memory than most.
const NODE_BYTES: u64 = 16 << 20;

/// Returns QEMU's list of nodes, or the reason why QEMU does not start.
fn start(arguments: &[String]) -> Result<String, String> {
    let mut qemu = Command::new("qemu-system-x86_64")
        .args(["-machine", "q35", "-accel", "tcg", "-nodefaults", "-display", "none", "-S"])
        .args(["-monitor", "stdio"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("qemu-system-x86_64: apt-get install qemu-system-x86");
    // A QEMU that refused its arguments closes the pipe.
    let _ = qemu.stdin.take().expect("a pipe").write_all(b"info numa\nquit\n");
    let output = qemu.wait_with_output().expect("it is ours");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

#[test]
fn qemu_starts_with_every_machine_and_shows_its_nodes() {
    let (mut started, mut refused) = (0, Vec::new());
    for (name, machine) in all() {
        let mut machine: Machine = machine.clone();
        for node in &mut machine.nodes {
            node.memory_bytes = if node.memory_bytes > 0 { NODE_BYTES } else { 0 };
        }
        let written = match qemu::write(&machine) {
            Ok(written) => written,
            Err(error) => {
                refused.push(format!("{name}: {error}"));
                continue;
            }
        };
        let shown = match start(&written.output) {
            Ok(shown) => shown,
            Err(said) => {
                let too_large = |code: &str| code.ends_with("-beyond-qemu");
                let noted = written.losses.iter().any(|loss| too_large(&loss.code));
                assert!(noted, "{name}: {said}\n{:?}\n{:?}", written.losses, written.output);
                refused.push(format!("{name}: {}", said.trim()));
                continue;
            }
        };
        let nodes = machine.nodes.iter().filter(|node| node.online).count();
        assert!(shown.contains(&format!("{nodes} nodes")), "{name}: {shown}");
        started += 1;
    }
    eprintln!(
        "QEMU started {started} of {} machines; refused:\n{}",
        all().len(),
        refused.join("\n")
    );
    assert!(started >= 12, "{started} started");
}
