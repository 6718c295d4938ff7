//! Interleaving weights from measured bandwidth.

mod measured;

use measured::{finished, run_of};
use numalab_record::{
    AccessPattern, BandwidthCell, Cell, CellId, Document, Experiment, IsaName, Metric, Pages,
    StreamKernel, WorkerPlan,
};
use numalab_results::run::{MeasuredWeight, Summary};
use numalab_topology::{Cpu, CpuId, Machine, Node, NodeId};

/// Returns two nodes with memory, and a cpu on the first.
fn machine() -> Machine {
    let node = |id| Node { id: NodeId(id), online: true, memory_bytes: 1, ..Node::default() };
    let cpu = Cpu { id: CpuId(0), online: true, node: Some(NodeId(0)), ..Cpu::default() };
    let mut nodes = vec![node(0), node(1)];
    nodes[0].cpus.insert(CpuId(0));
    Machine { nodes, cpus: vec![cpu], ..Machine::default() }
}

/// Returns a run in which the cpu read at these bandwidths, in GB/s, from these nodes.
fn measured_of(found: &[(u32, f64)]) -> Document {
    let cell = |&(node, gb_per_s): &(u32, f64)| {
        let worker = WorkerPlan { cpu: CpuId(0), node: NodeId(node) };
        let experiment = Experiment::Bandwidth(BandwidthCell {
            workers: vec![worker],
            kernel: StreamKernel::Read,
            pattern: AccessPattern::Sequential,
            size_bytes: 64 << 20,
            pages: Pages::Transparent,
            isa: IsaName("avx2".into()),
        });
        let cell = Cell { id: CellId(format!("read/node{node}")), experiment };
        finished(cell, Metric::Bandwidth, |index| gb_per_s * (1.0 + 0.001 * f64::from(index)))
    };
    Document { run: run_of(machine()), cells: found.iter().map(cell).collect() }
}

fn weights(found: &[(u32, f64)]) -> Vec<u64> {
    let document = measured_of(found);
    let summary = Summary::of(&document);
    summary.bandwidth.weights.iter().map(|found: &MeasuredWeight| found.weight).collect()
}

#[test]
fn pages_are_shared_out_as_the_measured_bandwidth_is() {
    assert_eq!(weights(&[(0, 20.1), (1, 10.0)]), [2, 1]);
    assert_eq!(weights(&[(0, 12.0), (1, 17.9)]), [2, 3]);
}

#[test]
fn there_is_no_advice_where_nodes_are_equal_or_one_was_not_measured() {
    assert!(weights(&[(0, 20.1), (1, 19.9)]).is_empty());
    assert!(weights(&[(0, 20.1)]).is_empty());
}
