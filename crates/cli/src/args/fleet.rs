//! Arguments of `numalab fleet`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Format, HealthArgs, value};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab fleet submit --partition standard /scratch/fleet --dry-run
                                           the script and what would be submitted
  numalab fleet submit --partition standard /scratch/fleet
                                           a job array: about 10 s for each host, exclusively
  numalab fleet collect /scratch/fleet     new and changed results into fleet.jsonl
  numalab fleet report /scratch/fleet      outliers, and how their settings differ")]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub command: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Submit a SLURM job array that measures each host of a partition the same way
    Submit(SubmitArgs),
    /// Collect new and changed results into one file
    Collect(CollectArgs),
    /// Show outliers among hosts, sockets and memory nodes
    Report(FleetReportArgs),
    /// Check in seconds whether this machine is as good as its baseline
    Health(HealthArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab fleet submit --partition standard /scratch/fleet --dry-run
  numalab fleet submit --hosts 'nid[001000-001063]' /scratch/fleet --at-once 16
  numalab fleet submit /scratch/fleet -- bandwidth --kernel read,triad --budget 30s

Results go to DIR/hosts/HOST/; every host must be able to access DIR and this program. Each task is
bound to one host and has it exclusively (--exclusive); hosts that are down or drained are skipped.")]
pub(crate) struct SubmitArgs {
    /// Directory of the fleet, on a file system shared by all hosts
    pub directory: PathBuf,
    /// The partition (default: SLURM's own default)
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Only these hosts, as SLURM writes them: n1,n2 or n[1-64]
    #[arg(long, value_name = "HOSTS")]
    pub hosts: Option<String>,
    /// Maximum number of hosts measured at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub at_once: Option<u32>,
    /// Time limit of each task in minutes
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub minutes: u32,
    /// Print the script and the commands; submit nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Command that each host runs: a measuring command of numalab (default: measure --quick)
    #[arg(last = true, value_name = "COMMAND")]
    pub measure: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  numalab fleet collect /scratch/fleet")]
pub(crate) struct CollectArgs {
    /// Directory of the fleet, with results in DIR/hosts/HOST/RUN/
    pub directory: PathBuf,
    /// The file (default: fleet.jsonl in DIR)
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// Show how many results would be read; write nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab fleet report /scratch/fleet
  numalab fleet report /scratch/fleet --format html > fleet.html
  numalab fleet report /scratch/fleet --format csv | sort -t, -k5 -g    one outlier per line")]
pub(crate) struct FleetReportArgs {
    /// Directory of the fleet
    pub directory: PathBuf,
    /// The file (default: fleet.jsonl in DIR)
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// Output format
    #[arg(long, default_value = "text", value_parser = value::format())]
    pub format: Format,
}
