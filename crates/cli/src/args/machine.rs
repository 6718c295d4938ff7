//! Arguments of the commands about machine files.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{AcpiArgs, Rules, Selection, SelfTestArgs};

#[derive(Debug, Args)]
pub(crate) struct MachineFileArgs {
    #[command(subcommand)]
    pub command: MachineCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MachineCommand {
    /// List the machines that come with numalab
    #[command(after_help = "Example:\n  numalab machine list")]
    List,
    /// Print the file of a machine that comes with numalab: its figures and their sources
    #[command(after_help = "\
Examples:
  numalab machine show epyc-7763-nps4
  numalab machine show epyc-7763-nps4 > epyc.toml    to change it, for --topology epyc.toml")]
    Show {
        /// A name that `machine list` prints
        machine: String,
    },
    /// Write this machine, or that of a result directory, as a machine file with what was measured
    #[command(after_help = "\
Examples:
  numalab machine capture -o here.toml                         measures all of it first
  numalab machine capture --quick -o here.toml                 a third of the work
  numalab machine capture --from results/measure-20261121-024500 > captured.toml
  numalab guest run --emulate-like captured.toml -- numalab latency
  numalab compare captured.toml results/after                  has it changed?

What was not measured is left out, and said in the file's comments. Load on a node's memory is
taken from runs of `numalab loaded --surface`, or from curves of Mess.")]
    Capture(CaptureArgs),
    /// Decode, check and build ACPI tables: SRAT, SLIT, HMAT, MADT, CEDT
    Acpi(AcpiArgs),
    /// Test what numalab does on a machine of several nodes, and print the evidence
    #[command(name = "selftest")]
    SelfTest(SelfTestArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CaptureArgs {
    /// Take what a run measured, in place of measuring
    #[arg(long, value_name = "RESULT", conflicts_with_all = ["cpus", "nodes", "pages", "budget", "seed", "results", "dry_run"])]
    pub from: Option<PathBuf>,
    /// Take the load on every node's memory from Mess: its memory_curves.csv, or a directory of
    /// bwlat_PERCENT.txt
    #[arg(long, value_name = "CURVES")]
    pub mess: Option<PathBuf>,
    /// Measure fewer sizes, and load memory by loads alone and by stores alone only
    #[arg(long, conflicts_with = "from")]
    pub quick: bool,
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub rules: Rules,
    /// Write the machine file to FILE, in place of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Keep the measured results in a new directory under DIR
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Show what would be measured and how long it takes; start and write nothing
    #[arg(long)]
    pub dry_run: bool,
}
