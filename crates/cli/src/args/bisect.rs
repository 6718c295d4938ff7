//! Arguments of `numalab study bisect`.

use std::path::PathBuf;

use clap::Args;

use super::{Format, value};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab study bisect --tree linux --good v6.12 --bad v6.13 tiering --treatment balancing=2
  numalab study bisect --tree linux --config my.config --good v6.12 --bad HEAD mine.toml
  numalab study bisect --tree . --good 1.0 --bad main --build ./build.sh mine.toml
  numalab study bisect --tree . --good 1.0 --bad main --build ./build.sh mine.toml --dry-run

Each commit is built in a separate working tree, booted for every sample, and compared with the
good and the bad commit until it is clear which of them it resembles. --build runs in the commit's
tree, may keep files in $NUMALAB_BUILD, and prints the name of the result as its last line: a Linux
image, a kernel package (.deb), your own kernel ([backend.kernel]), or a program that the study's
commands name as {kernel}. A commit is skipped if the script exits with 1 to 125 or if the commit
does not boot; 126 and above end the search. Exit 0 if a commit is named, 4 if none is.")]
pub(crate) struct BisectArgs {
    /// A bundled study, or a file
    pub study: String,
    /// The git repository
    #[arg(long, value_name = "DIR")]
    pub tree: PathBuf,
    /// A commit that is good
    #[arg(long, value_name = "REVISION")]
    pub good: String,
    /// A later commit that is bad
    #[arg(long, value_name = "REVISION")]
    pub bad: String,
    /// Metric that became worse, as WORKLOAD.METRIC (default: the study's primary one)
    #[arg(long, value_name = "METRIC")]
    pub metric: Option<String>,
    /// Treatment of the study under which commits are judged (default: the only one)
    #[arg(long, value_name = "NAME")]
    pub treatment: Option<String>,
    /// Script that builds a commit (default: make a Linux image)
    #[arg(long, value_name = "SCRIPT", conflicts_with = "config")]
    pub build: Option<PathBuf>,
    /// Configuration of the Linux images (default: x86's, plus what guests need)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Probability that the search names a wrong commit
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = value::percent)]
    pub error: f64,
    /// Changes up to this percentage count as no change (default: the study's margin)
    #[arg(long, value_name = "PERCENT", value_parser = value::percent)]
    pub margin: Option<f64>,
    /// Maximum number of samples of one commit
    #[arg(long, value_name = "N", default_value_t = 32)]
    #[arg(value_parser = clap::value_parser!(u16).range(3..=1000))]
    pub samples: u16,
    /// Seed of the samples (default: from the clock; always recorded)
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Parent of the result directory
    #[arg(short, long, value_name = "DIR", default_value = "results")]
    pub output: PathBuf,
    /// Output format
    #[arg(long, default_value = "text", value_parser = value::format())]
    pub format: Format,
    /// Show what would be done; build and write nothing
    #[arg(long)]
    pub dry_run: bool,
}
