//! `numalab knobs`: shows, sets and restores settings of the system.

mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use numalab_host::Root;
use numalab_knobs::{FileState, Knob, list, restore_stale, stale};
use numalab_record::system::KnobList;
use numalab_results::system::knob_value;

use crate::args::{Format, value};
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct KnobsArgs {
    #[command(subcommand)]
    pub command: KnobsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KnobsCommand {
    /// Show every knob, its current value, and whether it can act on this machine
    List(KnobListArgs),
    /// Restore settings left behind by a killed run
    Restore(KnobRestoreArgs),
    /// Run a command with knobs set, and restore them when it ends
    Run(KnobRunArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab knobs list                       names, values, and whether they can act here
  numalab knobs list numa_balancing vm.dirty_ratio /sys/kernel/mm/ksm/run
  numalab knobs list --format json")]
pub(crate) struct KnobListArgs {
    /// Only these knobs: names, sysctls (vm.swappiness), or files below /proc/sys and /sys
    #[arg(value_name = "KNOB")]
    pub knobs: Vec<String>,
    /// Output format
    #[arg(long, default_value = "text", value_parser = value::format())]
    pub format: Format,
    #[command(flatten)]
    pub root: RootArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab knobs restore                    after a run that was killed
  numalab knobs restore --dry-run          what it would write")]
pub(crate) struct KnobRestoreArgs {
    /// Show what would be restored; write nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub root: RootArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab knobs run numa_balancing=0 -- sysbench memory run
  numalab knobs run thp_enabled=never huge_2m_pages=512 -- ./solver
  numalab knobs run vm.swappiness=10 /sys/kernel/mm/ksm/run=0 --dry-run -- ./solver

Prior values are journalled on disk before anything is written, and restored when the command
ends, on ctrl-C, or by `numalab knobs restore` after a kill -9. The exit code is the command's.")]
pub(crate) struct KnobRunArgs {
    /// Settings; drop_caches and compact_memory happen once, before the command
    #[arg(value_name = "KNOB=VALUE", required = true, value_parser = value::setting)]
    pub settings: Vec<(String, String)>,
    /// Show what would be written; write and start nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub root: RootArgs,
    /// The command, with its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<String>,
}

/// The system with the knobs.
#[derive(Debug, Args)]
pub(crate) struct RootArgs {
    /// Use the sys/ and proc/ of this directory instead of this system's
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

impl RootArgs {
    /// Returns the directory if one is given, otherwise this system.
    pub fn root(&self) -> Result<Root, Failure> {
        let Some(root) = &self.root else { return Ok(Root::live()) };
        if ["sys", "proc/sys"].iter().any(|part| root.join(part).is_dir()) {
            return Ok(Root::at(root));
        }
        Err(Failure::bad_input(format!(
            "--root {}: expected a directory with sys/ or proc/sys/ in it",
            root.display()
        )))
    }
}

/// Runs the subcommand; the exit code of `run` is that of its command.
pub(crate) fn run(command: &KnobsCommand) -> Result<ExitCode, Failure> {
    match command {
        KnobsCommand::List(args) => show_knobs(args).map(|()| ExitCode::SUCCESS),
        KnobsCommand::Restore(args) => restore(args).map(|()| ExitCode::SUCCESS),
        KnobsCommand::Run(args) => run::run(args).map_err(Failure::of_wrapper),
    }
}

/// Prints every knob, or only the given ones.
fn show_knobs(args: &KnobListArgs) -> Result<(), Failure> {
    let root = args.root.root()?;
    let named = list(&root);
    let shown = |name: &String| match named.iter().find(|known| known.name == *name) {
        Some(known) => Ok(known.clone()),
        None => Ok(Knob::find(&root, name)?.now(&root, String::new())),
    };
    let knobs = match args.knobs.is_empty() {
        true => named,
        false => args.knobs.iter().map(shown).collect::<Result<_, Failure>>()?,
    };
    output::show(&KnobList { knobs }, args.format)
}

/// Describes the value of a knob.
fn state_words(state: FileState) -> String {
    let (state, value) = state.into_parts();
    knob_value(state, value.as_deref()).to_owned()
}

/// Restores the settings that a killed run left behind, and reports them.
fn restore(args: &KnobRestoreArgs) -> Result<(), Failure> {
    let root = args.root.root()?;
    if args.dry_run {
        let left = stale(&root)?;
        let lines = left.iter().map(|(path, value)| format!("would restore /{path}: {value}\n"));
        let lines: String = lines.collect();
        return output::print(if lines.is_empty() { "nothing to restore\n" } else { &lines });
    }
    output::print(&restore_stale(&root)?.to_string())
}
