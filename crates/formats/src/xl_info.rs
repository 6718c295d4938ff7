//! The output of `xl info -n`: the cpus and nodes of a Xen host, of which dom0's own `/sys` shows only
//! the virtual ones of dom0.
//!
//! It contains the online cpus with core, socket and node, memory and free memory of nodes in whole
//! MiB, and distances, but no caches.

use std::collections::BTreeMap;

use numalab_topology::{CpuId, CpuSet, Distances, Findings, MAX_ID, Node, NodeId, NodeSet};

use crate::assembly::Assembly;
use crate::distance::record;
use crate::error::ReadError;
use crate::pasted;
use crate::reading::Reading;

const FORMAT: &str = "xl info -n";
const MIB: u64 = 1 << 20;
const CPU: &str = "a cpu with its core, socket and node, such as `3: 1 0 0`";
const NODE: &str = "a node with memory, free memory and distances, such as `1: 8192 6789 20,10`";

/// Reads the output of `xl info -n`.
///
/// # Errors
/// [`ReadError::Syntax`] for a damaged line; [`ReadError::Absent`] without the tables of cpus and nodes,
/// which need `-n`; [`ReadError::Cut`] if there are fewer cpus or nodes than the text counts or
/// names; [`ReadError::Row`] if a node has more or fewer distances than there are nodes.
pub fn read(text: &str) -> Result<Reading, ReadError> {
    let mut reader = Reader::default();
    let lines = pasted::lines(text, &mut reader.findings);
    pasted::check_one_machine(FORMAT, &lines)?;
    for (number, line) in lines {
        reader.line(number, &line)?;
    }
    reader.finish()
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Table {
    #[default]
    Other,
    Cpus,
    Nodes,
}

#[derive(Default)]
struct Reader {
    assembly: Assembly,
    findings: Findings,
    table: Table,
    /// The index of each core, by socket and number.
    cores: BTreeMap<(u32, u32), u32>,
    /// The number of threads seen of each core.
    threads: BTreeMap<u32, u32>,
    /// The nodes that cpus are on.
    of_cpus: BTreeMap<NodeId, CpuSet>,
    /// The distances of each node.
    rows: BTreeMap<NodeId, Vec<Option<u8>>>,
    /// The numbers of cpus and of nodes that the text counts.
    counted: [Option<usize>; 2],
    /// The memory of the host, in MiB.
    total_mib: Option<u64>,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), ReadError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let malformed = |expected: &str| ReadError::syntax(FORMAT, number, line, expected);
        match (self.table, words.as_slice()) {
            (_, ["cpu:", "core", "socket", "node"]) if !self.of_cpus.is_empty() => {
                return Err(malformed("one table of cpus: the output of one machine"));
            }
            (_, ["cpu:", "core", "socket", "node"]) => self.table = Table::Cpus,
            (_, ["node:", "memsize", "memfree", "distances"]) => self.table = Table::Nodes,
            (_, ["nr_cpus", ":", count]) => self.counted[0] = count.parse().ok(),
            (_, ["nr_nodes", ":", count]) => self.counted[1] = count.parse().ok(),
            (_, ["total_memory", ":", mib]) => self.total_mib = mib.parse().ok(),
            (Table::Cpus, [id, place @ ..]) if id.ends_with(':') => {
                let cpu = id.trim_end_matches(':').parse().ok();
                let place: Option<Vec<u32>> = place.iter().map(|word| word.parse().ok()).collect();
                let is_new = self.cpu(cpu, place.as_deref()).is_some();
                is_new.then_some(()).ok_or_else(|| malformed(CPU))?;
            }
            (Table::Nodes, [id, size, free, distances @ ..]) if id.ends_with(':') => {
                let id = id.trim_end_matches(':').parse().ok();
                let sizes = size.parse().ok().zip(free.parse().ok());
                let is_new = self.node(id, sizes, &distances.concat()).is_some();
                is_new.then_some(()).ok_or_else(|| malformed(NODE))?;
            }
            (_, []) => {}
            (_, [first, ..]) if first.trim_end_matches(':').parse::<u32>().is_ok() => {
                let expected = if self.table == Table::Nodes { NODE } else { CPU };
                return Err(malformed(expected));
            }
            _ => self.table = Table::Other,
        }
        Ok(())
    }

    /// Adds a cpu; `None` if a number is missing, too large or already used.
    fn cpu(&mut self, id: Option<u32>, place: Option<&[u32]>) -> Option<()> {
        let (id, &[core, socket, node]) = (CpuId(number(id?)?), place?) else { return None };
        let node = NodeId(number(node)?);
        if self.assembly.has_cpu(id) {
            return None;
        }
        let next = u32::try_from(self.cores.len()).ok()?;
        let core = *self.cores.entry((socket, core)).or_insert(next);
        let thread = self.threads.entry(core).or_default();
        let cpu = self.assembly.cpu(id);
        (cpu.package, cpu.core, cpu.thread) = (Some(socket), Some(core), *thread);
        *thread += 1;
        self.of_cpus.entry(node).or_default().insert(id);
        Some(())
    }

    /// Adds a node; `None` if a number is missing, too large or already used.
    fn node(&mut self, id: Option<u32>, mib: Option<(u64, u64)>, distances: &str) -> Option<()> {
        let (id, (size, free)) = (NodeId(number(id?)?), mib?);
        let bytes = |mib: u64| mib.checked_mul(MIB);
        let (memory_bytes, free_bytes) = (bytes(size)?, Some(bytes(free)?));
        // xl prints a number above 255 for a distance that Xen does not know.
        let distance = |word: &str| word.parse::<u32>().ok().map(|far| u8::try_from(far).ok());
        let row: Option<Vec<Option<u8>>> = distances.split(',').map(distance).collect();
        if self.rows.insert(id, row?).is_some() {
            return None;
        }
        let node = self.assembly.node(id);
        *node = Node { memory_bytes, free_bytes, ..node.clone() };
        Some(())
    }

    fn finish(mut self) -> Result<Reading, ReadError> {
        let nodes: NodeSet = self.rows.keys().copied().collect();
        if nodes.is_empty() || self.of_cpus.is_empty() {
            let what = "table `cpu: core socket node` and `node: memsize memfree distances`: print \
                        them with -n";
            return Err(ReadError::Absent { format: FORMAT, what });
        }
        let cpus = self.assembly.cpu_ids().count();
        check_count("cpus", self.counted[0], cpus)?;
        check_count("nodes", self.counted[1], nodes.len())?;
        let of_cpus: NodeSet = self.of_cpus.keys().copied().collect();
        if !of_cpus.is_subset(&nodes) {
            return Err(cut("nodes", of_cpus.to_string(), nodes.to_string()));
        }
        if let Some((node, row)) = self.rows.iter().find(|(_, row)| row.len() != nodes.len()) {
            let (node, distances, columns) = (node.to_string(), row.len(), nodes.len());
            return Err(ReadError::Row { format: FORMAT, node, distances, columns });
        }
        for (node, cpus) in &self.of_cpus {
            self.assembly.place(cpus, *node, "cpu_topology");
        }
        let mut machine = self.assembly.finish(FORMAT)?;
        machine.distances = Distances::unknown(machine.nodes.len());
        for (from, row) in self.rows.values().enumerate() {
            for (to, distance) in row.iter().enumerate() {
                if let Some(distance) = *distance {
                    record(&mut machine.distances, from, to, distance, &mut self.findings);
                }
            }
        }
        machine.note_odd_distances(&mut self.findings);
        machine.note_free_memory(&mut self.findings);
        note_holes(self.total_mib, machine.memory_bytes() / MIB, &mut self.findings);
        Ok(Reading { value: machine, findings: self.findings.into_list() })
    }
}

/// Notes that Xen's sizes of nodes contain the holes below their last address, such as that of
/// devices below 4 GiB.
fn note_holes(total_mib: Option<u64>, spanned_mib: u64, findings: &mut Findings) {
    if let Some(total) = total_mib.filter(|total| *total < spanned_mib) {
        let message = format!(
            "nodes span {spanned_mib} MiB with their holes, but the host has {total} MiB of memory"
        );
        findings.note("memory-holes", "memsize".to_owned(), message);
    }
}

fn number(id: u32) -> Option<u32> {
    Some(id).filter(|&id| id <= MAX_ID)
}

/// Checks that the text lists the number of items that it announces.
fn check_count(what: &'static str, counted: Option<usize>, found: usize) -> Result<(), ReadError> {
    match counted {
        Some(counted) if counted != found => Err(cut(what, counted.to_string(), found.to_string())),
        _ => Ok(()),
    }
}

fn cut(what: &'static str, announced: String, described: String) -> ReadError {
    ReadError::Cut { format: FORMAT, what, announced, described }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "\
host                   : dom0
nr_cpus                : 4
nr_nodes               : 2
cores_per_socket       : 1
cpu_topology           :
cpu:    core    socket     node
  0:       0        0        0
  1:       0        0        0
  2:       0        1        1
  3:       0        1        1
device topology        :
device           node
No device topology data available
numa_info              :
node:    memsize    memfree    distances
   0:      9728       7916      10,20
   1:      8192       6789      20,10
xen_major              : 4
";

    fn error(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn cpus_nodes_and_distances_of_a_xen_host_are_read() {
        let Reading { value: machine, findings } = read(INFO).unwrap();
        assert_eq!(findings, []);
        let nodes: Vec<_> = machine
            .nodes
            .iter()
            .map(|node| (node.cpus.to_string(), node.memory_bytes >> 20))
            .collect();
        assert_eq!(nodes, [("0,1".to_owned(), 9728), ("2,3".to_owned(), 8192)]);
        assert_eq!(machine.nodes[1].free_bytes, Some(6789 << 20));
        assert_eq!(machine.distance(NodeId(0), NodeId(1)), Some(20));
        let threads: Vec<_> =
            machine.cpus.iter().map(|cpu| (cpu.package, cpu.core, cpu.thread)).collect();
        let of = |package, core, thread| (Some(package), Some(core), thread);
        assert_eq!(threads, [of(0, 0, 0), of(0, 0, 1), of(1, 1, 0), of(1, 1, 1)]);
        let quoted: String = INFO.lines().map(|line| format!("> {line}\r\n")).collect();
        assert_eq!(read(&quoted).unwrap().value, machine);
    }

    #[test]
    fn a_part_of_the_output_is_not_taken_for_a_smaller_machine() {
        assert!(error("host : dom0\nnr_cpus : 4\n").contains("print them with -n"));
        let without = |line: &str| INFO.replace(line, "");
        assert!(
            error(&without("  3:       0        1        1\n"))
                .contains("cpus: 4 announced, only 3")
        );
        let said = error(&without("   1:      8192       6789      20,10\n"));
        assert!(said.contains("nodes: 2 announced, only 1"), "{said}");
        let said = error(&INFO.replace("20,10", "20"));
        assert!(said.contains("node 1 has 1 distance under 2 nodes"), "{said}");
        let said = error(&INFO.replace("  3:       0        1        1", "  3:       0        1"));
        assert!(said.contains("line 10: found `3:       0        1`"), "{said}");
        let said = error(&INFO.replace("  3: ", "  2: "));
        assert!(said.contains("line 10"), "{said}");
        let twice = format!("{INFO}{INFO}");
        let said = error(&twice);
        assert!(said.contains("line 24: ") && said.contains("the output of one machine"), "{said}");
    }

    #[test]
    fn sizes_of_nodes_with_holes_are_noted() {
        let of = |total: u32| {
            let total = format!("nr_nodes               : 2\ntotal_memory : {total}");
            let text = INFO.replace("nr_nodes               : 2", &total);
            read(&text).unwrap().findings.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(of(17_920), [""; 0]);
        let said = of(16_382).join("\n");
        assert!(
            said.contains("span 17920 MiB with their holes") && said.contains("16382"),
            "{said}"
        );
    }

    #[test]
    fn a_distance_that_xen_does_not_know_is_unknown() {
        let text = INFO.replace("10,20", "10,4294967295");
        let machine = read(&text).unwrap().value;
        assert_eq!(machine.distance(NodeId(0), NodeId(1)), None);
        assert_eq!(machine.distance(NodeId(1), NodeId(0)), Some(20));
    }
}
