//! Validation of the distance matrix (ACPI 6.5, section 5.2.17).

use alloc::format;
use alloc::string::String;

use crate::distance::{LOCAL_DISTANCE, UNREACHABLE_DISTANCE};
use crate::finding::Findings;
use crate::machine::Machine;

pub(super) fn check(machine: &Machine, findings: &mut Findings) {
    let (nodes, rows) = (machine.nodes.len(), machine.distances.len());
    if rows == 0 {
        if nodes > 1 {
            let message = format!("no distance is known for {nodes} nodes");
            findings.warning("distance-missing", "distances", message);
        }
        return;
    }
    if rows != nodes {
        let message = format!("the matrix has {rows} rows, expected {nodes}, one for each node");
        findings.error("distance-size", "distances", message);
    }
    for from in 0..rows.min(nodes) {
        for to in 0..rows.min(nodes) {
            check_entry(machine, findings, from, to);
        }
    }
    machine.note_unreachable(findings);
}

impl Machine {
    /// Adds one note if there are nodes that cannot reach each other, also for readers that check
    /// nothing else.
    pub fn note_unreachable(&self, findings: &mut Findings) {
        let pairs = || {
            let rows = 0..self.nodes.len();
            let is_cut = |&(from, to): &(usize, usize)| {
                self.distances.get(from, to) == Some(UNREACHABLE_DISTANCE)
            };
            rows.clone().flat_map(move |from| rows.clone().map(move |to| (from, to))).filter(is_cut)
        };
        let Some((from, to)) = pairs().next() else { return };
        let others = match pairs().count() - 1 {
            0 => String::new(),
            more => format!(", like {more} more"),
        };
        let message = format!(
            "is {UNREACHABLE_DISTANCE}{others}, which means unreachable memory, not a distance"
        );
        findings.note("distance-unreachable", place(self, from, to), message);
    }
}

fn check_entry(machine: &Machine, findings: &mut Findings, from: usize, to: usize) {
    let place = || place(machine, from, to);
    let Some(distance) = machine.distances.get(from, to) else {
        findings.warning("distance-missing", place(), "the distance is unknown");
        return;
    };
    if distance == UNREACHABLE_DISTANCE {
        return;
    }
    if distance < LOCAL_DISTANCE {
        let message = format!("is {distance}, expected at least {LOCAL_DISTANCE}");
        findings.error("distance-below-10", place(), message);
    } else if from == to && distance != LOCAL_DISTANCE {
        let message = format!("is {distance}, expected {LOCAL_DISTANCE}, the local distance");
        findings.error("distance-diagonal", place(), message);
    } else if from != to && distance == LOCAL_DISTANCE {
        let message = "is 10, the local distance, although these are two nodes";
        findings.warning("distance-local-remote", place(), message);
    }
    let back = machine.distances.get(to, from);
    if from < to && back.is_some_and(|back| back != distance) {
        let back = back.unwrap_or_default();
        let message = format!("is {distance}, but {back} in the opposite direction");
        findings.warning("distance-asymmetric", place(), message);
    }
}

fn place(machine: &Machine, from: usize, to: usize) -> String {
    format!("node {} to {}", machine.nodes[from].id, machine.nodes[to].id)
}
