//! The machine description that the memory emulator reads (`numalab-emulator-machine/1`, QEMU
//! plugin `libnumalab_emulator.so`, argument `machine=FILE`): the node of every physical address
//! and of every vCPU of a QEMU guest, and the cost of an access. It fits the guest that
//! [`crate::qemu::write`] makes of the same machine.

mod costs;
mod file;
mod models;
mod text;

use numalab_memory_model::address::{AddressRange, q35_cxl_windows, q35_ranges, virt_ranges};
pub use numalab_memory_model::arguments::{Alternative, MOST_ALTERNATIVES, Policy};
pub use numalab_memory_model::curve::Curve;
pub use numalab_memory_model::machine::{
    CacheLevel, Machine as EmulatedMachine, Scope as CacheScope, Stage,
};
use numalab_memory_model::machine::{MachineError, Node as EmulatedNode, SCHEMA};
pub use numalab_memory_model::space::Placement as PagePlacement;
use numalab_topology::{Findings, Machine};

pub use costs::{GivenCosts, MemoryCosts};
pub use models::{BandwidthModel, LatencyModel};
pub use text::{
    CostTextError, format_bandwidth, format_caches, format_latency, format_stages, parse_bandwidth,
    parse_caches, parse_latency, parse_stages,
};

use crate::error::WriteError;
use crate::guest::Guest;

const FORMAT: &str = "the memory emulator";
const MIB: u64 = 1 << 20;

/// Describes the guest that QEMU's `q35` makes of this machine, with these costs.
///
/// # Errors
/// [`WriteError::Unknown`] without nodes, cpus or memory, or if the costs depend on latencies or
/// bandwidths that the machine does not have; [`WriteError::Inexpressible`] for more memory than
/// QEMU lays out in one piece, for more than 255 cpus or 16 nodes, and for a list with another
/// length than the number of nodes.
pub fn describe(machine: &Machine, costs: &MemoryCosts) -> Result<EmulatedMachine, WriteError> {
    let guest = Guest::of(FORMAT, machine, &mut Findings::default())?;
    let ranges = ranges(&guest).ok_or_else(|| WriteError::Inexpressible {
        format: FORMAT,
        what: format!("{} MiB of memory, which QEMU lays out differently", guest.memory_mib()),
    })?;
    let nodes = (0..).zip(ranges).map(|(id, ranges)| EmulatedNode { id, ranges });
    let group = |cpu: &crate::guest::GuestCpu| cpu.package * guest.shape.l3_groups + cpu.l3_group;
    let (latency_ns, store_latency_ns) = costs::latencies(&guest, costs.latency)?;
    let (node_bandwidth_mb_s, link_bandwidth_mb_s) = costs::bandwidths(&guest, &costs.bandwidth)?;
    let figures = |row: Vec<u64>| row.into_iter().map(|mb_s| mb_s as f64).collect::<Vec<_>>();
    let described = EmulatedMachine {
        schema: SCHEMA.to_owned(),
        nodes: nodes.collect(),
        cpus: guest.cpus.iter().map(|cpu| cpu.node).collect(),
        l3_groups: Some(guest.cpus.iter().map(group).collect()),
        latency_ns,
        store_latency_ns,
        node_bandwidth_mb_s: node_bandwidth_mb_s.map(figures),
        link_bandwidth_mb_s: link_bandwidth_mb_s
            .map(|rows| rows.into_iter().map(figures).collect()),
        node_load: None,
        link_load: None,
        core: None,
        tlb: None,
        other_page_ns: 0.0,
        faults: None,
        calls: None,
        transfers: None,
        caches: costs.caches.clone(),
    };
    let described = costs.stages.iter().fold(described, |machine, &stage| machine.with(stage));
    checked(described)
}

/// Moves the memory to the addresses of QEMU's `virt` machine of aarch64.
///
/// # Errors
/// [`WriteError::Inexpressible`] for more memory than there are addresses.
pub fn on_virt(mut machine: EmulatedMachine) -> Result<EmulatedMachine, WriteError> {
    let bytes = |node: &EmulatedNode| node.ranges.iter().map(|(start, end)| end - start).sum();
    let bytes: Vec<u64> = machine.nodes.iter().map(bytes).collect();
    let ranges = virt_ranges(&bytes).ok_or_else(|| WriteError::Inexpressible {
        format: FORMAT,
        what: "memory beyond the 64-bit address space".to_owned(),
    })?;
    for (node, ranges) in machine.nodes.iter_mut().zip(ranges) {
        node.ranges = ranges;
    }
    checked(machine)
}

/// Returns QEMU's addresses of each node's memory; that of CXL devices comes after the machine's
/// own.
fn ranges(guest: &Guest) -> Option<Vec<Vec<AddressRange>>> {
    let bytes = |cxl: bool| {
        let of = guest.nodes.iter().filter(move |node| node.cxl == cxl);
        of.map(|node| node.memory_mib * MIB).collect::<Vec<u64>>()
    };
    let own = bytes(false);
    let windows = q35_cxl_windows(own.iter().sum(), &bytes(true))?;
    Some(q35_ranges(&own)?.into_iter().chain(windows.into_iter().map(|one| vec![one])).collect())
}

/// Returns the description if it is consistent.
fn checked(described: EmulatedMachine) -> Result<EmulatedMachine, WriteError> {
    let refused =
        |error: MachineError| WriteError::Inexpressible { format: FORMAT, what: error.to_string() };
    described.check().map_err(refused).map(|()| described)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_topology::{AccessAttributes, Cpu, CpuId, Distances, Node, NodeId};

    /// Returns node 0 with two cpus, node 1 with one, node 2 with none.
    fn machine() -> Machine {
        let node = |id: u32, cpus: &str| Node {
            id: NodeId(id),
            online: true,
            memory_bytes: 1 << 30,
            cpus: cpus.parse().unwrap(),
            ..Node::default()
        };
        let cpu = |id: u32, node: u32| Cpu {
            id: CpuId(id),
            online: true,
            node: Some(NodeId(node)),
            ..Cpu::default()
        };
        let rows = [[10, 20, 40], [20, 10, 30], [40, 30, 10]];
        let rows: Vec<Vec<u8>> = rows.iter().map(|row| row.to_vec()).collect();
        Machine {
            nodes: vec![node(0, "0-1"), node(1, "2"), node(2, "")],
            cpus: vec![cpu(0, 0), cpu(1, 0), cpu(2, 1)],
            distances: Distances::from_rows(&rows).unwrap(),
            ..Machine::default()
        }
    }

    fn with_latencies(pairs: &[(u32, u32, u64)]) -> Machine {
        let access = |&(initiator, target, ns): &(u32, u32, u64)| AccessAttributes {
            initiator: NodeId(initiator),
            target: NodeId(target),
            read_latency_ps: Some(ns * 1000),
            write_latency_ps: Some(ns * 2000),
            read_bandwidth_mb_per_s: Some(ns),
            ..AccessAttributes::default()
        };
        Machine { access: pairs.iter().map(access).collect(), ..machine() }
    }

    fn costs(latency: LatencyModel) -> MemoryCosts {
        MemoryCosts { latency, ..MemoryCosts::default() }
    }

    #[test]
    fn distances_become_latencies_relative_to_the_local_one() {
        let described = describe(&machine(), &costs(LatencyModel::Distance { local_ns: 80.0 }));
        let json = serde_json::to_value(described.unwrap()).unwrap();
        let expected = serde_json::json!({
            "schema": "numalab-emulator-machine/1",
            "nodes": [
                {"id": 0, "ranges": [[0, 1 << 30]]},
                {"id": 1, "ranges": [[1 << 30, 1_u64 << 31]]},
                {"id": 2, "ranges": [[1_u64 << 32, 5_u64 << 30]]},
            ],
            "cpus": [0, 0, 1],
            "l3_groups": [0, 0, 0],
            "latency_ns": [[80.0, 160.0, 320.0], [160.0, 80.0, 240.0], [320.0, 240.0, 80.0]],
            "caches": [],
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn on_a_virt_machine_the_same_nodes_follow_each_other_without_a_hole() {
        let plain = describe(&machine(), &costs(LatencyModel::Flat { ns: 90.0 })).unwrap();
        let moved = on_virt(plain.clone()).unwrap();
        let ranges: Vec<_> = moved.nodes.iter().map(|node| node.ranges.clone()).collect();
        let gib = |from: u64| vec![(from << 30, (from + 1) << 30)];
        assert_eq!(ranges, [gib(1), gib(2), gib(3)]);
        assert_eq!(moved.latency_ns, plain.latency_ns);
    }

    fn equal_distances(nodes: u8) -> Distances {
        let row = |from| (0..nodes).map(|to| if from == to { 10 } else { 20 }).collect();
        let rows: Vec<Vec<u8>> = (0..nodes).map(row).collect();
        Distances::from_rows(&rows).unwrap()
    }

    #[test]
    fn more_cpus_or_nodes_than_the_emulator_has_are_refused() {
        let mut many = machine();
        let node = many.nodes[2].clone();
        many.nodes.extend((3..17).map(|id| Node { id: NodeId(id), ..node.clone() }));
        many.distances = equal_distances(17);
        let error = describe(&many, &MemoryCosts::default()).unwrap_err().to_string();
        assert!(error.contains("17 nodes, expected 1 to 16"), "{error}");
        many.nodes.pop();
        many.distances = equal_distances(16);
        assert!(describe(&many, &MemoryCosts::default()).is_ok());
    }

    #[test]
    fn a_flat_machine_costs_the_same_everywhere() {
        let described = describe(&machine(), &costs(LatencyModel::Flat { ns: 90.0 })).unwrap();
        assert!(described.latency_ns.iter().flatten().all(|ns| *ns == 90.0));
    }

    #[test]
    fn latencies_of_the_firmware_need_every_pair_that_occurs() {
        let all = [(0, 0, 80), (0, 1, 140), (0, 2, 300), (1, 0, 140), (1, 1, 80), (1, 2, 200)];
        let described = describe(&with_latencies(&all), &costs(LatencyModel::Firmware)).unwrap();
        assert_eq!(described.latency_ns[..2], [[80.0, 140.0, 300.0], [140.0, 80.0, 200.0]]);
        assert_eq!(described.store_latency_ns.unwrap()[1], [280.0, 160.0, 400.0]);
        let error = describe(&with_latencies(&all[..5]), &costs(LatencyModel::Firmware));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("from node 1 to node 2"), "{error}");
    }

    #[test]
    fn with_load_a_limit_is_the_end_of_a_curve() {
        let bandwidth = BandwidthModel::Nodes(vec![5000, 0, 5000]);
        let costs = MemoryCosts { bandwidth, stages: vec![Stage::Load], ..MemoryCosts::default() };
        let described = describe(&machine(), &costs).unwrap();
        assert_eq!(described.node_bandwidth_mb_s, None);
        let nodes = described.node_load.unwrap();
        assert!(nodes[1].is_empty());
        let last = nodes[0][0].points.last().unwrap();
        assert!((last.0 - 5000.0).abs() < 1e-6, "{last:?}");
        assert!((nodes[0][0].points[0].1 - 100.0).abs() < 1e-6, "local memory without load");
    }

    #[test]
    fn bandwidth_is_of_nodes_of_links_or_of_the_firmware() {
        let with = |bandwidth| MemoryCosts { bandwidth, ..MemoryCosts::default() };
        let described = |bandwidth| describe(&machine(), &with(bandwidth));
        let each = described(BandwidthModel::Nodes(vec![5000])).unwrap();
        assert_eq!(each.node_bandwidth_mb_s, Some(vec![5000.0; 3]));
        let listed = described(BandwidthModel::Nodes(vec![1, 0, 3])).unwrap();
        assert_eq!(listed.node_bandwidth_mb_s, Some(vec![1.0, 0.0, 3.0]));
        let error = described(BandwidthModel::Nodes(vec![1, 2])).unwrap_err().to_string();
        assert!(error.contains("2 bandwidths for 3 nodes"), "{error}");
        let links = BandwidthModel::Links(vec![vec![0; 3]; 2]);
        assert!(described(links).unwrap_err().to_string().contains("2 rows"));
        let all = [(0, 0, 80), (0, 1, 140), (0, 2, 300), (1, 0, 140), (1, 1, 80), (1, 2, 200)];
        let firmware = describe(&with_latencies(&all), &with(BandwidthModel::Firmware)).unwrap();
        assert_eq!(firmware.link_bandwidth_mb_s.unwrap()[0], [80.0, 140.0, 300.0]);
    }
}
