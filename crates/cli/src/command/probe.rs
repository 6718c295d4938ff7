//! `numalab study probe`: tests one kernel behaviour.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use numalab_formats::size::format_rounded;
use numalab_host::{Root, read_machine};
use numalab_measure::{
    BalancingProbe, Heat, MeasureContext, MeasureError, TierAccess, TierPlace, TieringProbe, Tiers,
};
use numalab_results::tiering::page::tiers;
use numalab_topology::CpuId;

use crate::args::{Format, value};
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    #[command(subcommand)]
    pub command: ProbeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProbeCommand {
    /// Move a thread to another node: does the kernel migrate its memory?
    Balancing(BalancingArgs),
    /// Access memory that is partly hot: does the kernel move the hot part to the fast tier?
    Tiering(TieringArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab study probe tiering                            32M on the slow tier, an eighth of it hot
  numalab knobs run numa_balancing=2 -- numalab study probe tiering --time 10s
  numalab study probe tiering --place first-touch --size 256M --heat zipf
  numalab study probe tiering --hot 2M --moves-every 5s --time 20s --format json
  numalab study probe tiering --heat uniform --place first-touch --access independent

It needs several tiers of memory, which `guest run --emulate-tiers` provides on any machine.")]
pub(crate) struct TieringArgs {
    /// Size of the working set
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = value::size)]
    pub size: u64,
    /// Distribution of accesses
    #[arg(long, value_enum, default_value_t = HeatKind::Hot)]
    pub heat: HeatKind,
    /// Size of the hot set [default: an eighth]
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub hot: Option<u64>,
    /// Percentage of the accesses that go to the hot set
    #[arg(long, value_name = "PERCENT", default_value_t = 90)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    pub share: u32,
    /// Move the hot set to another part of the memory this often [default: never]
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    pub moves_every: Option<Duration>,
    /// Relation of each access to the one before it
    #[arg(long, default_value = "dependent", value_parser = value::one_of([
        (TierAccess::Dependent, "dependent", "Each access waits for the one before it: latency is the limit"),
        (TierAccess::Independent, "independent",
            "Accesses do not wait for each other: bandwidth is the limit, if demand exceeds it"),
    ]))]
    pub access: TierAccess,
    /// Tier where the memory is placed at first
    #[arg(long, default_value = "tier2", value_parser = value::one_of([
        (TierPlace::Tier(0), "tier1", "On the fastest tier"),
        (TierPlace::Tier(1), "tier2", "On the next one"),
        (TierPlace::Tier(2), "tier3", "On the third"),
        (TierPlace::FirstTouch, "first-touch",
            "Wherever the kernel places it on first touch; the hottest part is touched last"),
    ]))]
    pub place: TierPlace,
    /// Time for which the memory is accessed
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = value::duration)]
    pub time: Duration,
    /// Output format
    #[arg(long, default_value = "text", value_parser = value::format())]
    pub format: Format,
    /// Show what would be done; measure nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeatKind {
    /// The hot set gets --share of all accesses
    Hot,
    /// The page of rank n gets a share in proportion to 1/n, in steps that double
    Zipf,
    /// All pages get the same share
    Uniform,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab study probe balancing                  the first CPU, then the first of the farthest node
  numalab knobs run numa_balancing=0 -- numalab study probe balancing --time 10s
  numalab study probe balancing --from 0 --to 12 --size 256M --format json")]
pub(crate) struct BalancingArgs {
    /// Size of the memory, which is placed by first touch
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = value::size)]
    pub size: u64,
    /// Time for which the thread chases after the move
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = value::duration)]
    pub time: Duration,
    /// CPU whose node gets the memory [default: the first]
    #[arg(long, value_name = "CPU")]
    pub from: Option<u32>,
    /// CPU to which the thread moves [default: one on the farthest node]
    #[arg(long, value_name = "CPU")]
    pub to: Option<u32>,
    /// Output format
    #[arg(long, default_value = "text", value_parser = value::format())]
    pub format: Format,
    /// Show which CPUs and nodes would be used; measure nothing
    #[arg(long)]
    pub dry_run: bool,
}

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
        return output::print(&probe.foreseen());
    }
    output::show_taken(&probe.run(&context)?, args.format)
}

fn tiering(args: &TieringArgs) -> Result<(), Failure> {
    let machine = read_machine(&Root::live())?.machine;
    let heat = match args.heat {
        HeatKind::Hot => Heat::hot(args.hot, args.share, args.size).map_err(of_option)?,
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
        tiers: Tiers::of(&machine, args.place).map_err(of_option)?,
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
    output::show_taken(&probe.run(&context)?, args.format)
}

/// Names the option that an error refuses.
fn of_option(error: MeasureError) -> Failure {
    match error {
        MeasureError::HotSet { .. } => Failure::of_option("--hot", error),
        MeasureError::NoTier { .. } => Failure::of_option("--place", error),
        error => error.into(),
    }
}
