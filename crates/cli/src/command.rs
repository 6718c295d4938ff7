//! The command line: one module for each command, the parts that measuring commands share, and the
//! dispatch of commands.

mod acpi;
mod advise;
mod bandwidth;
mod bind;
mod bisect;
mod compare;
mod completions;
mod emulate;
mod explore;
mod fleet;
mod guest;
mod health;
mod kind;
mod knobs;
mod latency;
mod machine;
mod man;
mod mark;
mod measure;
mod measuring;
mod own;
mod probe;
mod profile;
mod ranks;
mod report;
mod scale;
mod self_test;
mod study;
mod topology;
mod wrapper;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::args::{
    BandwidthArgs, CompareArgs, GuestArgs, LatencyArgs, MarkArgs, MeasureArgs, Redact, ReportArgs,
    TopologyArgs, VERSION,
};
use crate::failure::Failure;
use kind::KindCommand;

/// Version with target and compiler, for `--version`; `-V` prints one line.
const LONG_VERSION: &str = concat!(env!("NUMALAB_VERSION"), "\nbuilt for ", env!("NUMALAB_BUILD"));

/// Measure what memory placement costs on a machine, and whether a change really helps.
#[derive(Debug, Parser)]
#[command(name = "numalab", version = VERSION, long_version = LONG_VERSION, propagate_version = true, max_term_width = 100)]
#[command(after_help = "\
Start here:
  numalab measure                    the whole machine, in about a minute
  numalab topology                   nodes, CPUs and caches of this machine
  numalab latency --nodes 0,1        memory of node 1 compared with node 0
  numalab compare results/A results/B   what changed between two runs
  numalab study run noise            false positives: how often this machine
                                     sees a difference where there is none
  numalab guest run --emulate 4 --cpus 8 -- numalab topology
                                     a four-node machine as a guest

Exit codes:
  0  done                            3  this machine lacks what is needed
  1  failed while running            4  --fail-if or --expect fails; health: failing
  2  usage or bad input              5  a check found errors in its input
                                     6  health: degraded, or uncertain
                                     7  --fail-if: nothing can be decided
bind, emulate, mark, profile, knobs run and guest run exit with the code of the command they run,
with 125 if they fail themselves, 126 if it cannot be run, and 127 if it is not found.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Redact the host's name, command lines, paths and your user name in pages
    /// [default: yes for md and html, no for text]
    #[arg(long, global = true, value_enum, value_name = "YES|NO", display_order = 1000)]
    pub redact: Option<Redact>,
    /// Print only the result, without progress and hints
    #[arg(short, long, global = true, display_order = 999)]
    pub quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure latency, bandwidth and caches of this machine, and write a report
    Measure(MeasureArgs),
    /// Measure memory latency by buffer size, CPU and node
    Latency(LatencyArgs),
    /// Measure memory bandwidth by kernel, CPUs and node
    Bandwidth(BandwidthArgs),
    #[command(flatten)]
    Kind(KindCommand),
    /// Compare two results: what changed, and whether it exceeds the noise
    Compare(CompareArgs),
    /// Test whether a change really helps: randomised blocks, paired analysis, a verdict
    Study(study::StudyArgs),
    /// Find the right placement for a program: predict, then try
    Advise(Box<advise::AdviseArgs>),
    /// Show how a program uses its memory: which threads use what, from which node, and when
    Profile(Box<profile::ProfileArgs>),
    /// Run a program as if on any NUMA machine, and report what its memory would cost there
    Emulate(Box<emulate::EmulateArgs>),
    /// Show where memory is now: per process, per node, per guest, or in a heap dump
    Explore(explore::ExploreArgs),
    /// Run a command with its memory bound to chosen nodes, rank by rank
    Bind(bind::BindArgs),
    /// Measure scaling from one rank to all cores of chosen nodes, under SLURM, MPI or neither
    Scale(scale::ScaleArgs),
    /// Boot guests with any NUMA topology, and run commands in them
    Guest(Box<GuestArgs>),
    /// Show NUMA nodes, CPUs, caches, memory and distances
    Topology(TopologyArgs),
    /// Describe machines and their memory: machine files, ACPI tables, a self-test of numalab
    Machine(machine::MachineFileArgs),
    /// Show, set and restore kernel settings that affect memory
    Knobs(knobs::KnobsArgs),
    /// Measure every host of a cluster the same way, find outliers, and check the health of one
    Fleet(fleet::FleetArgs),
    /// Regenerate the report of a result directory from its raw samples
    Report(ReportArgs),
    /// Run a command between markers that the memory emulator recognises
    Mark(MarkArgs),
    /// Print a completion script for a shell
    #[command(
        after_help = "Examples:\n  . <(numalab completions bash)              for this shell\n  numalab completions zsh > _numalab         into a directory of $fpath"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages
    #[command(after_help = "Example:\n  numalab man ~/.local/share/man/man1")]
    Man {
        /// Directory for the pages; created if missing
        directory: PathBuf,
    },
}

/// Runs a command and returns its exit code. `guest run` and similar commands pass on the exit code
/// of the command that they run.
pub(crate) fn run(command: Command) -> Result<ExitCode, Failure> {
    let done = match command {
        Command::Guest(args) => return guest::run(&args.command),
        Command::Knobs(args) => return knobs::run(&args.command),
        Command::Machine(args) => machine::run(&args.command),
        Command::Mark(args) => return mark::run(&args).map_err(Failure::of_wrapper),
        Command::Advise(args) => advise::run(&args),
        Command::Profile(args) => return profile::run(&args),
        Command::Emulate(args) => return emulate::run(&args).map_err(Failure::of_wrapper),
        Command::Measure(args) => measure::run(&args),
        Command::Topology(args) => topology::run(&args),
        Command::Latency(args) => latency::run(&args),
        Command::Bandwidth(args) => bandwidth::run(&args),
        Command::Kind(command) => kind::run(&command),
        Command::Study(args) => return study::run(&args.command),
        Command::Bind(args) => return bind::run(&args).map_err(Failure::of_wrapper),
        Command::Scale(args) => scale::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Explore(args) => explore::run(&args),
        Command::Fleet(args) => fleet::run(&args.command),
        Command::Report(args) => report::run(&args),
        Command::Completions { shell } => completions::run(shell),
        Command::Man { directory } => man::run(&directory),
    };
    done.map(|()| ExitCode::SUCCESS)
}
