//! `numalab machine`: files that describe a machine and the costs of its memory.

mod capture;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use numalab_formats::gallery;
use numalab_record::system::{BundledMachine, MachineList};

use super::acpi;
use super::self_test::{self, SelfTestArgs};
use crate::args::{AcpiArgs, Format, Rules, Selection, value};
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct MachineFileArgs {
    #[command(subcommand)]
    pub command: MachineCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MachineCommand {
    /// List the bundled machine files
    #[command(after_help = "\
Examples:
  numalab machine list
  numalab machine list --format json")]
    List {
        /// Output format
        #[arg(long, default_value = "text", value_parser = value::format())]
        format: Format,
    },
    /// Print a bundled machine file: a machine's figures and their sources
    #[command(after_help = "\
Examples:
  numalab machine show epyc-7763-nps4
  numalab machine show epyc-7763-nps4 > epyc.toml    to change it, for --topology epyc.toml")]
    Show {
        /// A name listed by `machine list`
        machine: String,
    },
    /// Write a machine file with the measured figures of this machine, or of a result directory
    #[command(after_help = "\
Examples:
  numalab machine capture -o here.toml                         measures all of it first
  numalab machine capture --quick -o here.toml                 a third of the work
  numalab machine capture --from results/measure-20261121-024500 > captured.toml
  numalab guest run --emulate-like captured.toml -- numalab latency
  numalab compare captured.toml results/after                  has it changed?

What was not measured is left out, with a comment in the file. Load curves of a node's memory
are taken from runs of `numalab loaded --surface`, or from Mess.")]
    Capture(CaptureArgs),
    /// Decode, check and build ACPI tables: SRAT, SLIT, HMAT, MADT, CEDT
    Acpi(AcpiArgs),
    /// Test numalab on a machine with several nodes, and print the evidence
    #[command(name = "selftest")]
    SelfTest(SelfTestArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CaptureArgs {
    /// Use the figures of this run instead of measuring
    #[arg(long, value_name = "RESULT", conflicts_with_all = ["cpus", "nodes", "pages", "budget", "seed", "results", "dry_run"])]
    pub from: Option<PathBuf>,
    /// Take the load curves of every node's memory from Mess: its memory_curves.csv, or a directory
    /// of bwlat_PERCENT.txt
    #[arg(long, value_name = "CURVES")]
    pub mess: Option<PathBuf>,
    /// Measure fewer sizes, and load memory only by loads alone and by stores alone
    #[arg(long, conflicts_with = "from")]
    pub quick: bool,
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub rules: Rules,
    /// Write the machine file to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Keep the measured results in a new directory under DIR
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Show what would be measured and how long it takes; start and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub(crate) fn run(command: &MachineCommand) -> Result<(), Failure> {
    match command {
        MachineCommand::List { format } => list(*format),
        MachineCommand::Show { machine } => output::print(known(machine)?),
        MachineCommand::Capture(args) => capture::run(args),
        MachineCommand::Acpi(args) => acpi::run(&args.command),
        MachineCommand::SelfTest(args) => self_test::run(args),
    }
}

fn list(format: Format) -> Result<(), Failure> {
    let machine = |(name, text): &(&str, &str)| BundledMachine {
        name: (*name).to_owned(),
        title: gallery::title(text).to_owned(),
    };
    output::show(&MachineList { machines: gallery::MACHINES.iter().map(machine).collect() }, format)
}

/// Returns the text of a bundled machine file.
fn known(name: &str) -> Result<&'static str, Failure> {
    gallery::machine(name).ok_or_else(|| {
        let names: Vec<&str> = gallery::names().collect();
        Failure::bad_input(format!("{name}: expected one of {}", names.join(", ")))
    })
}
