//! Page, JSON and rows of a self-test.

use numalab_page::number::{count, figure, size};
use numalab_page::rows::{Field, Rows};
use numalab_page::{Lead, Mood, Page, Panel, Part, Table};
use numalab_record::self_test::{
    Check, CheckFound, CheckOutcome, Checked, GuestNode, NodeLatency, NodePages, PutBack, SelfTest,
};
use numalab_topology::NodeSet;

use crate::document::document_of;
use crate::report::Report;
use crate::self_test::inversions;

impl Report for SelfTest {
    fn page(&self) -> Page {
        let row = |checked: &Checked| {
            let words = [name(checked.check), outcome(checked.outcome), &found_words(checked)];
            words.map(ToOwned::to_owned).to_vec()
        };
        let checks = Table::new("checks and results")
            .words(["check", "", "found"])
            .rows(self.checks.iter().map(row))
            .moods(self.checks.iter().map(|checked| mood(checked.outcome)));
        let fact = |name: &str| self.environment.text(name).unwrap_or_default();
        let nodes = count(self.machine.memory_nodes().len(), "node");
        let parts = [
            Part::of("Checks", vec![Panel::table(checks)]),
            Part::of("Latency between nodes", vec![Panel::table(latencies(&self.checks))]),
        ];
        Page {
            brand: "numalab machine selftest".to_owned(),
            title: "Does numalab work on the nodes of this machine?".to_owned(),
            meta: format!("{nodes} with memory; {}; Linux {}", fact("cpu_model"), fact("kernel")),
            lead: vec![answer(&self.checks)],
            parts: parts.into_iter().flatten().collect(),
            ..Page::default()
        }
    }

    document_of!(SelfTest);

    fn rows(&self) -> Option<Rows> {
        let row = |checked: &Checked| {
            let passed = match checked.outcome {
                CheckOutcome::Passed => Field::Count(1),
                CheckOutcome::Failed => Field::Count(0),
                CheckOutcome::NotChecked => Field::Empty,
            };
            let (name, outcome) = (name(checked.check), outcome(checked.outcome));
            vec![name.into(), outcome.into(), found_words(checked).into(), passed]
        };
        Some(columns().rows(self.checks.iter().map(row)))
    }
}

pub(crate) fn columns() -> Rows {
    Rows::new("self-test").labels(["check"]).texts(["outcome", "found"]).values(
        "",
        [("passed", "1 if the check passed, 0 if it failed; left out if it was not made")],
    )
}

fn answer(checks: &[Checked]) -> Lead {
    let of = |outcome| checks.iter().filter(|checked| checked.outcome == outcome).count();
    let (passed, failed) = (of(CheckOutcome::Passed), of(CheckOutcome::Failed));
    let left_out = of(CheckOutcome::NotChecked);
    let sentence = format!("{passed} passed, {failed} failed, {left_out} not checked.");
    let mood = match (failed, left_out) {
        (0, 0) => Mood::Fine,
        (0, _) => Mood::Odd,
        _ => Mood::Bad,
    };
    Lead::new("Answer", sentence, mood)
}

const fn outcome(outcome: CheckOutcome) -> &'static str {
    match outcome {
        CheckOutcome::Passed => "passed",
        CheckOutcome::Failed => "FAILED",
        CheckOutcome::NotChecked => "not checked",
    }
}

const fn mood(outcome: CheckOutcome) -> Mood {
    match outcome {
        CheckOutcome::Passed => Mood::Fine,
        CheckOutcome::Failed => Mood::Bad,
        CheckOutcome::NotChecked => Mood::Odd,
    }
}

/// Returns the name of a check, as in `--help`.
const fn name(check: Check) -> &'static str {
    words_of(check).0
}

/// Describes what a check does.
pub const fn described(check: Check) -> &'static str {
    words_of(check).1
}

const fn words_of(check: Check) -> (&'static str, &'static str) {
    match check {
        Check::Pins => ("pins", "a thread pinned to each cpu"),
        Check::Bound => ("bound memory", "memory bound to each node"),
        Check::FirstTouch => ("first touch", "memory touched from each node"),
        Check::Proof => ("proof", "memory of one node claimed to be on another"),
        Check::TransparentHugePages => {
            ("transparent huge pages", "transparent huge pages on each node (thp_enabled)")
        }
        Check::ReservedHugePages => {
            ("reserved huge pages", "reserved huge pages on each node (huge_2m_pages_nodeN)")
        }
        Check::Balancing => ("NUMA balancing", "memory that follows its thread (numa_balancing)"),
        Check::Matrix => ("latency by distance", "latency between nodes, against distance"),
        Check::Guest => ("guest", "a guest with a node on each host node"),
        Check::Settings => ("settings", "all settings restored"),
    }
}

fn found_words(checked: &Checked) -> String {
    match (&checked.found, &checked.reason) {
        (Some(found), _) => words(found),
        (None, reason) => reason.clone().unwrap_or_default(),
    }
}

fn words(found: &CheckFound) -> String {
    match found {
        CheckFound::Pins { right, wrong } if wrong.is_empty() => {
            format!("cpus {right}: on the cpu, and on its node")
        }
        CheckFound::Pins { right, wrong } => format!(
            "cpus {wrong}: the kernel runs them on a node other than the topology's; right: {right}"
        ),
        CheckFound::Pages { nodes } => pages_words(nodes),
        CheckFound::Claim { node, claimed, pages, refused } => format!(
            "memory of node {node}, claimed to be on node {claimed}: {refused} of {pages} pages \
             refused"
        ),
        CheckFound::Balancing { from, to, off_percent, on_percent, begin_ns, end_ns } => format!(
            "thread moved from node {from} to {to}: {} % of its pages followed with \
             numa_balancing=0, {} % with 1; a load {} ns, then {} ns",
            figure(*off_percent),
            figure(*on_percent),
            figure(*begin_ns),
            figure(*end_ns)
        ),
        CheckFound::Matrix { pairs } => order_words(pairs),
        CheckFound::Guest { accelerator, nodes } => {
            let nodes: Vec<String> = nodes.iter().map(guest_words).collect();
            format!("{accelerator}; {}", nodes.join("; "))
        }
        CheckFound::Settings { settings } if settings.is_empty() => "none changed".to_owned(),
        CheckFound::Settings { settings } => {
            let words = |setting: &PutBack| {
                // Empty if the kernel does not report it.
                let [before, after] = [&setting.before, &setting.after]
                    .map(|value| if value.is_empty() { "unknown" } else { value });
                match before == after {
                    true => format!("{} {before} again", setting.name),
                    false => format!("{} {after}, was {before}", setting.name),
                }
            };
            settings.iter().map(words).collect::<Vec<_>>().join(", ")
        }
    }
}

fn pages_words(nodes: &[NodePages]) -> String {
    let elsewhere: Vec<String> = nodes
        .iter()
        .filter(|node| node.on_node != node.pages)
        .map(|node| format!("node {}: {} of {} pages", node.node, node.on_node, node.pages))
        .collect();
    if !elsewhere.is_empty() {
        return elsewhere.join(", ");
    }
    let all: NodeSet = nodes.iter().map(|node| node.node).collect();
    let pages = nodes.first().map(|node| (node.pages, size(node.page_bytes))).unwrap_or_default();
    let word = if all.len() == 1 { "node" } else { "nodes" };
    format!("{word} {all}: all {} pages of {} there", pages.0, pages.1)
}

fn order_words(pairs: &[NodeLatency]) -> String {
    let inverted = inversions(pairs);
    let Some((near, far)) = inverted.first() else {
        return format!("{}: no node closer by distance is slower", count(pairs.len(), "pair"));
    };
    let place = |pair: &NodeLatency| {
        let distance = pair.distance.map(|distance| distance.to_string()).unwrap_or_default();
        format!("node {} ({distance}) {} ns", pair.to, figure(pair.latency_ns))
    };
    let pairs = count(inverted.len(), "pair");
    format!("{pairs} out of order: from node {}, {}, {}", near.from, place(near), place(far))
}

fn guest_words(node: &GuestNode) -> String {
    let cpu = node.runs_on.map_or_else(|| "not known".to_owned(), |cpu| cpu.to_string());
    let (there, elsewhere) = (size(node.there_bytes), size(node.elsewhere_bytes));
    format!("node {}: on cpu {cpu}, {there} there, {elsewhere} elsewhere", node.host)
}

fn latencies(checks: &[Checked]) -> Table {
    let pairs = checks.iter().find_map(|checked| match &checked.found {
        Some(CheckFound::Matrix { pairs }) => Some(&pairs[..]),
        _ => None,
    });
    let row = |pair: &NodeLatency| {
        let distance = pair.distance.map_or_else(|| "–".to_owned(), |value| value.to_string());
        vec![pair.from.to_string(), pair.to.to_string(), distance, figure(pair.latency_ns)]
    };
    Table::new("from a node's cpu to a node's memory")
        .figures(["from", "to", "distance", "ns"])
        .rows(pairs.unwrap_or_default().iter().map(row))
}
