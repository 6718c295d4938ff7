//! Arguments of `numalab machine selftest`.

use std::time::Duration;

use clap::Args;

use super::{Output, value};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab machine selftest --real-nodes       as root on a machine of several nodes, one minute
  numalab machine selftest --real-nodes --format md   a page to attach to a bug report
  numalab guest run --emulate 4 --emulate-latency 100 -- \\
    numalab machine selftest --real-nodes --size 2M
                                              the same on four emulated nodes

It checks, on each node, pinning, bound memory, first touch, the proof of placement, and transparent
and reserved huge pages; then NUMA balancing, latency against distance, and, if QEMU is installed, a
guest with its nodes pinned to this machine's. Checks that cannot run are listed with the reason.
Settings are changed through the journal of `numalab knobs`, and restored; --dry-run lists them.
Exit codes: 0 nothing failed, 3 fewer than two nodes with memory, 4 a check failed.")]
pub(crate) struct SelfTestArgs {
    /// Test the nodes of this machine
    #[arg(long, required = true)]
    pub real_nodes: bool,
    /// Buffer of the latency matrix, well beyond the caches
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = value::size)]
    pub size: u64,
    /// Time limit for memory to follow its thread
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = value::duration)]
    pub time: Duration,
    #[command(flatten)]
    pub output: Output,
}
