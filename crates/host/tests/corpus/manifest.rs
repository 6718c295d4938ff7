//! The corpus's own table of its trees.

use std::collections::BTreeSet;

use numalab_topology::Machine;

/// One line of the table.
pub struct Entry {
    pub file: String,
    pub root: String,
    pub expected: Vec<String>,
    nodes: usize,
    cpus: usize,
    gibibytes: f64,
    distances: BTreeSet<u8>,
}

/// Returns the lines that are tarballs.
pub fn entries(table: &str) -> Vec<Entry> {
    let lines = table.lines().skip(1);
    lines
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(|fields| fields[0].contains(".tar."))
        .map(|fields| Entry {
            file: fields[0].to_owned(),
            root: fields[1].to_owned(),
            nodes: fields[2].parse().unwrap(),
            cpus: fields[3].parse().unwrap(),
            gibibytes: fields[4].parse().unwrap(),
            distances: fields[5].split_whitespace().map(|value| value.parse().unwrap()).collect(),
            expected: fields[8]
                .split(';')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
        })
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "compared to a tenth")]
pub fn gibibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

impl Entry {
    /// Returns the differences between the machine and the table.
    pub fn compare(&self, machine: &Machine) -> Vec<String> {
        let mut faults = Vec::new();
        let mut check = |what: &str, found: String, expected: String| {
            if found != expected {
                faults.push(format!("{}: {what} {found}, manifest {expected}", self.file));
            }
        };
        // For a tree without node directories the table has 0 nodes and no memory.
        let nodes = self.nodes.max(1);
        check("nodes", machine.nodes.len().to_string(), nodes.to_string());
        check("cpus", machine.cpus.len().to_string(), self.cpus.to_string());
        if self.gibibytes > 0.0 {
            let found = gibibytes(machine.memory_bytes());
            check("GiB", format!("{found:.1}"), format!("{:.1}", self.gibibytes));
        }
        if !self.distances.is_empty() {
            let found: BTreeSet<u8> = machine.distances.values().into_iter().collect();
            check("distances", format!("{found:?}"), format!("{:?}", self.distances));
        }
        faults
    }
}
