//! A candidate as the emulator places it, and as one would type it.

use numalab_analysis::advice::{Candidate, MachineCosts};
use numalab_formats::memory_emulator::EmulatedMachine;
use numalab_guest::program::EmulatedProgram;
use numalab_record::Placed;

use crate::output;

/// The cpus of a machine, one node after the other in turn.
pub(super) fn spread(machine: &EmulatedMachine) -> Vec<usize> {
    let turn = |cpu: usize| {
        let before = &machine.cpus[..cpu];
        before.iter().filter(|node| **node == machine.cpus[cpu]).count()
    };
    let mut order: Vec<usize> = (0..machine.cpus.len()).collect();
    order.sort_by_key(|cpu| (turn(*cpu), machine.cpus[*cpu]));
    order
}

/// The program as a candidate would have it; `None` for what only its author can change.
pub(super) fn placement(
    candidate: &Candidate,
    costs: &MachineCosts,
    asis: &EmulatedProgram,
) -> Option<EmulatedProgram> {
    let machine = &asis.machine;
    if let Candidate::FirstTouch { .. } = candidate {
        return Some(EmulatedProgram { policy: Some("users".to_owned()), ..asis.clone() });
    }
    let placed = candidate.placed(costs)?;
    let mut program = asis.clone();
    match placed {
        Placed::Huge => program.huge_always = true,
        Placed::Packed => program.threads.sort_by_key(|cpu| machine.cpus[*cpu]),
        _ => program.policy = Some(word(&placed)),
    }
    if let Placed::Bound(at) = placed {
        program.threads = (0..machine.cpus.len()).filter(|cpu| machine.cpus[*cpu] == at).collect();
    }
    Some(program)
}

/// What has the emulator tell what threads would wait with it.
pub(super) fn beside(candidate: &Candidate, costs: &MachineCosts) -> Option<String> {
    candidate.placed(costs).map(|placed| word(&placed))
}

/// A placement as the emulator has it.
fn word(placed: &Placed) -> String {
    match placed {
        Placed::Bound(at) => format!("bind.{at}"),
        Placed::Interleaved(turns) => {
            let turns: Vec<String> = turns.iter().map(usize::to_string).collect();
            format!("interleave.{}", turns.join("."))
        }
        Placed::Huge => "thp".to_owned(),
        Placed::Packed => "pack".to_owned(),
    }
}

/// The command line of a candidate by numalab and without it.
pub(super) fn commands(
    candidate: &Candidate,
    costs: &MachineCosts,
    command: &[String],
) -> (Option<String>, Option<String>) {
    let shell = output::shell_lines(command);
    let shell = shell.trim_end();
    let (bind, numactl) = match candidate {
        Candidate::Bind { node } => {
            (format!("--numa={node}"), format!("--cpunodebind={node} --membind={node}"))
        }
        Candidate::Interleave => {
            ("--numa=auto --policy interleave".to_owned(), "--interleave=all".to_owned())
        }
        Candidate::WeightedInterleave { weights } => {
            let weights: Vec<String> = weights.iter().map(u32::to_string).collect();
            let weights = weights.join(",");
            let bind = format!("--numa=auto --policy weighted --weights {weights}");
            (bind, "--weighted-interleave=all".to_owned())
        }
        Candidate::Pack => {
            let close = format!("OMP_PLACES=cores OMP_PROC_BIND=close {shell}");
            return (Some(close), Some(format!("likwid-pin -c {} {shell}", all_cpus(costs))));
        }
        Candidate::HugePages => {
            let knob = format!("numalab knobs run thp_enabled=always -- {shell}");
            let tunable = format!("GLIBC_TUNABLES=glibc.malloc.hugetlb=1 {shell}");
            return (Some(knob), Some(tunable));
        }
        _ => return (None, None),
    };
    (Some(format!("numalab bind {bind} -- {shell}")), Some(format!("numactl {numactl} {shell}")))
}

/// The cpus of one node after the other, as `likwid-pin` has them: `M0:0-3@M1:0-3`.
fn all_cpus(costs: &MachineCosts) -> String {
    let of_node = |(node, cpus): (&u32, &usize)| match cpus {
        0 => None,
        1 => Some(format!("M{node}:0")),
        cpus => Some(format!("M{node}:0-{}", cpus - 1)),
    };
    let all: Vec<String> = costs.nodes.iter().zip(&costs.cpus).filter_map(of_node).collect();
    all.join("@")
}
