//! `numalab machine selftest`.

mod checks;
mod guest;

use numalab_host::knobs::ChangedSettings;
use numalab_host::{Interrupt, Root, note};
use numalab_record::self_test::{Check, CheckFound, CheckOutcome, Checked, SelfTest};
use numalab_results::self_test::judge;

use self::checks::Checks;
use super::measuring::{Target, facts_now};
use crate::args::{Selection, SelfTestArgs};
use crate::failure::{Code, Failure};
use crate::output;

/// Order of the checks: those that change nothing come first, the check that everything was
/// restored last.
const ORDER: [Check; 10] = [
    Check::Pins,
    Check::Bound,
    Check::FirstTouch,
    Check::Proof,
    Check::Matrix,
    Check::TransparentHugePages,
    Check::ReservedHugePages,
    Check::Balancing,
    Check::Guest,
    Check::Settings,
];

/// Checks this machine's nodes, restores every setting, and reports what was found.
pub(crate) fn run(args: &SelfTestArgs) -> Result<(), Failure> {
    let target = Target::survey(&Selection::default())?;
    if args.output.dry_run {
        return output::print(&foreseen(&target));
    }
    let root = Root::live();
    let mut settings = ChangedSettings::new(&root)?;
    let interrupt = Interrupt::install()?;
    let mut checked = Vec::new();
    for check in ORDER {
        if !output::quiet() {
            note(format_args!("checking: {}", described(check)));
        }
        let answer = Checks { args, target: &target }.run(check, &mut settings);
        if interrupt.requested() {
            return Err(Failure::new(Code::Failed, "interrupted; all settings were restored"));
        }
        checked.push(concluded(check, answer, &target));
    }
    let found =
        SelfTest { environment: facts_now(), machine: target.machine.clone(), checks: checked };
    output::show(&found, args.output.format)?;
    verdict(&found)
}

/// Converts an answer: a check that the machine cannot run is skipped, one with another error has
/// failed.
fn concluded(check: Check, answer: Result<CheckFound, Failure>, target: &Target) -> Checked {
    match answer {
        Ok(found) => {
            let outcome = judge(&found, &target.machine);
            Checked { check, outcome, found: Some(found), reason: None }
        }
        Err(failure) => {
            let outcome = match failure.code() {
                Code::Failed => CheckOutcome::Failed,
                _ => CheckOutcome::NotChecked,
            };
            let reason = Some(failure.message().to_owned());
            Checked { check, outcome, found: None, reason }
        }
    }
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

const fn described(check: Check) -> &'static str {
    match check {
        Check::Pins => "a thread pinned to each CPU",
        Check::Bound => "memory bound to each node",
        Check::FirstTouch => "memory touched from each node",
        Check::Proof => "memory of one node claimed to be on another",
        Check::TransparentHugePages => "transparent huge pages on each node (thp_enabled)",
        Check::ReservedHugePages => "reserved huge pages on each node (huge_2m_pages_nodeN)",
        Check::Balancing => "memory that follows its thread (numa_balancing)",
        Check::Matrix => "latency between nodes, against distance",
        Check::Guest => "a guest with a node on each host node",
        Check::Settings => "all settings restored",
    }
}
