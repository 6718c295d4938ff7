//! Arguments of the probes.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::value;

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    #[command(subcommand)]
    pub command: ProbeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProbeCommand {
    /// Memory on one node, its thread moved to another: does the kernel move the memory?
    Balancing(BalancingArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab probe balancing                  the first cpu, then the first of the farthest node
  numalab knobs run numa_balancing=0 -- numalab probe balancing --time 10s
  numalab probe balancing --from 0 --to 12 --size 256M --format json")]
pub(crate) struct BalancingArgs {
    /// Bytes of memory; it is under no policy but first touch
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = value::size)]
    pub size: u64,
    /// How long the thread chases after it was moved
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = value::duration)]
    pub time: Duration,
    /// The cpu whose node gets the memory (default: the first)
    #[arg(long, value_name = "CPU")]
    pub from: Option<u32>,
    /// The cpu that the thread moves to (default: one of the farthest node)
    #[arg(long, value_name = "CPU")]
    pub to: Option<u32>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = ProbeFormat::Text)]
    pub format: ProbeFormat,
}

/// How a probe's answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProbeFormat {
    /// A few lines
    Text,
    /// With every window
    Json,
}
