//! Arguments of `numalab fleet health`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Output, Selection, value};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab measure --quick --repeat 5 --label good
                                           the baseline: on a healthy machine
  numalab fleet health --baseline results/measure-20261121-024500-good
                                           at most 10 s; one line that says what is wrong
  numalab fleet health -q --baseline results/measure-20261121-024500-good
                                           only that line, as a drain reason
  numalab fleet health --baseline results/measure-20261121-024500-good --dry-run
                                           what would be measured

It measures the core clock, and the local latency and bandwidth of each node, as in the baseline,
and measures again what looks worse. A figure is worse if it exceeds both the limit and the
differences between runs of the baseline. All memory and CPUs of the baseline must be present.
Exit codes: 0 healthy, 4 failing, 6 degraded, or uncertain because of other load; others as always.")]
pub(crate) struct HealthArgs {
    /// Result directories of three runs or more, or one directory with those of `--repeat`; of this
    /// machine, or of others of its kind
    #[arg(long, value_name = "DIR", num_args = 1.., required = true)]
    pub baseline: Vec<PathBuf>,
    /// Figures worse by more than this percentage are degraded: exit 6
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0)]
    pub degraded: f64,
    /// Figures worse by more than this percentage fail the check: exit 4
    #[arg(long, value_name = "PERCENT", default_value_t = 20.0)]
    pub failing: f64,
    /// Total time, such as 5s; half of it is for repeating suspicious measurements
    #[arg(long, value_name = "TIME", default_value = "9s", value_parser = value::duration)]
    pub budget: Duration,
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub output: Output,
}
