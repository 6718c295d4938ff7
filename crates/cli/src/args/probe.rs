//! Arguments of the probes.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::{Format, value};

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    #[command(subcommand)]
    pub command: ProbeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProbeCommand {
    /// Move a thread to another node: does the kernel migrate its memory?
    Balancing(BalancingArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab probe balancing                  the first cpu, then the first of the farthest node
  numalab knobs run numa_balancing=0 -- numalab probe balancing --time 10s
  numalab probe balancing --from 0 --to 12 --size 256M --format json")]
pub(crate) struct BalancingArgs {
    /// Size of the memory, which is placed by first touch
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = value::size)]
    pub size: u64,
    /// How long the thread chases after the move
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = value::duration)]
    pub time: Duration,
    /// CPU on the node that gets the memory (default: the first)
    #[arg(long, value_name = "CPU")]
    pub from: Option<u32>,
    /// CPU to which the thread moves (default: one on the farthest node)
    #[arg(long, value_name = "CPU")]
    pub to: Option<u32>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Show which cpus and nodes it would use; measure nothing
    #[arg(long)]
    pub dry_run: bool,
}
