//! What a memory emulator saw of a guest (`numalab-emulator/1`): who accessed which node's
//! memory, and what it cost.

mod parts;
mod read;

pub use read::{MemoryReport, MemoryReportError};

use crate::csv::quote;
use crate::number::count;
use crate::page::{Page, Report};

impl Report for MemoryReport {
    fn page(&self) -> Page {
        Page {
            brand: "numalab".to_owned(),
            title: title(self),
            parts: parts::parts(self),
            ..Page::default()
        }
    }

    /// The emulator's own report.
    fn json(&self) -> serde_json::Result<String> {
        Ok(self.text.clone())
    }

    /// A row for each phase, cpu and node.
    fn csv(&self) -> String {
        let mut out =
            "phase,cpu,cpu_node,memory_node,loads,stores,load_misses,store_misses,cost_ns,\
                       queue_ns\n"
                .to_owned();
        for phase in &self.phases {
            for cpu in &phase.vcpus {
                for node in &cpu.nodes {
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
                    let figures = figures.map(|figure| figure.to_string()).join(",");
                    out.push_str(&format!("{},{figures}\n", quote(&phase.label())));
                }
            }
        }
        out
    }
}

fn title(report: &MemoryReport) -> String {
    let how = match report.mode.as_str() {
        "count" => "counted, not charged",
        "virtual" => "charged in virtual time",
        "sleep" => "charged in the host's time",
        other => other,
    };
    let cpus = count(usize::try_from(report.qemu.vcpus).unwrap_or(usize::MAX), "cpu");
    let nodes = count(report.machine.nodes.len(), "node");
    format!("Emulated memory of {cpus} and {nodes}: accesses {how}")
}
