//! From tables and free memory to the machine that the frame allocator serves.

use alloc::vec::Vec;

use numalab_frames::{Frame, MemoryRange, NodeIndex, PC_ZONE_LIMITS, RangeState};
use numalab_topology::{
    Cpu, CpuId, EmulatedNode, EmulatedNodes, EmulationError, EmulationSpec, Finding,
    LOCAL_DISTANCE, Machine, MemoryKind, Node, NodeId, REMOTE_DISTANCE, Severity, order,
};

use crate::command::Numa;
use crate::memory_map::Span;
use crate::tables::FoundTables;

/// The APIC id that addresses all cpus (Intel SDM volume 3, 11.12.9).
const EVERY_CPU: u32 = u32::MAX;

/// The machine as the kernel sees it, and its description for the frame allocator.
#[derive(Debug, Default)]
pub struct Plan {
    /// Nodes with their initially free memory, and the cpus that can be started.
    pub machine: Machine,
    /// The free memory by address.
    pub ranges: Vec<MemoryRange>,
    pub cpu_nodes: Vec<NodeIndex>,
    /// For each node all nodes, nearest first, starting with itself.
    pub fallback: Vec<Vec<NodeIndex>>,
    /// The distances, row by row; unknown ones are 10 and 20.
    pub distances: Vec<u8>,
    /// Unusual facts, and their consequences.
    pub findings: Vec<Finding>,
}

impl Plan {
    /// Creates the plan for a machine with these tables and this free memory; `boot_apic_id` is the
    /// running cpu.
    ///
    /// # Errors
    /// [`EmulationError`] if the requested nodes cannot be made of it.
    pub fn new(
        found: &FoundTables<'_>,
        free: &[Span],
        boot_apic_id: u32,
        numa: &Numa,
    ) -> Result<Self, EmulationError> {
        let mut findings = found.findings.clone();
        let mut machine = sound_machine(found, &mut findings);
        give_cpus(&mut machine, boot_apic_id, &mut findings);
        give_memory(&mut machine, free, &mut findings);
        let machine = match numa {
            Numa::On => machine,
            Numa::Off => flat(machine),
            Numa::Equal(nodes) => emulate(EmulatedNodes::Equal(*nodes), &machine)?,
            Numa::Sizes(sizes) => {
                let node = |&memory_bytes: &u64| EmulatedNode { memory_bytes, cpus: None };
                emulate(EmulatedNodes::Listed(sizes.iter().map(node).collect()), &machine)?
            }
        };
        Ok(Self::of_machine(machine, findings))
    }

    /// Returns the orders of nodes, as the frame allocator borrows them.
    pub fn fallback_slices(&self) -> Vec<&[NodeIndex]> {
        self.fallback.iter().map(Vec::as_slice).collect()
    }

    /// Returns the description for the frame allocator, with the [orders of
    /// nodes](Self::fallback_slices).
    pub fn served<'p>(&'p self, fallback: &'p [&'p [NodeIndex]]) -> numalab_frames::Machine<'p> {
        numalab_frames::Machine {
            ranges: &self.ranges,
            zone_limits: &PC_ZONE_LIMITS,
            cpus: &self.cpu_nodes,
            fallback,
        }
    }

    fn of_machine(machine: Machine, findings: Vec<Finding>) -> Self {
        let index = |id: NodeId| node_index(machine.node_index(id).unwrap_or_default());
        let range = |range: &numalab_topology::MemoryRange| MemoryRange {
            start: Frame::new(range.base / numalab_frames::FRAME_BYTES),
            frames: range.length_bytes / numalab_frames::FRAME_BYTES,
            node: index(range.node),
            state: RangeState::Online,
        };
        let mut ranges: Vec<MemoryRange> = machine.ranges.iter().map(range).collect();
        order::by_key(&mut ranges, |range| range.start);
        let nodes = machine.nodes.len();
        let distance = |from: usize, to: usize| {
            let assumed = if from == to { LOCAL_DISTANCE } else { REMOTE_DISTANCE };
            machine.distances.get(from, to).unwrap_or(assumed)
        };
        let distances =
            (0..nodes * nodes).map(|place| distance(place / nodes, place % nodes)).collect();
        let cpu_nodes = machine.cpus.iter().map(|cpu| cpu.node.map_or(NodeIndex(0), index));
        Self {
            cpu_nodes: cpu_nodes.collect(),
            fallback: fallback(&machine),
            ranges,
            distances,
            findings,
            machine,
        }
    }
}

/// Returns all nodes for each node: those with memory in the topology's order, then the others.
fn fallback(machine: &Machine) -> Vec<Vec<NodeIndex>> {
    let orders = machine.fallback_orders();
    let nodes = machine.nodes.len();
    let row = |own: usize| {
        let mut row = alloc::vec![node_index(own)];
        let id = machine.nodes[own].id;
        let order = orders.iter().find(|order| order.node == id).map(|order| &order.order[..]);
        let nearest = order.unwrap_or_default().iter().filter_map(|&id| machine.node_index(id));
        let all = nearest.chain(0..nodes).map(node_index);
        for node in all {
            if !row.contains(&node) {
                row.push(node);
            }
        }
        row
    };
    (0..nodes).map(row).collect()
}

/// Returns the tables' machine without implausible parts.
fn sound_machine(found: &FoundTables<'_>, findings: &mut Vec<Finding>) -> Machine {
    // `tables::find` has removed the tables with errors.
    let mut machine = Machine::from_tables(&found.tables);
    if machine.nodes.is_empty() {
        if found.tables.srat.is_none() {
            say(findings, "flat", "SRAT", "none is usable: the machine is treated as one node");
        }
        machine = flat(machine);
    }
    machine
}

fn flat(machine: Machine) -> Machine {
    let cpus: Vec<Cpu> =
        machine.cpus.into_iter().map(|cpu| Cpu { node: Some(NodeId(0)), ..cpu }).collect();
    let node = Node {
        id: NodeId(0),
        online: true,
        cpus: cpus.iter().map(|cpu| cpu.id).collect(),
        memory_bytes: machine.nodes.iter().map(|node| node.memory_bytes).sum(),
        ..Node::default()
    };
    let ranges = machine.ranges.into_iter();
    Machine {
        nodes: [node].into(),
        cpus,
        distances: numalab_topology::Distances::uniform(1, LOCAL_DISTANCE),
        ranges: ranges
            .map(|range| numalab_topology::MemoryRange { node: NodeId(0), ..range })
            .collect(),
        ..Machine::default()
    }
}

fn emulate(nodes: EmulatedNodes, base: &Machine) -> Result<Machine, EmulationError> {
    EmulationSpec::new(nodes).emulate(base)
}

/// Keeps the cpus that can be started, and gives each a node.
fn give_cpus(machine: &mut Machine, boot_apic_id: u32, findings: &mut Vec<Finding>) {
    machine.cpus.retain(|cpu| cpu.online && cpu.apic_id.is_some());
    // A signal to this id would reset every cpu, the running one included.
    if machine.cpus.extract_if(.., |cpu| cpu.apic_id == Some(EVERY_CPU)).count() > 0 {
        let place = alloc::format!("cpu with APIC id {EVERY_CPU}");
        say(findings, "cpu-broadcast-id", &place, "its id means every cpu: it is not started");
    }
    if !machine.cpus.iter().any(|cpu| cpu.apic_id == Some(boot_apic_id)) {
        if !machine.cpus.is_empty() {
            let place = alloc::format!("cpu with APIC id {boot_apic_id}");
            say(findings, "boot-cpu-unlisted", &place, "is running, but not in any table");
        }
        let cpu = Cpu { online: true, apic_id: Some(boot_apic_id), ..Cpu::default() };
        machine.cpus.insert(0, cpu);
    }
    let first = machine.nodes.first().map_or(NodeId(0), |node| node.id);
    for (number, cpu) in (0..).zip(&mut machine.cpus) {
        cpu.id = CpuId(number);
        if cpu.node.is_none() {
            cpu.node = Some(first);
            if machine.nodes.len() > 1 {
                let place = alloc::format!("cpu {number}");
                say(
                    findings,
                    "cpu-without-node",
                    &place,
                    "no table has its node: the first node is used",
                );
            }
        }
    }
    for node in &mut machine.nodes {
        let own = machine.cpus.iter().filter(|cpu| cpu.node == Some(node.id));
        node.cpus = own.map(|cpu| cpu.id).collect();
    }
}

/// Replaces the tables' ranges by the free memory in them.
fn give_memory(machine: &mut Machine, free: &[Span], findings: &mut Vec<Finding>) {
    let mut given = Vec::new();
    let mut left: Vec<Span> = free.to_vec();
    for range in &machine.ranges {
        let within = Span::of(range.base, range.length_bytes);
        let mut rest = Vec::new();
        for span in left {
            let common = span.common(&within).frames();
            if common.bytes() == 0 {
                rest.push(span);
                continue;
            }
            given.push(range_of_node(common, range.node));
            rest.extend([
                Span { start: span.start, end: common.start },
                Span { start: common.end, end: span.end },
            ]);
        }
        left = rest.into_iter().map(|span| span.frames()).filter(|span| span.bytes() > 0).collect();
    }
    let first = machine.nodes.first().map_or(NodeId(0), |node| node.id);
    let unlisted: u64 = left.iter().map(Span::bytes).sum();
    if unlisted > 0 && !machine.ranges.is_empty() {
        let place = alloc::format!("{} KiB of memory", unlisted >> 10);
        say(
            findings,
            "memory-without-node",
            &place,
            "no table has its node: the first node is used",
        );
    }
    given.extend(left.into_iter().map(|span| range_of_node(span, first)));
    order::by_key(&mut given, |range| range.base);
    for node in &mut machine.nodes {
        let own = given.iter().filter(|range| range.node == node.id);
        node.memory_bytes = own.map(|range| range.length_bytes).sum();
        node.online = true;
    }
    machine.ranges = given;
}

fn range_of_node(span: Span, node: NodeId) -> numalab_topology::MemoryRange {
    numalab_topology::MemoryRange {
        base: span.start,
        length_bytes: span.bytes(),
        node,
        hot_pluggable: false,
        kind: MemoryKind::Ordinary,
    }
}

/// Converts a node's index to the allocator's type; `MAX_NODES` bounds it.
fn node_index(place: usize) -> NodeIndex {
    NodeIndex(u16::try_from(place).unwrap_or(u16::MAX))
}

fn say(findings: &mut Vec<Finding>, code: &str, place: &str, message: &str) {
    findings.push(Finding::new(Severity::Warning, code, place, message));
}
