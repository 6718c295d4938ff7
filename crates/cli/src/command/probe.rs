//! `numalab probe`: a single question to the kernel.

use numalab_formats::size::format_bytes;
use numalab_host::{Interrupt, Root, UtcTime, read_machine};
use numalab_measure::{BalancingFound, BalancingProbe, MeasureContext, Settings};
use numalab_record::Kind;
use numalab_record::study::{Quantity, Reading};
use numalab_topology::CpuId;
use serde_json::json;

use crate::args::{BalancingArgs, ProbeCommand, ProbeFormat};
use crate::failure::Failure;
use crate::output;

/// The precision that nothing here depends on.
const PRECISION: f64 = 0.01;

/// Runs the probe.
pub(crate) fn run(command: &ProbeCommand) -> Result<(), Failure> {
    let ProbeCommand::Balancing(args) = command;
    balancing(args)
}

fn balancing(args: &BalancingArgs) -> Result<(), Failure> {
    let machine = read_machine(&Root::live()).map_err(numalab_host::Error::from)?.machine;
    let interrupt = Interrupt::install().map_err(numalab_host::Error::from)?;
    let settings =
        Settings { seed: UtcTime::now().unix_ms, precision: PRECISION, budget: args.time };
    let context = MeasureContext::new(machine, settings, interrupt)?;
    let (from, to) = (args.from.map(CpuId), args.to.map(CpuId));
    let probe = BalancingProbe::on(&context, args.size, args.time, from, to)?;
    if args.dry_run {
        return output::print(&format!(
            "{} placed by cpu {}, read from cpu {} for {} s\n",
            format_bytes(probe.size_bytes),
            probe.from,
            probe.to,
            probe.time.as_secs_f64()
        ));
    }
    let found = probe.run(&context)?;
    match args.format {
        ProbeFormat::Text => output::print(&text(&probe, &found)),
        ProbeFormat::Json => output::print(&output::json_line(serde_json::to_string(&json!({
            "schema": Kind::Probe,
            "from": { "cpu": probe.from.0, "node": found.from.0 },
            "to": { "cpu": probe.to.0, "node": found.to.0 },
            "size_bytes": probe.size_bytes,
            "readings": readings(&found),
            "windows_ns": found.windows,
        })))?),
    }
}

fn text(probe: &BalancingProbe, found: &BalancingFound) -> String {
    let moved = if found.from == found.to {
        "both cpus are of one node: nothing can move\n".to_owned()
    } else {
        format!("at the end {:.1} % of its pages are on node {}\n", found.local_percent, found.to)
    };
    format!(
        "memory on node {} (cpu {}), its thread moved to node {} (cpu {})\n\
         {:8.1} ns a load right after the move\n{:8.1} ns at the end\n{moved}",
        found.from, probe.from, found.to, probe.to, found.begin_ns, found.end_ns
    )
}

/// As studies have them.
fn readings(found: &BalancingFound) -> [Reading; 3] {
    [
        Quantity::lower("latency-end", "ns").at(found.end_ns),
        Quantity::lower("latency-begin", "ns").at(found.begin_ns),
        Quantity::higher("local", "%").at(found.local_percent),
    ]
}
