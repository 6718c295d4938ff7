//! `numalab machine selftest`.

use numalab_measure::Target;
use numalab_places::self_test::{ORDER, RealNodes};
use numalab_record::self_test::{CheckOutcome, SelfTest};
use numalab_results::self_test::page::described;

use super::measuring::survey;
use crate::args::{Selection, SelfTestArgs, VERSION};
use crate::failure::{Code, Failure};
use crate::output::{self, hint};
use crate::progress::Progress;

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
    let found = test.run(&mut starting, &mut |cells| Box::new(Progress::new(cells)))?;
    output::show(&found, args.output.format)?;
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
