//! `numalab machine selftest`.

use std::time::Duration;

use clap::Args;
use numalab_measure::Target;
use numalab_places::self_test::{ORDER, RealNodes};
use numalab_record::self_test::{CheckOutcome, SelfTest};
use numalab_results::self_test::page::described;

use super::measuring::survey;
use crate::args::{Output, Selection, VERSION, value};
use crate::failure::{Code, Failure};
use crate::output::{self, hint};
use crate::progress::Progress;

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

/// Checks this machine's nodes, restores every setting, and reports what was found.
pub(crate) fn run(args: &SelfTestArgs) -> Result<(), Failure> {
    let target = survey(&Selection::default())?;
    if args.output.dry_run {
        return output::print(&foreseen(&target));
    }
    let test = RealNodes {
        target: &target,
        size_bytes: args.size,
        time: args.time,
        results: args.output.output.as_deref(),
        version: VERSION,
    };
    let mut starting = |check| hint(format_args!("checking: {}", described(check)));
    let found = test.run(&mut starting, &mut |cells| Box::new(Progress::new(cells, false)))?;
    output::show_taken(&found, args.output.format)?;
    verdict(&found)
}

fn verdict(found: &SelfTest) -> Result<(), Failure> {
    if found.checks.iter().any(|checked| checked.outcome == CheckOutcome::Failed) {
        return Err(Failure::new(Code::Worse, ""));
    }
    match found.machine.memory_nodes().len() {
        0 | 1 => Err(Failure::new(
            Code::Lacking,
            "this machine has one node with memory, expected two or more; on emulated ones: \
             numalab guest run --emulate 4 --emulate-latency 100 -- numalab machine selftest --real-nodes \
             --size 2M",
        )),
        _ => Ok(()),
    }
}

fn foreseen(target: &Target) -> String {
    let scope = &target.scope;
    let lines = ORDER.iter().map(|&check| format!("{}\n", described(check)));
    let (cpus, nodes) = (scope.cpus.len(), scope.nodes.len());
    lines.collect::<String>() + &format!("CPUs: {cpus}; nodes with memory: {nodes}\n")
}
