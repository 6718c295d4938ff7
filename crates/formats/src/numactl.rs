//! What `numactl --hardware` prints.
//!
//! It carries the online nodes, their online cpus, memory and free memory in whole
//! MiB, and distances; nothing about packages, cores and caches.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use numalab_topology::{CpuSet, Distances, Findings, Machine, NodeId, NodeSet};

use crate::assembly::Assembly;
use crate::error::ReadError;
use crate::feature::{Carried, Feature};
use crate::reading::Reading;

const FORMAT: &str = "numactl --hardware";
const MIB: u64 = 1 << 20;

/// What the text carries.
pub const CARRIED: Carried = Carried {
    format: "numactl --hardware",
    features: &[Feature::Nodes, Feature::Memory, Feature::Distances, Feature::FreeMemory],
    but: &[Feature::PartialDistances, Feature::Bytes],
};

/// Reads the output of `numactl --hardware`. Lines of other kinds are findings.
///
/// # Errors
/// [`ReadError::Syntax`] for a damaged line, [`ReadError::Absent`] if there is no
/// node in the text.
pub fn read(text: &str) -> Result<Reading, ReadError> {
    let mut reader = Reader::default();
    for (index, line) in text.lines().enumerate() {
        reader.line(index + 1, line)?;
    }
    reader.finish()
}

/// Writes a machine as `numactl --hardware` prints it.
#[must_use]
pub fn write(machine: &Machine) -> String {
    let online = machine.online_cpus();
    let nodes: Vec<_> = machine.nodes.iter().filter(|node| node.online).collect();
    let ids: NodeSet = nodes.iter().map(|node| node.id).collect();
    let mut text = format!("available: {} nodes ({})\n", nodes.len(), list(&ids));
    for node in &nodes {
        let id = node.id;
        let _ = write!(text, "node {id} cpus:");
        for cpu in node.cpus.intersection(&online).iter() {
            let _ = write!(text, " {cpu}");
        }
        let _ = writeln!(text, "\nnode {id} size: {} MB", node.memory_bytes / MIB);
        if let Some(free) = node.free_bytes {
            let _ = writeln!(text, "node {id} free: {} MB", free / MIB);
        }
    }
    let known = |from, to| machine.distance(from, to).map(|distance| distance.to_string());
    if ids.iter().any(|from| ids.iter().any(|to| known(from, to).is_none())) {
        text.push_str("No distance information available.\n");
        return text;
    }
    text.push_str("node distances:\nnode ");
    for id in ids.iter() {
        let _ = write!(text, "{id:>3} ");
    }
    text.push('\n');
    for from in ids.iter() {
        let _ = write!(text, "{from:>3}: ");
        for to in ids.iter() {
            let _ = write!(text, "{:>3} ", known(from, to).unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

/// A set as libnuma writes it (`dump_node_list`): two in a row are a range too.
fn list(ids: &NodeSet) -> String {
    let ids: Vec<u32> = ids.iter().map(|id| id.0).collect();
    let ranges = ids.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run[0].to_string(),
    });
    ranges.collect::<Vec<_>>().join(",")
}

#[derive(Default)]
struct Reader {
    assembly: Assembly,
    findings: Findings,
    available: Option<NodeSet>,
    /// The nodes of the columns of the distance table.
    columns: Vec<NodeId>,
    rows: BTreeMap<NodeId, Vec<u8>>,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), ReadError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] | ["node", "distances:"] | ["No", "distance", ..] => {}
            ["available:", _, "nodes" | "node", list] => {
                let list = list.trim_matches(['(', ')']);
                let set = list.parse().map_err(|_| malformed(number, line, "a list of nodes"))?;
                self.available = Some(set);
            }
            ["node", id, "cpus:", cpus @ ..] => self.cpus(number, line, id, cpus)?,
            ["node", id, "size:", size, "MB"] => {
                self.node(number, line, id)?.memory_bytes = mebibytes(number, line, size)?;
            }
            ["node", id, "free:", size, "MB"] => {
                self.node(number, line, id)?.free_bytes = Some(mebibytes(number, line, size)?);
            }
            ["node", ids @ ..] if ids.iter().all(|id| id.parse::<u32>().is_ok()) => {
                let ids = ids.iter().map(|id| node_id(number, line, id));
                self.columns = ids.collect::<Result<_, _>>()?;
            }
            [row, values @ ..] if is_row(row) => self.row(number, line, row, values)?,
            _ => {
                let message = format!("`{line}` is not understood, and ignored");
                self.findings.note("line-unread", place(number), message);
            }
        }
        Ok(())
    }

    fn node(
        &mut self,
        number: usize,
        line: &str,
        id: &str,
    ) -> Result<&mut numalab_topology::Node, ReadError> {
        Ok(self.assembly.node(node_id(number, line, id)?))
    }

    fn cpus(
        &mut self,
        number: usize,
        line: &str,
        id: &str,
        cpus: &[&str],
    ) -> Result<(), ReadError> {
        let node = node_id(number, line, id)?;
        let expected = || malformed(number, line, "cpus such as `0 1 2` or `0-2, 8 (4)`");
        let mut set = CpuSet::new();
        for word in cpus {
            // With --cpu-compress their number follows in parentheses.
            if !word.starts_with('(') {
                let listed = word.trim_end_matches(',').parse().map_err(|_| expected())?;
                set.extend_from(&listed);
            }
        }
        self.assembly.place(&set, node, &place(number), &mut self.findings);
        Ok(())
    }

    fn row(
        &mut self,
        number: usize,
        line: &str,
        row: &str,
        values: &[&str],
    ) -> Result<(), ReadError> {
        let id = node_id(number, line, row.trim_end_matches(':'))?;
        let values: Result<Vec<u8>, _> = values.iter().map(|value| value.parse()).collect();
        let values = values.map_err(|_| malformed(number, line, "distances from 0 to 255"))?;
        if values.len() != self.columns.len() {
            let message = format!(
                "has {} distances under {} nodes; those without a column are ignored",
                values.len(),
                self.columns.len()
            );
            self.findings.warning("distance-row-length", place(number), message);
        }
        self.rows.insert(id, values);
        Ok(())
    }

    fn finish(mut self) -> Result<Reading, ReadError> {
        let ids: NodeSet = self.assembly.node_ids().into_iter().collect();
        if ids.is_empty() {
            let what = "node in the text";
            return Err(ReadError::Absent { format: FORMAT, what });
        }
        if let Some(available) = self.available.take_if(|available| *available != ids) {
            let message = format!("nodes {available} are announced, but {ids} are described");
            self.findings.warning("nodes-announced", "line available".to_owned(), message);
        }
        let mut machine = self.assembly.finish(FORMAT)?;
        if !self.rows.is_empty() {
            machine.distances = Distances::unknown(machine.nodes.len());
        }
        for (from, values) in self.rows {
            for (to, value) in self.columns.iter().zip(values) {
                if let (Some(from), Some(to)) = (machine.node_index(from), machine.node_index(*to))
                {
                    machine.distances.set(from, to, value);
                }
            }
        }
        let findings = self.findings.into_list();
        Ok(Reading { value: machine, findings })
    }
}

fn place(line: usize) -> String {
    format!("line {line}")
}

fn is_row(word: &str) -> bool {
    word.strip_suffix(':').is_some_and(|id| id.parse::<u32>().is_ok())
}

fn malformed(line: usize, found: &str, expected: &str) -> ReadError {
    ReadError::Syntax {
        format: FORMAT,
        line,
        found: found.trim().to_owned(),
        expected: expected.to_owned(),
    }
}

fn small_number(line: usize, found: &str, word: &str, expected: &str) -> Result<u32, ReadError> {
    let number = word.parse().ok().filter(|&number| number <= numalab_topology::MAX_ID);
    number.ok_or_else(|| malformed(line, found, expected))
}

fn node_id(line: usize, found: &str, word: &str) -> Result<NodeId, ReadError> {
    small_number(line, found, word, "a node number").map(NodeId)
}

fn mebibytes(line: usize, found: &str, word: &str) -> Result<u64, ReadError> {
    let bytes = word.parse::<u64>().ok().and_then(|size| size.checked_mul(MIB));
    bytes.ok_or_else(|| malformed(line, found, "a size in MB"))
}
