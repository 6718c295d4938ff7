//! `numalab study probe`: tests one kernel behavior.

mod tiering;

use numalab_formats::size::format_bytes;
use numalab_host::{Root, read_machine};
use numalab_measure::{BalancingFound, BalancingProbe, MeasureContext};
use numalab_record::study::Quantity;
use numalab_record::system::{BalancingProbed, ProbedPlace};
use numalab_topology::CpuId;

use crate::args::{BalancingArgs, ProbeCommand};
use crate::failure::Failure;
use crate::output;

/// Runs the probe.
pub(crate) fn run(command: &ProbeCommand) -> Result<(), Failure> {
    match command {
        ProbeCommand::Balancing(args) => balancing(args),
        ProbeCommand::Tiering(args) => tiering::run(args),
    }
}

fn balancing(args: &BalancingArgs) -> Result<(), Failure> {
    let machine = read_machine(&Root::live())?.machine;
    let context = MeasureContext::for_probe(machine, args.time)?;
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
    output::show(&probed(&probe, &found), args.format)
}

/// Converts the result to the form that studies record.
fn probed(probe: &BalancingProbe, found: &BalancingFound) -> BalancingProbed {
    BalancingProbed {
        from: ProbedPlace { cpu: probe.from, node: found.from },
        to: ProbedPlace { cpu: probe.to, node: found.to },
        size_bytes: probe.size_bytes,
        readings: vec![
            Quantity::lower("latency-end", "ns").at(found.end_ns),
            Quantity::lower("latency-begin", "ns").at(found.begin_ns),
            Quantity::higher("local", "%").at(found.local_percent),
        ],
        windows_ns: found.windows.clone(),
    }
}
