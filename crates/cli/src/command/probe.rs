//! `numalab study probe`: tests one kernel behavior.

use numalab_formats::size::{format_bytes, format_rounded};
use numalab_host::{Root, read_machine};
use numalab_measure::{BalancingProbe, Heat, MeasureContext, TieringProbe, Tiers};
use numalab_results::tiering::page::tiers;
use numalab_topology::CpuId;

use crate::args::{BalancingArgs, HeatKind, ProbeCommand, TieringArgs};
use crate::failure::Failure;
use crate::output;

/// Runs the probe.
pub(crate) fn run(command: &ProbeCommand) -> Result<(), Failure> {
    match command {
        ProbeCommand::Balancing(args) => balancing(args),
        ProbeCommand::Tiering(args) => tiering(args),
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
    output::show(&probe.run(&context)?, args.format)
}

fn tiering(args: &TieringArgs) -> Result<(), Failure> {
    let machine = read_machine(&Root::live())?.machine;
    let heat = match args.heat {
        HeatKind::Hot => Heat::hot(args.hot, args.share, args.size)?,
        HeatKind::Zipf => Heat::Zipf,
        HeatKind::Uniform => Heat::Uniform,
    };
    let probe = TieringProbe {
        size_bytes: args.size,
        heat,
        access: args.access,
        moves_every: args.moves_every,
        place: args.place,
        time: args.time,
        tiers: Tiers::of(&machine, args.place)?,
    };
    if args.dry_run {
        return output::print(&format!(
            "{} ({}), {}, accessed by cpu {} for {} s; {}\n",
            format_rounded(probe.size_bytes),
            probe.placed(),
            probe.accesses(),
            probe.tiers.cpu,
            probe.time.as_secs_f64(),
            tiers(&probe.tiers.each),
        ));
    }
    let context = MeasureContext::for_probe(machine, args.time)?;
    output::show(&probe.run(&context)?, args.format)
}
