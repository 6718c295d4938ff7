//! The machine as its tables describe it, with the memory that OSTD leaves.

use alloc::string::ToString;
use alloc::vec::Vec;

use numalab_kernel::command::Numa;
use numalab_kernel::memory_map::Span;
use numalab_kernel::plan::Plan;
use numalab_kernel::tables;
use ostd::arch::cpu::cpuid::cpuid;
use ostd::mm::Paddr;
use ostd::prelude::println;
use spin::Once;

use crate::physical::Firmware;
use crate::words::{Allocator, Words};
use crate::{Failure, allocator};

static PLAN: Once<&'static Plan> = Once::new();

/// Returns the plan, if it has been made.
pub fn made() -> Option<&'static Plan> {
    PLAN.get().copied()
}

/// Stores the plan from which the allocator was made.
pub fn keep(plan: &'static Plan) {
    PLAN.call_once(|| plan);
}

/// Makes a plan for this free memory.
pub fn make(free: &[Span], numa: &Numa) -> Result<Plan, Failure> {
    let found = tables::find(&Firmware, None);
    Plan::new(&found, free, apic_id(), numa).map_err(|error| error.to_string())
}

/// Returns the APIC id of the cpu that runs this.
pub fn apic_id() -> u32 {
    match cpuid(0xb, 0).filter(|leaf| leaf.ebx & 0xffff != 0) {
        Some(leaf) => leaf.edx,
        None => cpuid(1, 0).map_or(0, |leaf| leaf.ebx >> 24),
    }
}

/// Returns the index in the plan of the cpu that runs this.
pub fn place(plan: &Plan) -> Option<usize> {
    let id = apic_id();
    plan.machine.cpus.iter().position(|cpu| cpu.apic_id == Some(id))
}

/// Returns the index of the node that a frame belongs to. Memory that OSTD kept for itself at first
/// is in none of the plan's ranges; it counts as part of the range below.
pub fn node_of(plan: &Plan, addr: Paddr) -> Option<usize> {
    let frame = addr as u64 / numalab_frames::FRAME_BYTES;
    let after = plan.ranges.partition_point(|range| range.start.number() <= frame);
    let range = plan.ranges.get(after.saturating_sub(1))?;
    Some(usize::from(range.node.0))
}

/// Prints the machine.
pub fn tell(plan: &Plan, words: &Words) {
    let nodes = plan.machine.nodes.len();
    let cpus = ostd::cpu::num_cpus();
    println!("numalab-ostd {}: alloc={}", env!("CARGO_PKG_VERSION"), Allocator::chosen().name());
    println!(
        "machine: {} nodes, {} cpus, {} MiB free",
        nodes,
        cpus,
        plan.machine.memory_bytes() >> 20
    );
    for (place, node) in plan.machine.nodes.iter().enumerate() {
        let order: Vec<u16> = plan.fallback[place].iter().map(|node| node.0).collect();
        let own = plan.cpu_nodes.iter().filter(|home| usize::from(home.0) == place).count();
        let distances = &plan.distances[place * nodes..][..nodes];
        println!(
            "node {}: {} cpus, {} MiB, distances {:?}, order {:?}",
            place,
            own,
            node.memory_bytes >> 20,
            distances,
            order
        );
    }
    for finding in &plan.findings {
        println!("finding: {}: {}: {}", finding.code, finding.place, finding.message);
    }
    println!("seed {}", words.command.seed);
    allocator::tell();
}
