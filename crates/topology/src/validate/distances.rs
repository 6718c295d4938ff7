//! Validation of the distance matrix (ACPI 6.5, section 5.2.17).

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;

use crate::distance::{LOCAL_DISTANCE, UNREACHABLE_DISTANCE};
use crate::finding::Findings;
use crate::id_set::NodeSet;
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
    /// Adds one finding if there are nodes that cannot reach each other, and one if the distances of
    /// two directions differ, for readers that check nothing else.
    pub fn note_odd_distances(&self, findings: &mut Findings) {
        self.note_unreachable(findings);
        let get = |from, to| self.distances.get(from, to);
        let is_odd = |from, to| from < to && get(from, to).zip(get(to, from)).is_some_and(differ);
        if let Some(((from, to), others)) = self.first_pair(is_odd)
            && let Some((there, back)) = get(from, to).zip(get(to, from))
        {
            asymmetric(self, (from, to), (there, back), &others, findings);
        }
    }

    /// Adds a finding if nodes with different cpus are as near to each other as to themselves.
    pub fn note_equally_near(&self, findings: &mut Findings, place: &str, cause: &str) {
        let is_near = |index: &usize| {
            let cpus = &self.nodes[*index].cpus;
            let mut others = (0..self.nodes.len()).filter(|other| {
                let of_other = &self.nodes[*other].cpus;
                !cpus.is_empty() && !of_other.is_empty() && cpus != of_other
            });
            let is_local = |to| self.distances.is_local(*index, to);
            others.any(|other| is_local(*index) && is_local(other))
        };
        let near: NodeSet =
            (0..self.nodes.len()).filter(is_near).map(|index| self.nodes[index].id).collect();
        if !near.is_empty() {
            let message = format!(
                "nodes {near} are at distance {LOCAL_DISTANCE} from each other, like parts of one \
                 node: {cause}"
            );
            findings.note("nodes-equally-near", place.to_owned(), message);
        }
    }

    fn note_unreachable(&self, findings: &mut Findings) {
        let is_cut = |from, to| self.distances.get(from, to) == Some(UNREACHABLE_DISTANCE);
        if let Some(((from, to), others)) = self.first_pair(is_cut) {
            let message = format!(
                "is {UNREACHABLE_DISTANCE}, which means unreachable memory, not a distance{others}"
            );
            findings.note("distance-unreachable", place(self, from, to), message);
        }
    }

    /// Returns the first pair of nodes for which this holds, and words for the number of others.
    fn first_pair(&self, holds: impl Fn(usize, usize) -> bool) -> Option<((usize, usize), String)> {
        let rows = 0..self.nodes.len();
        let pairs = rows.clone().flat_map(|from| rows.clone().map(move |to| (from, to)));
        let mut pairs = pairs.filter(|&(from, to)| holds(from, to));
        let first = pairs.next()?;
        let others = match pairs.count() {
            0 => String::new(),
            1 => "; 1 other pair is like it".to_owned(),
            others => format!("; {others} other pairs are like it"),
        };
        Some((first, others))
    }
}

fn differ((there, back): (u8, u8)) -> bool {
    there != back
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
    let back = machine.distances.get(to, from).filter(|back| from < to && *back != distance);
    if let Some(back) = back {
        asymmetric(machine, (from, to), (distance, back), "", findings);
    }
}

fn asymmetric(
    machine: &Machine,
    (from, to): (usize, usize),
    (there, back): (u8, u8),
    others: &str,
    findings: &mut Findings,
) {
    let message = format!("is {there}, but {back} in the opposite direction{others}");
    findings.warning("distance-asymmetric", place(machine, from, to), message);
}

fn place(machine: &Machine, from: usize, to: usize) -> String {
    format!("node {} to {}", machine.nodes[from].id, machine.nodes[to].id)
}
