//! `numalab completions`.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use numalab_formats::gallery;
use numalab_host::{Root, pages_here};
use numalab_record::StreamKernel;

use super::Cli;
use crate::failure::Failure;
use crate::output;

/// Access orders offered as completions; users may type any `stride:N`.
const PATTERNS: [&str; 5] =
    ["page-local", "random", "sequential", "stride:256", "one-line-per:4096"];
/// Kernels offered for guests, in addition to files.
const GUEST_KERNELS: [&str; 3] = ["linux", "backports", "numalab"];

/// Prints the completion script of a shell.
pub(crate) fn run(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    let command = Cli::command();
    let groups = names_below(&command);
    let mut command = groups.iter().fold(command, |command, group| {
        command.mut_subcommand(group, |command| with_values(command, group))
    });
    clap_complete::generate(shell, &mut command, "numalab", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

/// Adds frequent values to the arguments of a command. The arguments accept others too, so only
/// completions list these.
fn with_values(command: Command, group: &str) -> Command {
    let command = command.mut_args(|argument| completed(argument, group));
    names_below(&command).iter().fold(command, |command, below| {
        command.mut_subcommand(below, |command| with_values(command, group))
    })
}

fn names_below(command: &Command) -> Vec<String> {
    command.get_subcommands().map(|below| below.get_name().to_owned()).collect()
}

/// Adds frequent values to an argument of a command in this group.
fn completed(argument: Arg, group: &str) -> Arg {
    match values(argument.get_id().as_str(), group) {
        values if values.is_empty() => argument,
        values => argument.value_parser(PossibleValuesParser::new(values)),
    }
}

fn values(argument: &str, group: &str) -> Vec<&'static str> {
    let pages = || pages_here(&Root::live()).into_iter().map(|pages| &*pages.name().leak());
    // The names live as long as this process, which ends when they are printed.
    let knobs = || numalab_knobs::list(&Root::live()).into_iter().map(|knob| knob.name);
    match (group, argument) {
        (_, "pattern") => PATTERNS.to_vec(),
        ("guest", "pages") => Vec::new(),
        (_, "pages") => pages().collect(),
        ("guest", "kernel") => GUEST_KERNELS.to_vec(),
        (_, "kernel") => StreamKernel::ALL.map(StreamKernel::name).to_vec(),
        ("study", "study") => numalab_study::bundled().iter().map(|(name, _)| *name).collect(),
        ("machine", "machine") => gallery::names().collect(),
        ("knobs", "knobs") => knobs().map(|name| &*name.leak()).collect(),
        ("knobs", "settings") => knobs().map(|name| &*format!("{name}=").leak()).collect(),
        _ => Vec::new(),
    }
}
