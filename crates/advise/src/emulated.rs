//! The program under emulation, placed as a candidate requires.

use std::hash::{DefaultHasher, Hash, Hasher};

use numalab_formats::memory_emulator::EmulatedMachine;
use numalab_guest::program::{EmulatedProgram, in_turn};
use numalab_places::OUTPUT;
use numalab_record::study::{Evidence, Observation};
use numalab_results::advice::{Candidate, MachineCosts, Spread, Untried};
use numalab_study::BackendError;

use crate::metric::Judged;
use crate::subject::Subject;

/// Runs the program once under emulation, and reads the metric of the trials.
pub(super) fn sample(
    subject: &Subject,
    judged: &Judged,
    program: &EmulatedProgram,
) -> Result<Observation, BackendError> {
    let failed = |reason: String| BackendError::failed("a trial", reason);
    let (ran, followed) =
        subject.follow(program).map_err(|error| match subject.interrupt.requested() {
            true => BackendError::Interrupted,
            false => failed(error.to_string()),
        })?;
    let elapsed_ns = followed.report.program().map_or(0, |program| program.elapsed_ns);
    let readings = judged.read(&ran, elapsed_ns).map_err(|error| failed(error.to_string()))?;
    let evidence = vec![Evidence::fact(OUTPUT, fingerprint(&ran.stdout))];
    Ok(Observation { readings, evidence, ..Observation::default() })
}

fn fingerprint(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Returns the program placed as a candidate requires, or the reason it cannot be tried.
pub(super) fn placement(
    candidate: &Candidate,
    costs: &MachineCosts,
    asis: &EmulatedProgram,
) -> Result<EmulatedProgram, Untried> {
    let machine = &asis.machine;
    let mut program = asis.clone();
    match candidate {
        Candidate::Cpus { spread, .. } if !spread.is_of_siblings() => {
            program.threads = by_group(machine, *spread == Spread::Groups);
        }
        Candidate::BindRegion { .. }
        | Candidate::Replicate { .. }
        | Candidate::SeparateLines { .. } => return Err(Untried::ProgramMustChange),
        _ => {
            let placed = candidate.placed(costs).ok_or(Untried::NotEmulated)?;
            program.place(&placed);
        }
    }
    Ok(program)
}

/// Returns the cpus of a machine by L3 group, in turn or one group after another.
fn by_group(machine: &EmulatedMachine, takes_turns: bool) -> Vec<usize> {
    let group = |cpu: usize| machine.l3_groups.as_ref().map_or(0, |groups| groups[cpu]);
    let nodes = machine.cpus.iter().enumerate();
    let groups: Vec<_> = nodes.map(|(cpu, node)| (*node, group(cpu))).collect();
    if takes_turns {
        return in_turn(&groups);
    }
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|cpu| groups[*cpu]);
    order
}
