//! `numalab study`: does this change really help?

mod run;
mod show;
mod source;

pub(crate) use run::begin;
pub(crate) use show::report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use numalab_places::BACKENDS;

use super::bisect::{self, BisectArgs};
use super::probe::{self, ProbeArgs};
use crate::args::{FailIf, Format, value};
use crate::failure::{Code, Failure};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    #[command(subcommand)]
    pub command: StudyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// List the bundled studies
    #[command(after_help = "Example:\n  numalab study list")]
    List {
        /// Output format
        #[arg(long, default_value = "text", value_parser = value::format())]
        format: Format,
    },
    /// Write a commented study file, ready to run
    New(StudyNewArgs),
    /// Print a study with all defaults filled in
    #[command(after_help = "Examples:\n  numalab study show noise\n  numalab study show mine.toml")]
    Show {
        /// A bundled study, or a file
        study: String,
        /// Output format: text is the study's TOML
        #[arg(long, default_value = "text", value_parser = value::format())]
        format: Format,
    },
    /// List the settings of the backends, for [backend.NAME] and --set
    #[command(after_help = "Examples:\n  numalab study settings\n  numalab study settings guests")]
    Settings {
        /// Show only the settings of this backend
        backend: Option<String>,
        /// Output format
        #[arg(long, default_value = "text", value_parser = value::format())]
        format: Format,
    },
    /// Run a study and report whether the change helps
    Run(StudyRunArgs),
    /// Continue an interrupted study, or add blocks to one
    Resume(StudyResumeArgs),
    /// Find the commit that made a metric worse: build, boot and sample until decided
    Bisect(Box<BisectArgs>),
    /// Test one kernel behaviour, such as whether memory follows its thread
    Probe(ProbeArgs),
    /// Agent of a study in a guest: one line of JSON per request and answer
    #[command(hide = true, after_help = "Example:\n  numalab study agent '{}'")]
    Agent {
        /// The settings of its backend, in JSON
        settings: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  numalab study new mine                   writes mine.toml
  numalab study run mine.toml")]
pub(crate) struct StudyNewArgs {
    /// The study's name, or the name of its file (mine.toml)
    pub name: String,
    /// The file to write [default: NAME.toml]; an existing file is not overwritten
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Changes to the number and order of runs that the study file gives.
#[derive(Debug, Args)]
pub(crate) struct Change {
    /// Number of blocks (overrides the study)
    #[arg(long, value_name = "N", value_parser = value::blocks)]
    pub blocks: Option<usize>,
    /// End after this time, at the end of a block, such as 10m
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    pub budget: Option<Duration>,
    /// End when every 95 % interval is at most this wide on either side
    #[arg(long, value_name = "PERCENT", value_parser = value::percent)]
    pub precision: Option<f64>,
    /// Random seed [default: from the clock; always recorded]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Change a setting of the study's backend, the levels of a factor, or its workloads
    /// (repeatable; `numalab study settings` lists all)
    #[arg(long, value_name = "KEY=VALUE", value_parser = value::setting)]
    pub set: Vec<(String, String)>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab study run noise                  does this machine show differences where there are none?
  numalab study run mine.toml --budget 10m
  numalab study run mine.toml --blocks 20 --seed 1 --fail-if worse
  numalab study run mine.toml --dry-run    what would run; start and write nothing
  numalab study run guest-scaling --set guests=4,8 --set workloads=dbench --set emulate-latency=100
  git bisect run sh -c 'make || exit 125; numalab study run mine.toml -q --fail-if worse;
      r=$?; [ $r = 0 ] || [ $r = 4 ] || exit 125; exit $r'    skip commits that cannot be judged

Every sample is saved in results/<name>-<time>/ when it is finished: after ctrl-C, a crash or a
power cut, `numalab study resume DIR` continues.")]
pub(crate) struct StudyRunArgs {
    /// A bundled study, or a file
    pub study: String,
    #[command(flatten)]
    pub change: Change,
    /// Keep the results in a new directory under DIR
    #[arg(short, long, value_name = "DIR", default_value = "results")]
    pub output: PathBuf,
    #[command(flatten)]
    pub show: StudyShow,
    /// Show what would run, in which order, and for how long; start and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab study resume results/mine-20261121-024500
  numalab study resume results/mine-20261121-024500 --blocks 40   more blocks than before
  numalab study resume results/mine-20261121-024500 --dry-run     what remains to be run

A study continues only in the environment in which it began; any difference is reported.")]
pub(crate) struct StudyResumeArgs {
    /// The result directory
    pub directory: PathBuf,
    /// Total number of blocks
    #[arg(long, value_name = "N", value_parser = value::blocks)]
    pub blocks: Option<usize>,
    /// End after this total time, at the end of a block, such as 10m
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    pub budget: Option<Duration>,
    #[command(flatten)]
    pub show: StudyShow,
    /// Show what would run; start and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StudyShow {
    /// Exit 4 if anything is worse by more than the margin, 7 if nothing is decided
    #[arg(long, value_name = "WHAT")]
    pub fail_if: Option<FailIf>,
    /// Output format
    #[arg(long, default_value = "text", value_parser = value::format())]
    pub format: Format,
}

pub(crate) fn run(command: &StudyCommand) -> Result<ExitCode, Failure> {
    let done = match command {
        StudyCommand::List { format } => source::list(*format),
        StudyCommand::New(args) => source::begin(args),
        StudyCommand::Show { study, format } => source::show(study, *format),
        StudyCommand::Settings { backend, format } => {
            output::show(&BACKENDS.settings(backend.as_deref())?, *format)
        }
        StudyCommand::Run(args) => run::run(args),
        StudyCommand::Resume(args) => run::resume(args),
        StudyCommand::Bisect(args) => return bisect::run(args),
        StudyCommand::Probe(args) => probe::run(&args.command),
        StudyCommand::Agent { settings } => {
            numalab_places::serve(settings, std::io::stdin().lock(), std::io::stdout().lock())
                .map_err(|error| Failure::new(Code::Failed, error))
        }
    };
    done.map(|()| ExitCode::SUCCESS)
}
