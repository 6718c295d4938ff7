//! `numalab study probe tiering`.

use numalab_formats::size::format_rounded;
use numalab_host::{Root, read_machine};
use numalab_measure::{
    Heat, MeasureContext, TierAccess, TierPlace, TieringProbe, each_tier, fast_and_slow,
};
use numalab_record::tiering::TieringProbed;
use numalab_topology::Machine;

use crate::args::{HeatKind, TieringArgs};
use crate::failure::{Code, Failure};
use crate::output;

/// Inverse of the hot part of the working set unless `--hot` gives its size.
const USUAL_PART: u64 = 8;

/// Runs the probe.
pub(super) fn run(args: &TieringArgs) -> Result<(), Failure> {
    let machine = read_machine(&Root::live())?.machine;
    let probe = plan(args, &machine)?;
    if args.dry_run {
        return output::print(&format!(
            "{} ({}), {}, accessed by cpu {} for {} s; {}\n",
            format_rounded(probe.size_bytes),
            placed(&probe),
            heat(&probe),
            probe.cpu,
            probe.time.as_secs_f64(),
            numalab_results::tiering::page::tiers(&probe.tiers),
        ));
    }
    let context = MeasureContext::for_probe(machine, args.time)?;
    let (readings, looks) = probe.run(&context)?;
    let (heat, placed) = (heat(&probe), placed(&probe));
    let TieringProbe { fast, slow, tiers, size_bytes, .. } = probe;
    let probed = TieringProbed { fast, slow, tiers, size_bytes, heat, placed, readings, looks };
    output::show(&probed, args.format)
}

fn plan(args: &TieringArgs, machine: &Machine) -> Result<TieringProbe, Failure> {
    let bytes = args.hot.unwrap_or(args.size / USUAL_PART);
    if args.heat == HeatKind::Hot && !(4096..=args.size / 2).contains(&bytes) {
        return Err(Failure::bad_input(format!(
            "--hot {}: expected at least a page and at most half of the working set, {}",
            format_rounded(bytes),
            format_rounded(args.size / 2)
        )));
    }
    let Some((fast, slow)) = fast_and_slow(machine) else {
        return Err(Failure::new(
            Code::Lacking,
            "this kernel has memory of one tier; numalab guest run --kernel backports \
             --emulate-tiers 512M@100ns,1G@300ns -- numalab study probe tiering has two",
        ));
    };
    let tiers = each_tier(machine);
    if let TierPlace::Tier(tier) = args.place
        && tier >= tiers.len()
    {
        return Err(Failure::bad_input(format!(
            "--place tier{}: expected one of the {} tiers of this machine",
            tier + 1,
            tiers.len()
        )));
    }
    let on_fast = |cpu: &&numalab_topology::Cpu| {
        cpu.online && cpu.node.is_some_and(|node| fast.contains(node))
    };
    let cpu = machine.cpus.iter().find(on_fast).map(|cpu| cpu.id).unwrap_or_default();
    Ok(TieringProbe {
        size_bytes: args.size,
        heat: match args.heat {
            HeatKind::Hot => Heat::Hot { bytes, percent: args.share },
            HeatKind::Zipf => Heat::Zipf,
            HeatKind::Uniform => Heat::Uniform,
        },
        access: args.access,
        moves_every: args.moves_every,
        place: args.place,
        time: args.time,
        cpu,
        fast,
        slow,
        tiers,
    })
}

/// Describes the hot set.
fn heat(probe: &TieringProbe) -> String {
    let heat = match probe.heat {
        Heat::Hot { bytes, percent } => {
            format!("{percent} % of the accesses to {}", format_rounded(bytes))
        }
        Heat::Zipf => "the page of rank n with weight 1/n".to_owned(),
        Heat::Uniform => "all pages equally".to_owned(),
    };
    let heat = match probe.access {
        TierAccess::Dependent => heat,
        TierAccess::Independent => format!("{heat}, many at a time"),
    };
    match probe.moves_every {
        Some(every) => format!("{heat}, elsewhere every {} s", every.as_secs_f64()),
        None => heat,
    }
}

fn placed(probe: &TieringProbe) -> String {
    match probe.place {
        TierPlace::Tier(tier) => format!("placed on tier {} of {}", tier + 1, probe.tiers.len()),
        TierPlace::FirstTouch => "placed by the kernel, the hottest part touched last".to_owned(),
    }
}
