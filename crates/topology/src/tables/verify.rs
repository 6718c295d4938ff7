//! Verification that written tables describe the machine.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use numalab_acpi::{AnyTable, Problem, Slot, Tables, check};

use super::bytes::TableBytes;
use super::domains::domain_of;
use crate::finding::{Finding, Severity};
use crate::id::ProximityDomain;
use crate::machine::Machine;
use crate::node::Node;

/// Reads the tables as any reader does: wrong values are errors, unusual ones warnings. Nodes are
/// compared by their cpus and by having memory or not.
pub(super) fn verify(machine: &Machine, bytes: &TableBytes) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut tables = Tables::default();
    let always = [&bytes.srat, &bytes.slit, &bytes.madt];
    for table in always.into_iter().chain(&bytes.hmat) {
        match AnyTable::read(table) {
            Ok(read) => tables.insert(read),
            Err(refusal) => findings.push(finding_of_table(&refusal)),
        }
    }
    let mut scratch = vec![Slot::default(); tables.scratch_slots()];
    // The scratch has the required number of slots, so the check cannot fail.
    let _ = check(&tables, &mut scratch, &mut |finding| {
        if finding.severity() >= Severity::Warning {
            findings.push(finding_of_table(&finding));
        }
    });
    let read = Machine::from_tables(&tables);
    findings.extend(machine.nodes.iter().flat_map(|node| compare(machine, node, &read)));
    findings
}

fn finding_of_table(finding: &numalab_acpi::Finding) -> Finding {
    let fatal =
        finding.severity() == Severity::Error || matches!(finding.problem, Problem::NoMemory);
    Finding {
        severity: if fatal { Severity::Error } else { Severity::Warning },
        code: "table".to_string(),
        place: format!("{} at {:#06x}", finding.table, finding.offset),
        message: finding.problem.to_string(),
    }
}

/// Returns findings about the parts of a node that the tables lose.
fn compare(machine: &Machine, node: &Node, read: &Machine) -> Vec<Finding> {
    let domain = domain_of(node);
    let of_domain = |other: &&Node| other.proximity_domain == Some(ProximityDomain(domain));
    let found = read.nodes.iter().find(of_domain);
    let finding = |severity, code: &str, message: String| Finding {
        severity,
        code: code.to_string(),
        place: format!("node {}", node.id),
        message,
    };
    if node.memory_bytes == 0 && node.cpus.is_empty() {
        let message = "has neither cpus nor memory, so tables cannot represent it".to_string();
        return vec![finding(Severity::Note, "node-lost", message)];
    }
    let sharing = machine.nodes.iter().filter(|other| domain_of(other) == domain).count();
    if sharing > 1 {
        let message = format!("shares proximity domain {domain} with another node");
        return vec![finding(Severity::Error, "domain-shared", message)];
    }
    let mut findings = Vec::new();
    let (cpus, has_memory) =
        found.map_or((0, false), |found| (found.cpus.len(), found.memory_bytes > 0));
    if cpus != node.cpus.len() {
        let message = format!("has {} cpus, but {cpus} in the tables", node.cpus.len());
        findings.push(finding(Severity::Error, "cpus-lost", message));
    }
    if has_memory != (node.memory_bytes > 0) {
        let message = format!("has {} bytes of memory, but none in the tables", node.memory_bytes);
        findings.push(finding(Severity::Error, "memory-lost", message));
    }
    findings
}
