//! The parts of the emulator report's page.

use numalab_page::number::{figure, trimmed};
use numalab_page::{Panel, Part, Table};
use numalab_record::Unit;
use numalab_record::{EmulatedAccesses, EmulatedCpu, EmulatedPhase, MemoryReport};

use super::program::{regions, sharing, threads};
use crate::run::page::matrix_panel;
use crate::run::{Axis, Matrix, MatrixEntry};

/// Returns each phase's heat map, the figures per cpu, and the emulator's checks.
pub(super) fn parts(report: &MemoryReport) -> Vec<Part> {
    match &report.program {
        Some(program) => {
            let parts = [Some(regions(program)), sharing(program)].into_iter().flatten();
            parts.chain([threads(program), accesses(report), charged(report)]).collect()
        }
        None => vec![accesses(report), charged(report), checks(report)],
    }
}

fn part(title: &str, notes: Vec<String>, panels: Vec<Panel>) -> Part {
    Part { title: title.to_owned(), notes, panels, ..Part::default() }
}

fn accesses(report: &MemoryReport) -> Part {
    let several = report.phases.len() > 1;
    let (mut notes, mut panels) = (Vec::new(), Vec::new());
    for phase in &report.phases {
        let of = if several { format!(", phase {}", phase.label()) } else { String::new() };
        let caption = format!("% of each cpu's accesses that reached memory, by node{of}");
        panels.push(matrix_panel(&matrix(phase), caption));
        panels.push(Panel::table(cpus(phase, &of)));
        notes.push(sentence(phase, several));
    }
    if report.phases.is_empty() {
        notes
            .push("Nothing was counted: no program in the guest started a measurement.".to_owned());
    }
    if report.sample > 1 {
        notes.push(format!("One access in {} was sampled; counts are scaled.", report.sample));
    }
    part("Accesses to memory", notes, panels)
}

fn sentence(phase: &EmulatedPhase, several: bool) -> String {
    let reached = phase.vcpus.iter().fold(0_u64, |sum, cpu| sum.saturating_add(cpu.misses()));
    let local = phase.vcpus.iter().fold(0_u64, |sum, cpu| sum.saturating_add(cpu.local_misses()));
    let of = if several { format!("Phase {}: ", phase.label()) } else { String::new() };
    format!(
        "{of}{} million accesses reached memory, {} of them on the cpu's own node.",
        figure(reached as f64 / 1e6),
        percent(local, reached)
    )
}

fn matrix(phase: &EmulatedPhase) -> Matrix {
    let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let columns = phase.vcpus.first().map_or(&[][..], |cpu| &cpu.nodes[..]);
    let columns: Vec<u32> = columns.iter().map(|node| number(node.node)).collect();
    let share = |cpu: &EmulatedCpu, node: &EmulatedAccesses| {
        let value = 100.0 * node.misses() as f64 / cpu.misses().max(1) as f64;
        (value > 0.0).then(|| MatrixEntry { value, spread: None, cells: Vec::new() })
    };
    let busy = || phase.vcpus.iter().filter(|cpu| cpu.misses() > 0);
    Matrix {
        unit: Unit::Percent,
        rows_are: Axis::Cpu,
        rows: busy().map(|cpu| number(cpu.vcpu)).collect(),
        columns_are: Axis::Node,
        columns,
        entries: busy()
            .map(|cpu| cpu.nodes.iter().map(|node| share(cpu, node)).collect())
            .collect(),
    }
}

fn cpus(phase: &EmulatedPhase, of: &str) -> Table {
    let caption = format!("Each cpu's accesses, those that reached memory, and their cost{of}");
    let table = Table::new(caption).words("cpu").figures([
        "node",
        "10^6",
        "to memory",
        "local",
        "ns each",
        "queue ms",
        "time ms",
    ]);
    let sum = |cpu: &EmulatedCpu, of: fn(&EmulatedAccesses) -> u64| {
        cpu.nodes.iter().map(of).fold(0_u64, u64::saturating_add)
    };
    let row = |cpu: &EmulatedCpu| {
        let (reached, cost_ns) = (cpu.misses(), sum(cpu, |node| node.cost_ns));
        let accesses = sum(cpu, |node| node.loads.saturating_add(node.stores));
        let mean = if reached > 0 { figure(cost_ns as f64 / reached as f64) } else { "–".into() };
        vec![
            format!("cpu {}", cpu.vcpu),
            cpu.node.to_string(),
            figure(accesses as f64 / 1e6),
            percent(reached, accesses),
            percent(cpu.local_misses(), reached),
            mean,
            figure(sum(cpu, |node| node.queue_ns) as f64 / 1e6),
            figure(cpu.time_ns as f64 / 1e6),
        ]
    };
    table.rows(phase.vcpus.iter().map(row))
}

fn charged(report: &MemoryReport) -> Part {
    let nodes = &report.machine.nodes;
    let table =
        Table::new("access latency in ns, by cpu node and memory node").words("node \\ node");
    let table = nodes.iter().fold(table, |table, node| table.figures(node.id.to_string()));
    let rows = nodes.iter().zip(&report.machine.latency_ns).map(|(node, latencies)| {
        let latencies = latencies.iter().map(|ns| trimmed(*ns));
        core::iter::once(format!("node {}", node.id)).chain(latencies).collect()
    });
    part("Access costs", Vec::new(), vec![Panel::table(table.rows(rows))])
}

fn checks(report: &MemoryReport) -> Part {
    let table = Table::new("The emulator's checks of QEMU at startup")
        .words(["check", "passed"])
        .words("found");
    let table = table.rows(report.self_test.iter().map(|check| {
        let passed = if check.passed { "yes" } else { "no" };
        vec![check.check.clone(), passed.to_owned(), check.detail.clone()]
    }));
    part("Checks", Vec::new(), vec![Panel::table(table)])
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    format!("{} %", trimmed(100.0 * part as f64 / whole as f64))
}
