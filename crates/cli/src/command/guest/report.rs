//! Messages while a guest runs and when it has ended, also about pinned threads.

use std::io::{self, Write};
use std::process::ExitCode;

use numalab_formats::size::format_rounded;
use numalab_guest::qmp::MemoryProof;
use numalab_guest::{Outcome, PinReport};
use numalab_guest_agent::Stream;
use numalab_host::{note, print_error};

use super::memory_emulator;
use crate::args::BootArgs;
use crate::failure::Failure;
use crate::output;

/// Prints output as it arrives.
pub(super) fn pass_on(stream: Stream, bytes: &[u8]) -> io::Result<()> {
    match stream {
        Stream::Out => {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            out.flush()
        }
        Stream::Err => io::stderr().lock().write_all(bytes),
    }
}

/// Reports what the guest could not do and where it ran, keeps its memory emulator's report, and
/// returns its command's exit code.
pub(super) fn conclude(outcome: &Outcome, args: &BootArgs) -> Result<ExitCode, Failure> {
    outcome.complaints.iter().for_each(|complaint| note(format_args!("guest: {complaint}")));
    if !output::quiet() {
        say_placement(outcome.pins.as_ref(), outcome.memory.as_deref());
    }
    let wanted = args.memory_emulator.emulate_report.as_deref();
    memory_emulator::keep_report(wanted, outcome.memory_report.as_deref())?;
    Ok(ExitCode::from(outcome.exit.code()))
}

/// Reports where the guest's threads and memory were.
pub(super) fn say_placement(pins: Option<&PinReport>, memory: Option<&[MemoryProof]>) {
    if let Some(pins) = pins {
        print_error(pin_lines(pins));
    }
    for proof in memory.into_iter().flatten() {
        print_error(format_args!("{}\n", memory_line(proof)));
    }
}

/// Lists each thread with its cpus, as read back.
pub(super) fn pin_lines(report: &PinReport) -> String {
    let mut text = String::new();
    for pinned in &report.vcpus {
        let node = pinned.vcpu.node.map(|node| format!(" of node {node}")).unwrap_or_default();
        let last = pinned.runs_on.map(|cpu| format!(", last on {cpu}")).unwrap_or_default();
        let (index, thread) = (pinned.vcpu.index, pinned.vcpu.thread);
        text.push_str(&format!(
            "vcpu {index}{node}: thread {thread} on cpus {}{last}\n",
            pinned.affinity
        ));
    }
    for helper in &report.helpers {
        text.push_str(&format!(
            "{}: thread {} on cpus {}\n",
            helper.name, helper.thread, helper.affinity
        ));
    }
    text
}

fn memory_line(proof: &MemoryProof) -> String {
    let by_node = proof.bytes_by_node.iter();
    let present: Vec<String> =
        by_node.map(|(node, bytes)| format!("{} on node {node}", format_rounded(*bytes))).collect();
    let present =
        if present.is_empty() { "nothing touched".to_owned() } else { present.join(", ") };
    let sizes = proof.bytes_by_page.keys().map(|size| format!("{} pages", format_rounded(*size)));
    let how: Vec<String> = proof.policies.iter().cloned().chain(sizes).collect();
    format!(
        "memory {} of {}: {present} ({})",
        proof.block.name,
        format_rounded(proof.block.size_bytes),
        how.join(", ")
    )
}
