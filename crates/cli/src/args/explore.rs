//! Arguments of `numalab explore`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use numalab_results::explore::Expectation;

use super::{Format, value};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab explore                          the nodes: use and fragmentation of memory
  numalab explore --pid 4242               where a process has its memory and threads
  numalab explore --pid 4242 --watch       the same, refreshed on the terminal; q quits
  numalab explore --guests                 vCPUs and memory of guests, QEMU and Xen
  numalab explore --pid 4242 --expect 'node1>=95%' --expect 'threads local>=90%'
                                           exit 4, with the reason, unless this holds
  numalab explore --guests --expect pinned --for 10m
                                           exit 4 as soon as a guest is not pinned
  numalab explore --ranks --job 4242       ranks and threads: their CPUs, and nodes of their memory
  numalab explore --heap console.log       a dump of numalab's kernel, or of Xen's keys u and H
  numalab explore --nodes --watch --format json | jq .nodes[0].rates
                                           a line of JSON every two seconds

Read-only. The report gives for each problem the command that fixes it.")]
pub(crate) struct ExploreArgs {
    #[command(flatten)]
    pub subject: Subject,
    /// Only the ranks of this job, such as 4242, or step, such as 4242.0
    #[arg(long, value_name = "JOB", requires = "ranks")]
    pub job: Option<String>,
    /// Refresh the display until q is pressed
    #[arg(long, conflicts_with = "heap")]
    pub watch: bool,
    /// Sampling interval; rates are averages over it, per second [default: 1s, with --watch 2s]
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    pub interval: Option<Duration>,
    /// Exit 4 unless this holds: node1>=95% or node0,1>=95% (of the memory is on these nodes),
    /// threads local>=90% (of what threads or vCPUs touch), or pinned (each vCPU on one node with
    /// its memory)
    #[arg(long, value_name = "WHAT", conflicts_with = "heap")]
    pub expect: Vec<Expectation>,
    /// Check once per interval for this long; stop at the first check that fails
    #[arg(long = "for", value_name = "TIME", value_parser = value::duration, requires = "expect", conflicts_with = "watch")]
    pub for_: Option<Duration>,
    /// Read this directory (with sys/ and proc/) instead of this machine
    #[arg(long, value_name = "DIR", conflicts_with_all = ["watch", "heap"])]
    pub root: Option<PathBuf>,
    /// Output format; with --watch, text or json (one line per refresh)
    #[arg(long, default_value = "text", value_parser = value::format())]
    pub format: Format,
}

/// The subject to explore.
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
    /// The ranks of parallel programs on this host, with their threads
    #[arg(long)]
    pub ranks: bool,
    /// A heap dump: heap.bin of `guest run --kernel numalab -o DIR -- dump=heap`, that kernel's
    /// console, or Xen's (`xl debug-keys uH; xl dmesg`)
    #[arg(long, value_name = "FILE")]
    pub heap: Option<PathBuf>,
}
