//! A machine and its oddities as text or JSON.

mod cpus;
mod memory;

use numalab_record::Kind;
use numalab_topology::{Finding, Machine, Severity};
use serde::Serialize;

use crate::number::{count, size};
use crate::terminal::Style;
use crate::terminal::layout::{hanging, wrap};

/// Characters of the name in front of a line.
const NAME_WIDTH: usize = 12;

/// The machine as text of at most 80 columns, and what is odd about it.
#[must_use]
pub fn text(machine: &Machine, findings: &[Finding], style: Style) -> String {
    let mut out = format!("{}\n\n", style.heading(&wrap(&headline(machine), 0)));
    out.push_str(&memory::nodes(machine, style));
    out.push_str(&cpus::lines(machine));
    out.push_str(&memory::tiers(machine));
    out.push_str(&allowed(machine));
    out.push_str(&memory::distances(machine, style));
    out.push_str(&memory::access(machine, style));
    out.push_str(&findings_text(findings, style));
    out
}

/// The machine and its findings as JSON.
///
/// # Errors
/// Whatever `serde_json` cannot write; no machine is known to be such.
pub fn json(machine: &Machine, findings: &[Finding]) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Described<'a> {
        schema: Kind,
        machine: &'a Machine,
        findings: &'a [Finding],
    }
    let described = Described { schema: Kind::Topology, machine, findings };
    serde_json::to_string_pretty(&described).map(|text| text + "\n")
}

fn headline(machine: &Machine) -> String {
    let online = machine.online_cpus().len();
    let mut parts = vec![
        count(machine.nodes.len(), "node"),
        count(online, "cpu"),
        match machine.memory_bytes() {
            0 => "memory unknown".to_owned(),
            bytes => format!("{} of memory", size(bytes)),
        },
    ];
    let (packages, cores) = (machine.packages().len(), machine.cores().len());
    if packages > 0 {
        parts.insert(1, count(packages, "package"));
    }
    if cores > 0 {
        parts.insert(parts.len() - 2, count(cores, "core"));
    }
    if machine.cpus.len() > online {
        parts.push(format!("{} offline", count(machine.cpus.len() - online, "cpu")));
    }
    parts.join(", ")
}

/// A named line, continued under its text.
fn line(name: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    hanging(name, text, NAME_WIDTH)
        + "
"
}

fn allowed(machine: &Machine) -> String {
    let Some(allowed) = &machine.allowed else {
        return String::new();
    };
    let every_cpu = machine.online_cpus().is_subset(&allowed.cpus);
    let every_node = machine.memory_nodes().is_subset(&allowed.memory_nodes);
    if every_cpu && every_node {
        return line("Allowed", "every cpu and every node's memory");
    }
    let text = format!(
        "cpus {}, memory of nodes {}",
        cpus::list(&allowed.cpus),
        cpus::list(&allowed.memory_nodes)
    );
    line("Allowed", &text)
}

fn findings_text(findings: &[Finding], style: Style) -> String {
    let mut out = String::new();
    for finding in findings {
        let text = wrap(&finding.to_string(), 2);
        let text = match finding.severity {
            Severity::Note => style.faint(&text),
            Severity::Warning => style.warning(&text),
            Severity::Error => style.bad(&text),
        };
        if out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("{text}\n"));
    }
    out
}
