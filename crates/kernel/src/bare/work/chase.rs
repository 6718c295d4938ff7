//! Latency: every cpu on every node's memory, one at a time, with the others asleep.

use alloc::format;

use numalab_frames::Policy;
use numalab_kernel::event::{Event, Window};
use numalab_membench::{Chase, Cycle, LineSize, Pattern};

use super::{Failure, Lab, cpu_index, node_index};
use crate::bare::address::number;
use crate::bare::memory::Run;
use crate::bare::meter::Moment;

const SIZE_BYTES: u64 = 4 << 20;
const LOADS: u64 = 20_000;
/// Number of windows; the first window of each walk warms up, and is reported as such.
const WINDOWS: usize = 9;

/// Builds one cycle on each node and lets every cpu walk it.
#[inline(never)]
pub fn run(lab: &mut Lab) -> Result<(), Failure> {
    let bytes = lab.command.size_bytes.unwrap_or(SIZE_BYTES).next_multiple_of(4096);
    let boot = cpu_index(lab.cpus.boot());
    for place in 0..lab.plan.machine.nodes.len() {
        let node = node_index(place);
        if lab.plan.machine.nodes[place].memory_bytes < bytes {
            continue;
        }
        let mut memory = Run::new(lab.memory(), boot, bytes / 4096, Policy::Exact(node))
            .map_err(|error| format!("{bytes} bytes on node {place}: {error}"))?;
        if memory.node() != node {
            return Err(format!("memory for node {place} is on node {}", memory.node().0));
        }
        let size = memory.lines().len() * 64;
        let cycle = Cycle::new(Pattern::Random, size, LineSize::Bytes64, lab.command.seed);
        let chase = cycle.and_then(|cycle| Chase::build(cycle, memory.lines()));
        let chase = chase.map_err(|error| format!("{error}"))?;
        chase.verify().map_err(|error| format!("{error}"))?;
        for cpu in lab.chosen() {
            walk(lab, &chase, cpu, place, bytes)?;
        }
        memory.free(lab.memory(), boot).map_err(|error| format!("{error}"))?;
    }
    Ok(())
}

/// Takes one cpu's windows on one node's memory.
fn walk(
    lab: &mut Lab,
    chase: &Chase<'_>,
    cpu: usize,
    node: usize,
    bytes: u64,
) -> Result<(), Failure> {
    let loads = lab.command.count.unwrap_or(LOADS);
    let walked = lab.cpus.collect(&[cpu], &|_| {
        let mut walk = chase.walk();
        [(); WINDOWS].map(|()| {
            let start = Moment::now(cpu);
            walk.loads(loads);
            Moment::now(cpu).since(&start)
        })
    });
    for (index, window) in walked.iter().flatten().enumerate() {
        lab.report.send(&Event::Window(Window {
            cpu: number(cpu),
            node: number(node),
            bytes,
            index: number(index),
            warm: index > 0,
            loads,
            ticks: window.ticks,
            own_ns: window.own_ns,
            accesses: window.accesses,
        }));
    }
    Ok(())
}
