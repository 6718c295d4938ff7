//! Arguments of the commands about machine files.

use clap::{Args, Subcommand};

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
  numalab machine show epyc-7763-nps4 > mine.toml    to change it, for --topology mine.toml")]
    Show {
        /// A name that `machine list` prints
        machine: String,
    },
}
