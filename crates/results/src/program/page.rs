//! Page, JSON and rows of a memory emulator's report on a guest (`numalab-emulator/1`): accesses
//! and costs by cpu and node.

pub(crate) mod callgrind;
mod parts;
pub(crate) mod program;

use numalab_page::number::count;
use numalab_page::rows::{Field, Rows};
use numalab_page::{Format, Lead, Mood, Page};
use numalab_record::profile::Ended;
use numalab_record::{Kind, MemoryReport};

use super::document::EmulationDocument;
use crate::document;
use crate::report::Report;

impl Report for MemoryReport {
    fn page(&self) -> Page {
        Page {
            brand: "numalab".to_owned(),
            title: title(self),
            lead: lead(self),
            parts: parts::parts(self),
            ..Page::default()
        }
    }

    /// Returns the emulator's report, and the figures of the page about a program.
    fn json(&self) -> serde_json::Result<String> {
        document(Kind::Emulation, &EmulationDocument::of(self))
    }

    /// Returns one row per phase, cpu and node.
    fn rows(&self) -> Option<Rows> {
        let cpus =
            self.phases.iter().flat_map(|phase| phase.vcpus.iter().map(move |cpu| (phase, cpu)));
        let rows = cpus.flat_map(|(phase, cpu)| {
            cpu.nodes.iter().map(move |node| {
                let figures = [
                    cpu.vcpu,
                    cpu.node,
                    node.node,
                    node.loads,
                    node.stores,
                    node.load_misses,
                    node.store_misses,
                    node.cost_ns,
                    node.queue_ns,
                ];
                let label = Field::from(phase.label());
                core::iter::once(label).chain(figures.map(Field::from)).collect()
            })
        });
        Some(columns().rows(rows))
    }

    fn exported(&self, format: Format) -> Option<String> {
        match format {
            Format::Callgrind => self.program.as_ref().map(callgrind::callgrind),
            _ => self.rows().and_then(|rows| format.of_rows(&rows)),
        }
    }
}

pub(crate) fn columns() -> Rows {
    Rows::new("emulated memory")
        .labels(["phase", "cpu", "cpu_node", "memory_node"])
        .values(
            "accesses",
            [
                ("loads", "loads from the node's memory"),
                ("stores", "stores to the node's memory"),
                ("load_misses", "loads that missed all caches"),
                ("store_misses", "stores that missed all caches"),
            ],
        )
        .values(
            "ns",
            [
                ("cost_ns", "the time of the accesses that missed all caches"),
                ("queue_ns", "the part of the misses' time caused by contention for the memory"),
            ],
        )
}

fn lead(report: &MemoryReport) -> Vec<Lead> {
    let failed = report.failed.and_then(failed).map(|text| Lead::new("Command", text, Mood::Bad));
    let cost = report.program.as_ref().map_or_else(Vec::new, |run| program::lead(report, run));
    failed.into_iter().chain(cost).collect()
}

/// Describes the end of a command that failed.
pub(crate) fn failed(ended: Ended) -> Option<String> {
    match ended {
        Ended::Exited(code) if code != 0 => Some(format!("The command failed: exit code {code}.")),
        Ended::Signalled(signal) => Some(format!("The command was ended by signal {signal}.")),
        Ended::Exited(_) | Ended::ProcessEnded | Ended::TimeOver | Ended::Interrupted => None,
    }
}

fn title(report: &MemoryReport) -> String {
    if let Some(program) = &report.program {
        let nodes = count(report.machine.nodes.len(), "node");
        let name =
            program.program.as_deref().map_or_else(|| "a program".to_owned(), program::short);
        return format!("Memory cost of {name} on a machine with {nodes}");
    }
    let how = match report.mode.as_str() {
        "count" => "counted, not charged",
        "virtual" => "charged in virtual time",
        "sleep" => "charged in host time",
        other => other,
    };
    let cpus = count(usize::try_from(report.qemu.vcpus).unwrap_or(usize::MAX), "cpu");
    let nodes = count(report.machine.nodes.len(), "node");
    format!("Emulated memory of {cpus} and {nodes}: accesses {how}")
}
