//! Events in the form of perf's, and machines, for tests.

use numalab_host::perf::{DataSource, MapRecord, Operation, PerfRecord, SampleRecord, ServedBy};
use numalab_topology::{Cpu, CpuId, Machine, Node, NodeId};

/// A number beyond those of real processes, so that the kernel is not queried.
pub(crate) const PROCESS: u32 = 0x7fff_fff0;
/// A second such process.
pub(crate) const CHILD: u32 = 0x7fff_fff1;
/// Address of its heap.
pub(crate) const HEAP: u64 = 0x7f00_0000_0000;
/// Address of its code.
pub(crate) const CODE: u64 = 0x40_0000;
pub(crate) const PAGE: u64 = 4096;

/// Nodes of two cpus, numbered consecutively, and 1 GiB each.
pub(crate) fn machine(nodes: u32) -> Machine {
    let cpu =
        |id: u32| Cpu { id: CpuId(id), online: true, node: Some(NodeId(id / 2)), ..Cpu::default() };
    let node = |id: u32| Node {
        id: NodeId(id),
        online: true,
        cpus: [2 * id, 2 * id + 1].into_iter().map(CpuId).collect(),
        memory_bytes: 1 << 30,
        ..Node::default()
    };
    Machine {
        nodes: (0..nodes).map(node).collect(),
        cpus: (0..2 * nodes).map(cpu).collect(),
        ..Machine::default()
    }
}

/// Returns a mapping of a process: a file, or `//anon`.
pub(crate) fn map(process: u32, start: u64, pages: u64, name: &str) -> PerfRecord {
    let (end, name) = (start + pages * PAGE, name.to_owned());
    PerfRecord::Map(MapRecord { time_ns: 1, process, start, end, offset: 0, name })
}

/// Returns a page fault of a thread on a cpu, on this page of the heap.
pub(crate) fn fault(process: u32, thread: u32, cpu: u32, page: u64) -> PerfRecord {
    PerfRecord::Sample(sampled(process, thread, cpu, page))
}

/// Returns a load with this latency, served by memory.
pub(crate) fn load(process: u32, cpu: u32, page: u64, latency_cycles: u64) -> PerfRecord {
    let access = DataSource { operation: Some(Operation::Load), served_by: ServedBy::Memory };
    let sample = sampled(process, process, cpu, page);
    PerfRecord::Sample(SampleRecord { access: Some(access), latency_cycles, ..sample })
}

/// Returns a store, served by a cache.
pub(crate) fn store(process: u32, cpu: u32, page: u64) -> PerfRecord {
    let access = DataSource { operation: Some(Operation::Store), served_by: ServedBy::Unknown };
    PerfRecord::Sample(SampleRecord {
        access: Some(access),
        ..sampled(process, process, cpu, page)
    })
}

fn sampled(process: u32, thread: u32, cpu: u32, page: u64) -> SampleRecord {
    SampleRecord {
        time_ns: 2_000,
        process,
        thread,
        cpu,
        calls: vec![CODE + 0x10],
        address: HEAP + page * PAGE,
        stack_pointer: None,
        access: None,
        latency_cycles: 0,
    }
}
