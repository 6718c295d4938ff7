//! Page and rows of a machine's topology.

mod cpus;
mod devices;
mod memory;
mod notes;

use numalab_page::number::{count, size};
use numalab_page::rows::{Field, Rows};
use numalab_page::{Mood, Page, Panel, Part, Table};
use numalab_record::system::Described;
use numalab_topology::{Finding, Machine, Node, Severity};

use crate::document::document_of;
use crate::report::Report;

/// Codes of the findings that name measured figures.
const MEASURED: [&str; 2] = ["latency-measured", "bandwidth-measured"];
/// Code of the finding that names a description with the costs of accesses.
const DESCRIBED: &str = "access-described";

impl Report for Described {
    fn page(&self) -> Page {
        let machine = &self.machine;
        let part = |title: &str, table| Part::of(title, vec![Panel::table(table)]);
        let nodes = part("Nodes", memory::nodes(machine));
        let distances = memory::uniform_distance(machine).map(|sentence| Part {
            title: "Distances".to_owned(),
            notes: vec![sentence],
            ..Part::default()
        });
        let parts = [
            nodes.map(|part| part.noted(notes::of_nodes(machine))),
            part("Memory tiers", memory::tiers(machine)),
            part("Weights for interleaving", memory::weights(machine)),
            part("CPUs and caches", shared(machine)),
            distances.or_else(|| part("Distances", memory::distances(machine))),
            part("Devices", devices::devices(machine)),
            access(machine, &self.findings),
            part("Anomalies", odd(&self.findings)),
        ];
        Page {
            brand: "numalab topology".to_owned(),
            title: headline(machine),
            parts: parts.into_iter().flatten().collect(),
            whole: true,
            ..Page::default()
        }
    }

    document_of!(Topology);

    fn rows(&self) -> Option<Rows> {
        let row = |node: &Node| {
            vec![
                Field::from(node.id.to_string()),
                node.cpus.to_string().into(),
                node.online.to_string().into(),
                (!node.memory_unknown).then_some(node.memory_bytes).into(),
                node.free_bytes.into(),
                side_cache_bytes(node).into(),
            ]
        };
        Some(columns().rows(self.machine.nodes.iter().map(row)))
    }
}

pub(crate) fn columns() -> Rows {
    Rows::new("topology node").labels(["node"]).texts(["cpus", "online"]).values(
        "bytes",
        [
            ("memory_bytes", "the memory of the node"),
            ("free_bytes", "free memory of the node"),
            ("side_cache_bytes", "the capacity of the caches in front of the node's memory"),
        ],
    )
}

/// Returns the capacity of the caches in front of a node's memory, if it has any.
fn side_cache_bytes(node: &Node) -> Option<u64> {
    let sizes = node.memory_side_caches.iter().map(|cache| cache.size_bytes);
    sizes.reduce(u64::saturating_add)
}

/// Tabulates the costs of accesses under their source: measurements from a run, a description of
/// the machine, or the firmware's tables.
fn access(machine: &Machine, findings: &[Finding]) -> Option<Part> {
    let has = |codes: &[&str]| findings.iter().any(|of| codes.contains(&of.code.as_str()));
    let (title, source) = match () {
        () if has(&MEASURED) => ("Access costs measured by numalab", "measured"),
        () if has(&[DESCRIBED]) => ("Access costs of the described machine", "described"),
        () => ("Access costs from the firmware", "HMAT"),
    };
    Part::of(title, vec![Panel::table(memory::access(machine, source))])
}

fn headline(machine: &Machine) -> String {
    let online = machine.online_cpus().len();
    let mut parts = vec![
        match machine.nodes.len() {
            0 => "nodes unknown".to_owned(),
            nodes => count(nodes, "node"),
        },
        count(online, "cpu"),
        match machine.memory_bytes() {
            0 => "memory unknown".to_owned(),
            bytes if machine.nodes.iter().any(|node| node.memory_unknown) => {
                format!("{} of memory, some unknown", size(bytes))
            }
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

/// Tabulates what cpus and nodes share.
fn shared(machine: &Machine) -> Table {
    let side_caches = ("Memory-side cache", memory::side_caches(machine));
    let rows = cpus::rows(machine).into_iter().chain([side_caches]).chain(allowed(machine));
    let rows = rows.filter(|(_, text)| !text.is_empty());
    Table::new("what cpus share, and what this process may use")
        .words(["part", "layout"])
        .rows(rows.map(|(name, text)| vec![name.to_owned(), text]))
}

fn allowed(machine: &Machine) -> Option<(&'static str, String)> {
    let allowed = machine.allowed.as_ref()?;
    let every_cpu = machine.online_cpus().is_subset(&allowed.cpus);
    // Empty under a kernel without cpusets, where all nodes are allowed.
    let memory_nodes = match allowed.memory_nodes.is_empty() {
        true => machine.memory_nodes(),
        false => allowed.memory_nodes.clone(),
    };
    let every_node = machine.memory_nodes().is_subset(&memory_nodes);
    let isolated = match allowed.isolated.is_empty() {
        true => String::new(),
        false => format!("; isolated cpus {} on request", cpus::list(&allowed.isolated)),
    };
    let text = match every_cpu && every_node {
        true => "every cpu and every node's memory".to_owned(),
        false => format!(
            "cpus {}, memory of nodes {}",
            cpus::list(&allowed.cpus),
            cpus::list(&memory_nodes)
        ),
    };
    Some(("Allowed", text + &notes::forbidden_local(machine) + &isolated))
}

pub(super) fn odd(findings: &[Finding]) -> Table {
    let row = |finding: &Finding| {
        let Finding { severity, code, place, message } = finding;
        vec![severity.to_string(), format!("{place}: {message} [{code}]")]
    };
    let mood = |finding: &Finding| match finding.severity {
        Severity::Note => Mood::Plain,
        Severity::Warning => Mood::Odd,
        Severity::Error => Mood::Bad,
    };
    Table::new("impossible or unusual parts of the description")
        .words(["severity", "finding"])
        .rows(findings.iter().map(row))
        .moods(findings.iter().map(mood))
}
