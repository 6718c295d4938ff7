//! `numalab completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::Failure;
use crate::output;

/// Prints the completion script of a shell.
pub(crate) fn run(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "numalab", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
