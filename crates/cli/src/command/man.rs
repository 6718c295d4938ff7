//! `numalab man`.

use std::path::Path;

use clap::CommandFactory;

use crate::args::Cli;
use crate::failure::{Code, Failure};

/// Writes a manual page for the command and for each subcommand.
pub(crate) fn run(directory: &Path) -> Result<(), Failure> {
    clap_mangen::generate_to(Cli::command(), directory).map_err(|error| {
        Failure::new(Code::Failed, format!("{}: could not write it: {error}", directory.display()))
    })
}
