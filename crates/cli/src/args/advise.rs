//! Arguments of `advise`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use numalab_stats::{Confidence, Direction, least_pairs};

use super::{Format, MachineArgs, MemoryCostArgs, value};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab advise --emulate-like xeon-8360y-2s -- ./solver    a machine that comes with numalab
  numalab advise --emulate 2 --cpus 8 -- ./solver            two nodes of four cpus
  numalab advise --emulate 2 --cpus 8 --predict-only -- ./solver
  numalab advise --emulate 2 --cpus 8 --try all -- ./solver
  numalab advise --emulate 2 --cpus 8 --try 4 --budget 10m -- ./solver
  numalab advise --emulate 2 --cpus 8 --metric 'rate {x/s}' --better higher -- ./solver
  numalab advise --emulate 2 --cpus 8 --format html -o advice.html -- ./solver

The program runs under QEMU's user mode (package qemu-user) on the machine that is named,
with its threads on all nodes in turn and its pages where they are touched first. What it
did to its memory tells what could be done; counts and latencies predict what each change
would bring. The best that need no change of the program are then tried there, in random
blocks with the program as it is, and so is first touch by the users of memory. The
program must end by itself, needs no terminal, and runs several times: its input is empty,
its output is not shown. Compile it with -g, so that lines of its source can be named.
A number that --metric reads should count work or events: the program's own clock is that
of this host, on which it is emulated, and what it prints of time is too.
Without --emulate-cache and --emulate-stages a machine has caches of 32K, 1M and 16M,
overlapping misses, lines that stores take from other caches, and TLBs. Pages are of
4 KiB, but where the program asks for huge ones (transparent_hugepage/enabled=madvise).
Exit code 1 if the program fails or does not end.")]
pub(crate) struct AdviseArgs {
    #[command(flatten)]
    pub machine: MachineArgs,
    #[command(flatten)]
    pub costs: MemoryCostArgs,
    /// Predict from one run; try nothing
    #[arg(long)]
    pub predict_only: bool,
    /// Number of candidates to try, best prediction first, or all
    #[arg(long = "try", value_name = "N|all", default_value = "2", value_parser = tries, conflicts_with = "predict_only")]
    pub tries: Tries,
    /// Number of blocks, 6 or more; each runs the program unchanged and once with each candidate.
    /// Raised where a verdict on that many candidates needs more
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = blocks, conflicts_with = "predict_only")]
    pub blocks: usize,
    /// Time limit for all trials, such as 10m: fewer blocks and candidates are run to meet it, none
    /// if even one candidate takes longer
    #[arg(long, value_name = "TIME", value_parser = value::duration, conflicts_with = "predict_only")]
    pub budget: Option<Duration>,
    /// Pattern of a number in the program's output, by which the trials judge in place of the
    /// program's time: 'rate {x/s}'
    #[arg(long, value_name = "PATTERN", conflicts_with = "predict_only")]
    pub metric: Option<String>,
    /// Which way the metric is better
    #[arg(long, value_parser = value::direction(), default_value = "lower", requires = "metric")]
    pub better: Direction,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Write the advice to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The command to use alone
    #[arg(short, long, conflicts_with = "format")]
    pub quiet: bool,
    /// Show the command line of QEMU; start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The program, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Candidates that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tries {
    /// So many of those that are likely to bring a gain.
    Best(usize),
    /// All that can be.
    All,
}

fn blocks(text: &str) -> Result<usize, String> {
    let count = value::blocks(text)?;
    let least = least_pairs(Confidence::P95.at_look(1).alpha());
    let enough = || format!("expected {least} or more: fewer give no interval");
    (count >= least).then_some(count).ok_or_else(enough)
}

fn tries(text: &str) -> Result<Tries, String> {
    if text == "all" {
        return Ok(Tries::All);
    }
    let count = text.parse().ok().filter(|count| (1..=16).contains(count));
    count.map(Tries::Best).ok_or_else(|| "expected 1 to 16, or all".to_owned())
}
