//! The command line as typed.

mod advise;
mod bind;
mod bisect;
mod compare;
mod emulate;
mod explore;
mod fleet;
mod guest;
mod guest_value;
mod health;
mod knobs;
mod machine;
mod mark;
mod measuring;
mod memory_emulator;
mod probe;
mod ranks;
mod raw;
mod scale;
mod self_test;
mod study;
mod topology;
mod value;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use numalab_measure::plan::MatrixShape;
use numalab_record::{AccessPattern, StreamKernel};

pub(crate) use advise::AdviseArgs;
pub(crate) use bind::{BindArgs, Policy};
pub(crate) use bisect::BisectArgs;
pub(crate) use compare::CompareArgs;
pub(crate) use emulate::{EmulateArgs, ThreadPlacement};
pub(crate) use explore::ExploreArgs;
pub(crate) use fleet::{CollectArgs, FleetArgs, FleetCommand, FleetReportArgs, SubmitArgs};
pub(crate) use guest::{
    Accel, BootArgs, ContentArgs, GuestArgs, GuestCommand, ImageArgs, PinArgs, RunArgs, ShellArgs,
};
pub(crate) use guest_value::BootKernel;
pub(crate) use health::HealthArgs;
pub(crate) use knobs::{KnobListArgs, KnobRestoreArgs, KnobRunArgs, KnobsArgs, KnobsCommand};
pub(crate) use machine::{CaptureArgs, MachineCommand, MachineFileArgs};
pub(crate) use mark::{MarkArgs, Phase};
pub(crate) use measuring::{Format, Measuring, Output, Rules, Selection};
pub(crate) use memory_emulator::{MemoryCostArgs, MemoryEmulatorArgs};
pub(crate) use probe::{
    AccessKind, BalancingArgs, HeatKind, PlaceKind, ProbeArgs, ProbeCommand, TieringArgs,
};
pub(crate) use ranks::{Chain, ChaseArgs, RankArgs};
pub(crate) use scale::ScaleArgs;
pub(crate) use self_test::SelfTestArgs;
pub(crate) use study::{
    Change as StudyChange, NewArgs as StudyNewArgs, PlanArgs as StudyPlanArgs,
    ReportArgs as StudyReportArgs, ResumeArgs as StudyResumeArgs, RunArgs as StudyRunArgs,
    Show as StudyShow, StudyArgs, StudyCommand,
};
pub(crate) use topology::{
    AcpiArgs, AcpiCommand, MachineArgs, TableArgs, TopologyArgs, TopologyFormat,
};
pub(crate) use value::{CpuList, SizeList, Weights};

/// The version, and what this program was built from.
pub(crate) const VERSION: &str = env!("NUMALAB_VERSION");

/// The version with what the program was built for and by: `--version`, where `-V` is one line.
const LONG_VERSION: &str = concat!(env!("NUMALAB_VERSION"), "\nbuilt for ", env!("NUMALAB_BUILD"));

/// What memory placement costs on a machine, and whether a change really helps.
#[derive(Debug, Parser)]
#[command(name = "numalab", version = VERSION, long_version = LONG_VERSION, propagate_version = true, max_term_width = 100)]
#[command(after_help = "\
Start here:
  numalab measure                    the whole machine, in about a minute
  numalab topology                   what this machine is
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
                                     6  health: degraded, or not certain
bind, emulate, mark, knobs run and guest run end with the exit code of the command they run; they
exit 125 if they fail themselves, 126 if it cannot be run, and 127 if it is not found.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Leave the host's name, command lines, paths and your user name out of pages
    /// [default: yes for md and html, no for text]
    #[arg(long, global = true, value_enum, value_name = "WHETHER", display_order = 1000)]
    pub redact: Option<Redact>,
}

/// Whether pages are made to be sent to anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Redact {
    /// A hash stands for what is left out
    Yes,
    /// Everything is shown
    No,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure latency, bandwidth and caches of this machine, and write a report
    Measure(MeasureArgs),
    /// Show NUMA nodes, CPUs, caches, memory and distances
    Topology(TopologyArgs),
    /// Decode, check and build ACPI tables: SRAT, SLIT, HMAT, MADT, CEDT
    Acpi(AcpiArgs),
    /// Measure memory latency by buffer size, CPU and node
    Latency(LatencyArgs),
    /// Measure memory bandwidth by kernel, CPUs and node
    Bandwidth(BandwidthArgs),
    /// Measure memory latency under load from other CPUs
    Loaded(LoadedArgs),
    /// Measure core-to-core latency: a cache line passed between two CPUs
    C2c(C2cArgs),
    /// Test whether a change really helps: randomized blocks, paired analysis, a verdict
    Study(StudyArgs),
    /// Find the commit that made a metric worse: build, boot and sample until decided
    Bisect(Box<BisectArgs>),
    /// Compare two results: what changed, and whether it exceeds the noise
    Compare(CompareArgs),
    /// Show where memory is now: per process, per node, per guest, or in a heap dump
    Explore(ExploreArgs),
    /// Measure every host of a cluster the same way, and find the outliers
    Fleet(FleetArgs),
    /// Check in seconds whether this machine is as good as its baseline, for health checks
    Health(HealthArgs),
    /// Run a command with its memory bound to chosen nodes, rank by rank
    Bind(BindArgs),
    /// Measure scaling from one rank to all cores of chosen nodes, under SLURM, MPI or neither
    Scale(ScaleArgs),
    /// Boot guests with any NUMA topology, and run commands in them
    Guest(Box<GuestArgs>),
    /// Which placement is right for a program: predicted, then tried
    Advise(Box<AdviseArgs>),
    /// Run a program as on any NUMA machine: what its memory would cost there
    Emulate(Box<EmulateArgs>),
    /// Run a command between markers that the memory emulator recognizes
    Mark(MarkArgs),
    /// Machine files: what a machine is and what its memory costs
    Machine(MachineFileArgs),
    /// Show, set and restore kernel settings that affect memory
    Knobs(KnobsArgs),
    /// Test one kernel behavior, such as whether memory follows its thread
    Probe(ProbeArgs),
    /// Test what numalab does on a machine of several nodes, and print the evidence
    #[command(name = "selftest")]
    SelfTest(SelfTestArgs),
    /// Regenerate the report of a result directory from its raw samples
    Report(ReportArgs),
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
        /// Directory for the pages; made if it is not there
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab measure                          about a minute, results/measure-<time>/
  numalab measure --quick --repeat 5 --label good
                                           a baseline: five runs in one directory
  numalab measure --quick --baseline results/measure-20261121-024500-good --fail-if worse
                                           a health check: exit 4 if anything is worse by more
                                           than the margin
  numalab measure --resume results/measure-20261121-024500
                                           continue after an interruption
  numalab measure --dry-run                what would be measured, and how long it takes")]
pub(crate) struct MeasureArgs {
    /// A shorter run: one CPU per node, fewer sizes and kernels
    #[arg(long, conflicts_with = "thorough")]
    pub quick: bool,
    /// A longer run: every CPU, sizes up to 8 GiB, all pairs
    #[arg(long)]
    pub thorough: bool,
    #[command(flatten)]
    pub given: Measuring,
    /// Continue the interrupted run in this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["quick", "thorough", "dry_run", "label", "seed", "output", "cpus", "nodes", "pages", "precision", "budget"])]
    pub resume: Option<PathBuf>,
    /// Take so many runs, and keep them in one directory
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=100), conflicts_with = "resume")]
    pub repeat: u8,
    /// Compare with earlier result directories, or with those of `--repeat` in one directory;
    /// judged only with several runs
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub baseline: Vec<PathBuf>,
    /// With --baseline: exit 4 if anything is worse by more than the margin
    #[arg(long, value_name = "WHAT", requires = "baseline")]
    pub fail_if: Option<FailIf>,
    /// With --baseline: changes up to this percentage count as no change
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    pub margin: f64,
}

/// What makes a comparison fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailIf {
    /// Anything is worse by more than the margin, for sure
    Worse,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab latency                          curve over sizes, then the cpu x node matrix
  numalab latency --size 256M --per node   node x node, one cpu for each node
  numalab latency --size=1-16384           the sizes in MB, powers of two
  numalab latency --size 1G --pages 4k     page walks included
  numalab latency --size 512M --concurrent   all cpus at once: interference
  srun -n8 --cpu-bind=map_cpu:1,9,17,25,33,41,49,57 numalab latency --size=1-16384
                                           one rank per CPU, with a table of all ranks
  numalab latency --ranks 4 --size=1-512 --csv=four.csv")]
pub(crate) struct LatencyArgs {
    /// A size, a range or a list: 256M, 16K-1G, 1-16384 (MB), 32K,1M,1G
    #[arg(long, value_name = "SIZES")]
    pub size: Option<SizeList>,
    /// Access order: page-local (random within each large page or 64 small ones, so that loads
    /// hit the TLB), random, stride:N, sequential, one-line-per:N (what the TLB holds),
    /// fisher-yates (words) [default: page-local on large pages, random on 4k]
    #[arg(long, value_name = "PATTERN")]
    pub pattern: Option<AccessPattern>,
    /// Which CPUs represent a node: every CPU, or only the first
    #[arg(long, value_enum, default_value_t = Per::Cpu)]
    pub per: Per,
    /// Chase on all selected CPUs at once
    #[arg(long, conflicts_with = "serial")]
    pub concurrent: bool,
    /// Chase on one CPU at a time (the default); see --both for both modes
    #[arg(long)]
    pub serial: bool,
    /// Chase on one CPU at a time, then on all at once, in one table
    #[arg(long, conflicts_with_all = ["serial", "concurrent"])]
    pub both: bool,
    /// Print a row per worker and a column per size
    #[arg(long)]
    pub table: bool,
    #[command(flatten)]
    pub ranks: RankArgs,
    #[command(flatten)]
    pub chase: ChaseArgs,
    #[command(flatten)]
    pub given: Measuring,
}

/// Which CPUs represent a node in a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Per {
    /// Each of its cpus
    Cpu,
    /// One cpu for each node
    Node,
}

impl From<Per> for MatrixShape {
    fn from(per: Per) -> Self {
        match per {
            Per::Cpu => Self::PerCpu,
            Per::Node => Self::PerNode,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab bandwidth                        every kernel on one cpu and on all, node x node
  numalab bandwidth --kernel read,triad --cpus 0-7
  numalab bandwidth --kernel read --pattern random
  numalab bandwidth --kernel copy-nt --isa avx2 --size 1G
  mpirun -n 8 numalab bandwidth --kernel triad --size=64-512 --csv=eight.csv

Bytes are counted as the program asked to move them (as STREAM does): write, copy
and triad with ordinary stores move one more line for each line stored.")]
pub(crate) struct BandwidthArgs {
    /// Kernels: read, write, write-nt, copy, copy-nt, triad
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = value::kernel)]
    pub kernel: Vec<StreamKernel>,
    /// Total size of each worker's buffers; ranks take several sizes: 1-512 (MB), 64M,1G
    #[arg(long, value_name = "SIZE")]
    pub size: Option<SizeList>,
    /// Access order: sequential, stride:N, random
    #[arg(long, value_name = "PATTERN", default_value = "sequential")]
    pub pattern: AccessPattern,
    /// Instruction set: sse2, avx2, avx512, neon, sve (default: the widest this CPU has)
    #[arg(long, value_name = "ISA")]
    pub isa: Option<String>,
    /// Ranks take turns instead of streaming at once
    #[arg(long)]
    pub serial: bool,
    #[command(flatten)]
    pub ranks: RankArgs,
    #[command(flatten)]
    pub given: Measuring,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab loaded                           chase on the first CPU, load from the others of its node
  numalab loaded --kernel write --cpus 0-15
  numalab loaded --chaser-node 1           measure latency to memory of node 1
  numalab loaded --surface --dry-run       the plan of all of it, and how long it takes
  numalab loaded --surface -o results      every kernel, node, and side that loads")]
pub(crate) struct LoadedArgs {
    /// What the load generators do: read, write, write-nt, copy, copy-nt, triad, or a list
    /// (default: read; with --surface all, which read 100 to 50 % of the bytes they move, or
    /// write past the caches)
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = value::kernel)]
    pub kernel: Vec<StreamKernel>,
    /// Load the memory of every node, from the CPUs of the chaser's node and from the others'
    #[arg(long, conflicts_with = "chaser_node")]
    pub surface: bool,
    /// Bytes of each worker's buffer
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = value::size)]
    pub size: u64,
    /// Node of the memory whose latency is measured (default: the nearest)
    #[arg(long, value_name = "NODE")]
    pub chaser_node: Option<u32>,
    #[command(flatten)]
    pub given: Measuring,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab c2c                              all pairs; a stratified sample on large machines
  numalab c2c --cpus 0,8,16                only these CPUs")]
pub(crate) struct C2cArgs {
    /// Maximum number of pairs, approximately
    #[arg(long, value_name = "N", default_value_t = 2_016)]
    pub pairs: usize,
    #[command(flatten)]
    pub given: Measuring,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab report results/measure-20261121-024500           regenerate report.md and report.html
  numalab report results/measure-20261121-024500 --format json
  numalab report results_scaling                           all runs of numalab scale below it
  numalab report results_scaling/job_123456 --format csv   statistics over ranks, a line a step
  numalab report sequential_domain0_8ranks_16MB.csv        one file of the suite
  numalab report memory.json                               a report of the memory emulator")]
pub(crate) struct ReportArgs {
    /// The result directory of any command, a CSV of numalab scale, or the file of a memory
    /// emulator
    #[arg(value_name = "DIR|FILE")]
    pub place: PathBuf,
    /// Print it instead of writing report.md and report.html
    #[arg(long, value_enum)]
    pub format: Option<Format>,
}
