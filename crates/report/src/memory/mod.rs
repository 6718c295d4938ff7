//! What a memory emulator saw of a guest (`numalab-emulator/1`): who accessed which node's
//! memory, and what it cost.

mod read;
mod section;

pub use read::{MemoryReport, MemoryReportError};

use crate::csv::quote;
use crate::html::{markup::escape, page::page, section_html};
use crate::markdown as md;
use crate::number::count;
use crate::terminal::{Style, layout::wrap, section_text};
use section::sections;

/// The report as text of at most 80 columns.
#[must_use]
pub fn terminal(report: &MemoryReport, style: Style) -> String {
    let mut out = format!("{}\n", style.heading(&wrap(&title(report), 0)));
    for section in sections(report) {
        out.push_str(&section_text(&section, style));
    }
    out
}

/// The report as Markdown.
#[must_use]
pub fn markdown(report: &MemoryReport) -> String {
    let mut out = format!("# {}\n", md::escape(&title(report)));
    for section in sections(report) {
        out.push_str(&md::section_text(&section));
    }
    out
}

/// The report as one HTML file that opens offline.
#[must_use]
pub fn html(report: &MemoryReport) -> String {
    let parts: String = sections(report).iter().map(section_html).collect();
    let body = format!(
        "<header>\n<p class=\"brand\">numalab</p>\n<h1>Emulated memory</h1>\n\
         <p class=\"meta\">{}</p>\n</header>\n<main>\n{parts}</main>\n",
        escape(&title(report))
    );
    page("Emulated memory", &body)
}

/// A row for each phase, cpu and node.
#[must_use]
pub fn csv(report: &MemoryReport) -> String {
    let mut out = "phase,cpu,cpu_node,memory_node,loads,stores,load_misses,store_misses,cost_ns,\
                   queue_ns\n"
        .to_owned();
    for phase in &report.phases {
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
