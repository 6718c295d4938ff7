//! Arguments of `numalab explore`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::value;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab explore                          the nodes: how full, what with, how scattered
  numalab explore --pid 4242               where a process's memory lies, and its threads run
  numalab explore --pid 4242 --watch       the same, renewed on the terminal; q ends it
  numalab explore --guests                 vcpus beside guest memory, QEMU and Xen
  numalab explore --heap console.log       a dump of numalab's kernel, or Xen's keys u and H
  numalab explore --nodes --watch --format json | jq .nodes[0].rates
                                           a line of JSON every two seconds

It changes nothing. Each sentence on what is wrong is followed by the command that mends it.")]
pub(crate) struct ExploreArgs {
    #[command(flatten)]
    pub subject: Subject,
    /// Show it again and again; q ends it
    #[arg(long, conflicts_with = "heap")]
    pub watch: bool,
    /// Time between two looks; counters are told per second of it [default: 1s, with --watch 2s]
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    pub interval: Option<Duration>,
    /// A copied tree with sys/ and proc/ in it, instead of this machine
    #[arg(long, value_name = "DIR", conflicts_with_all = ["watch", "heap"])]
    pub root: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = ExploreFormat::Text)]
    pub format: ExploreFormat,
}

/// What to look at.
#[derive(Clone, Debug, Args)]
#[group(required = false, multiple = false)]
pub(crate) struct Subject {
    /// A process
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// The nodes (the default)
    #[arg(long)]
    pub nodes: bool,
    /// The guests on this host
    #[arg(long)]
    pub guests: bool,
    /// A heap that was written down
    #[arg(long, value_name = "FILE")]
    pub heap: Option<PathBuf>,
}

/// How a view is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExploreFormat {
    /// At a glance
    Text,
    /// For machines; with --watch a line each time
    Json,
}
