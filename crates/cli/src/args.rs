//! The arguments of commands as typed.

mod compare;
mod guest;
mod guest_value;
mod mark;
mod measuring;
mod memory_emulator;
mod report_to;
mod topology;
pub(crate) mod value;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use numalab_measure::MatrixShape;
use numalab_record::{AccessPattern, StreamKernel};
use numalab_results::Judgement;

pub(crate) use compare::CompareArgs;
pub(crate) use guest::{
    BootArgs, ContentArgs, GuestArgs, GuestCommand, ImageArgs, PinArgs, RunArgs, ShellArgs,
};
pub(crate) use guest_value::BootKernel;
pub(crate) use mark::{MarkArgs, Phase};
pub(crate) use measuring::{ChaseArgs, Measuring, Output, RankArgs, Rules, Selection};
pub(crate) use memory_emulator::{MemoryCostArgs, MemoryEmulatorArgs};
pub(crate) use report_to::ReportTo;
pub(crate) use topology::{
    AcpiArgs, AcpiCommand, EmulatedArgs, MachineArgs, TableArgs, TopologyArgs, TopologyFormat,
};
pub(crate) use value::SizeList;

pub(crate) use numalab_page::Format;

use crate::failure::{Code, Failure};
pub(crate) use crate::output::Redact;

/// Version of this program, with the build it comes from.
pub(crate) const VERSION: &str = env!("NUMALAB_VERSION");

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab measure                          about a minute, results/measure-<time>/
  numalab measure --quick --repeat 2 --label good
                                           part of a baseline: repeat it at other hours
  numalab measure --quick --baseline results/measure-*-good --fail-if worse
                                           a health check: exit 4 if anything is worse by more
                                           than the margin, 7 if nothing can be decided
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
    /// Take N runs and keep them in one directory
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=100), conflicts_with = "resume")]
    pub repeat: u8,
    /// Compare with earlier result directories, or with those of `--repeat` in one directory; judged
    /// only with runs from four or more occasions at least half an hour apart
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub baseline: Vec<PathBuf>,
    /// With --baseline: exit 4 if anything is worse by more than the margin, 7 if nothing is decided
    #[arg(long, value_name = "WHAT", requires = "baseline")]
    pub fail_if: Option<FailIf>,
    /// With --baseline: changes up to this percentage count as no change
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    pub margin: f64,
}

/// The condition under which a comparison fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailIf {
    /// Anything is shown to be worse by more than the margin
    Worse,
    /// Also if a tail (p99, p99.9) is shown to be worse
    Tails,
}

impl FailIf {
    /// Fails with exit code 4 if a result named by the condition is worse, and with 7 if nothing is
    /// decided.
    pub fn check(condition: Option<Self>, judgement: &Judgement) -> Result<(), Failure> {
        let Some(condition) = condition else { return Ok(()) };
        let tails = judgement.worse_tails.as_ref().filter(|_| condition == Self::Tails);
        match (judgement.worse.as_ref().or(tails), &judgement.undecided) {
            (Some(worse), _) => Err(Failure::new(Code::Worse, worse)),
            (None, Some(why)) => Err(Failure::new(Code::Undecided, why)),
            (None, None) => Ok(()),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab latency                          curve over sizes, then the CPU x node matrix
  numalab latency --size 256M --per node   node x node, one CPU for each node
  numalab latency --size=1-16384           the sizes in MB, powers of two
  numalab latency --size 1G --pages 4k     page walks included
  numalab latency --size 512M --concurrent   all CPUs at once: interference
  srun -n8 --cpu-bind=map_cpu:1,9,17,25,33,41,49,57 numalab latency --size=1-16384
                                           one rank per CPU, with a table of all ranks
  numalab latency --ranks 4 --size=1-512 --csv=four.csv")]
pub(crate) struct LatencyArgs {
    /// A size, a range or a list: 256M, 16K-1G, 1-16384 (MB), 32K,1M,1G
    #[arg(long, value_name = "SIZES", value_parser = value::sizes)]
    pub size: Option<SizeList>,
    /// Access order: page-local (one of each pair of lines, random within each large page or 64
    /// small ones, so that loads hit the TLB and bring no other line), random, stride:N, sequential, one-line-per:N (what the TLB holds),
    /// fisher-yates (words) [default: page-local on large pages, random on 4k]
    #[arg(long, value_name = "PATTERN")]
    pub pattern: Option<AccessPattern>,
    /// CPUs that represent a node: every CPU, or only the first
    #[arg(long, default_value = "cpu", value_parser = value::one_of([
        (MatrixShape::PerCpu, "cpu", "Every CPU"),
        (MatrixShape::PerNode, "node", "One CPU per node"),
    ]))]
    pub per: MatrixShape,
    /// Chase on all selected CPUs at once
    #[arg(long, conflicts_with = "serial")]
    pub concurrent: bool,
    /// Chase on one CPU at a time (the default)
    #[arg(long)]
    pub serial: bool,
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

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab bandwidth                        every kernel on one CPU and on all, node x node
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
    #[arg(long, value_name = "SIZE", value_parser = value::sizes)]
    pub size: Option<SizeList>,
    /// Access order: sequential, stride:N, random
    #[arg(long, value_name = "PATTERN", default_value = "sequential")]
    pub pattern: AccessPattern,
    /// Instruction set: sse2, avx2, avx512, neon, sve, or fastest: by a trial of each [default: fastest]
    #[arg(long, value_name = "ISA")]
    pub isa: Option<String>,
    /// Stream on one rank at a time
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
  numalab report results/measure-20261121-024500           regenerate report.md and report.html
  numalab report results/measure-20261121-024500 --format json
  numalab report results/noise-20261121-024500 --fail-if worse   a study, judged again
  numalab report results_scaling                           all runs of numalab scale below it
  numalab report results_scaling/job_123456 --format csv   statistics over ranks, one line per step
  numalab report sequential_domain0_8ranks_16MB.csv        one file of the suite
  numalab report profile.json --format html                a profile of a program
  numalab report memory.json                               a report of the memory emulator")]
pub(crate) struct ReportArgs {
    /// The result directory of any command, a CSV of numalab scale, or the file of a profile or of
    /// the memory emulator
    #[arg(value_name = "DIR|FILE")]
    pub place: PathBuf,
    /// Print the report instead of writing report.md and report.html
    #[arg(long, value_parser = value::format_of_memory())]
    pub format: Option<Format>,
    /// Of a study: exit 4 if anything is worse by more than the margin
    #[arg(long, value_name = "WHAT")]
    pub fail_if: Option<FailIf>,
}
