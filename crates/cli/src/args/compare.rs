//! Arguments of `numalab compare`.

use std::path::PathBuf;

use clap::Args;
use numalab_stats::Direction;

use super::{FailIf, Format, value};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab compare results/before results/after       two runs: shown, not judged
  numalab compare results/new --baseline results/good/*    one run against several: judged
  numalab compare results/new/* --baseline results/good --margin 3 --fail-if worse
                                                     results/good holds runs of --repeat
  numalab compare results/mine-1 results/mine-2      two runs of a study
  numalab compare captured.toml results/after        a machine file and a run: every figure, in %
  numalab compare captured.toml graviton3            two machine files
  numalab compare before.txt after.txt               two files of numbers
  numalab compare before.log after.log --metric 'Time elapsed: {seconds} s'
  numalab compare --commands './old' './new'         alternated, in random order
  numalab compare --commands './old' './new' --metric 'rate {x/s}' --better higher

Runs on one machine differ by more than the windows of a single run show, and runs taken back to
back share the state of the machine. Runs begun within half an hour count as one, and a change is
judged with four such units or more. Two files cannot show drift between them, or a state that lasts
as long as a file: with ten values or more each, only a difference is reported. Prefer --commands,
which alternates the two.")]
pub(crate) struct CompareArgs {
    /// Baseline and candidate: two result directories, two files of numbers or logs, or a machine file
    /// (or the name of a bundled one) with a result directory or a second machine file; with
    /// --baseline, one or more result directories of the candidate
    #[arg(value_name = "RESULT", required_unless_present = "commands")]
    pub results: Vec<PathBuf>,
    /// Result directories of the baseline, or the directory that `measure --repeat` made
    #[arg(long, value_name = "DIR", num_args = 1.., requires = "results")]
    pub baseline: Vec<PathBuf>,
    /// Run these two shell commands alternately as a study, kept in a result directory
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "results")]
    pub commands: Option<Vec<String>>,
    /// Pattern of the number in the output: 'Time elapsed: {seconds} s' [default with --commands:
    /// the run time]
    #[arg(long, value_name = "PATTERN")]
    pub metric: Option<String>,
    /// Direction in which the number improves, for files and commands [default: that of a time, such as {us}, or
    /// of a rate, such as {GB/s} or {IOPS}, if the pattern names one; lower for bare numbers and run times]
    #[arg(long, value_parser = value::direction())]
    pub better: Option<Direction>,
    /// With --commands: number of blocks (each block runs both once)
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = value::blocks, conflicts_with = "results")]
    pub blocks: usize,
    /// With --commands: random seed [default: from the clock; always recorded]
    #[arg(long, value_name = "N", conflicts_with = "results")]
    pub seed: Option<u64>,
    /// With --commands: keep the results in a new directory under DIR
    #[arg(short, long, value_name = "DIR", default_value = "results", conflicts_with = "results")]
    pub output: PathBuf,
    /// With --commands: show what would be run; start and write nothing
    #[arg(long, conflicts_with = "results")]
    pub dry_run: bool,
    /// Changes up to this percentage count as no change [default: 5 for a machine file, else 2]
    #[arg(long, value_name = "PERCENT")]
    pub margin: Option<f64>,
    /// Exit 4 if anything is worse by more than the margin, 7 if nothing is decided
    #[arg(long, value_name = "WHAT")]
    pub fail_if: Option<FailIf>,
    /// Output format
    #[arg(long, default_value = "text", value_parser = value::format())]
    pub format: Format,
}
