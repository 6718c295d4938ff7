//! A program's run time, composed from the times of its threads.

use std::collections::BTreeMap;

use numalab_record::{ProgramMemory, ProgramThread};

use super::Candidate;
use super::machine::MachineCosts;

/// A thread: its node's position, and its busy time in ns.
pub(super) type Busy = (usize, f64);

/// Returns the threads' nodes and times in the profiled run.
pub(super) fn busy_now(program: &ProgramMemory, machine: &MachineCosts) -> Vec<Busy> {
    let busy = |of: &ProgramThread| (node_position(of.cpu_node, machine), of.busy_ns as f64);
    program.threads.iter().map(busy).collect()
}

/// Returns the threads under a candidate that saves each of them `saved_ns`.
pub(super) fn busy_then(
    candidate: &Candidate,
    program: &ProgramMemory,
    machine: &MachineCosts,
    saved_ns: &BTreeMap<u32, f64>,
) -> Vec<Busy> {
    let busy = |of: &ProgramThread| {
        let saved_ns = saved_ns.get(&of.thread).copied().unwrap_or(0.0);
        let home = candidate.home(of.thread, of.cpu_node, machine);
        (node_position(home, machine), (of.busy_ns as f64 - saved_ns).max(0.0))
    };
    program.threads.iter().map(busy).collect()
}

fn node_position(node: u32, machine: &MachineCosts) -> usize {
    machine.position(node).unwrap_or(0)
}

/// Returns `true` if the first thread's time plus that of the others in parallel is within 10 % of
/// the run time.
pub(super) fn is_fork_join(program: &ProgramMemory, machine: &MachineCosts) -> bool {
    let path_ns = path_ns(&busy_now(program, machine), machine);
    (path_ns / (program.elapsed_ns as f64).max(1.0) - 1.0).abs() < 0.1
}

/// Returns the time of the first thread followed by the others in parallel, in ns.
pub(super) fn path_ns(threads: &[Busy], machine: &MachineCosts) -> f64 {
    let Some((first, others)) = threads.split_first() else { return 0.0 };
    first.1 + together_ns(others.iter().copied(), machine)
}

/// Returns the time of parallel threads in ns: that of the longest, or of a node's threads divided
/// among its cpus if that is more.
pub(super) fn together_ns(threads: impl Iterator<Item = Busy>, machine: &MachineCosts) -> f64 {
    let mut of_node = vec![0.0; machine.cpus.len()];
    let mut longest_ns: f64 = 0.0;
    for (node, ns) in threads {
        longest_ns = longest_ns.max(ns);
        if let Some(sum_ns) = of_node.get_mut(node) {
            *sum_ns += ns;
        }
    }
    let nodes = of_node.iter().zip(&machine.cpus);
    nodes.map(|(ns, cpus)| ns / (*cpus).max(1) as f64).fold(longest_ns, f64::max)
}

/// Returns the slowdown, 1 or more, of threads that outnumber their cpus, averaged over the run
/// without the time in which only the first thread runs.
pub(super) fn crowding(threads: &[Busy], cpus: f64, elapsed_ns: f64) -> f64 {
    let busy_ns: f64 = threads.iter().map(|(_, ns)| ns).sum();
    let alone_ns = threads.first().map_or(0.0, |(_, ns)| *ns);
    let together_ns = (elapsed_ns - alone_ns).max(elapsed_ns * 0.01);
    // The first thread may work along with the others to the end, as in OpenMP.
    let threads = ((busy_ns - alone_ns) / together_ns).min(threads.len() as f64);
    (threads / cpus).max(1.0)
}
