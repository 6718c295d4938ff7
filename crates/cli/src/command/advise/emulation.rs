//! Candidates under emulation: a place of studies whose samples are runs of the program there.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use numalab_analysis::advice::{Candidate, MachineCosts, Spread, Untried};
use numalab_formats::memory_emulator::EmulatedMachine;
use numalab_guest::program::EmulatedProgram;
use numalab_record::Environment;
use numalab_record::study::{Evidence, Observation, Treatment};
use numalab_record::{Placed, study::Setting};
use numalab_study::{
    Backend, BackendError, Inspection, OUTPUT, Preparation, PrepareError, Prepared, SampleRequest,
    Scope,
};

use super::metric::Judged;
use super::subject::Subject;
use crate::command::emulate::in_turn;

/// The placement that changes nothing.
pub(super) const AS_IS: &str = "as it is";

/// The setting that names a placement.
pub(super) const PLACEMENT: &str = "placement";

/// The evidence of a sample that was not run, since runs repeat to the last bit.
pub(super) const REPEATED: &str = "repeated";

/// The program under emulation, as it is and as each candidate would have it.
pub(super) struct Emulation {
    placements: Vec<(String, EmulatedProgram)>,
    judged: Judged,
    subject: Subject,
    /// What each placement gave, run by run.
    ran: BTreeMap<String, Vec<Observation>>,
}

impl Emulation {
    /// A place without samples yet; `placements` are named as the treatments' settings.
    pub(super) fn new(
        placements: Vec<(String, EmulatedProgram)>,
        judged: Judged,
        subject: Subject,
    ) -> Self {
        Self { placements, judged, subject, ran: BTreeMap::new() }
    }

    fn run(&self, program: &EmulatedProgram) -> Result<Observation, BackendError> {
        let failed = |reason: String| BackendError::Failed { doing: "a trial".to_owned(), reason };
        let (ran, followed) = self.subject.follow(program).map_err(|error| {
            match self.subject.interrupt.requested() {
                true => BackendError::Interrupted,
                false => failed(error.message().to_owned()),
            }
        })?;
        let elapsed_ns = followed.report.program().map_or(0, |program| program.elapsed_ns);
        let readings = self.judged.read(&ran, elapsed_ns);
        let readings = readings.map_err(|error| failed(error.to_string()))?;
        let evidence = vec![Evidence::fact(OUTPUT, fingerprint(&ran.stdout))];
        Ok(Observation { readings, evidence, ..Observation::default() })
    }
}

/// Returns what a run of a placement gave already, once the program as it is has given the same twice
/// to the last bit: the emulator is deterministic, and so is the program then.
fn repeated(ran: &BTreeMap<String, Vec<Observation>>, placement: &str) -> Option<Observation> {
    let [first, second, ..] = ran.get(AS_IS)?.as_slice() else { return None };
    let mut known = ran.get(placement)?.first().filter(|_| first == second)?.clone();
    known.evidence.push(Evidence::fact(REPEATED, "as before"));
    Some(known)
}

impl Backend for Emulation {
    fn describe(&self) -> String {
        "the program under emulation".to_owned()
    }

    fn inspect(&self, _: &Scope<'_>) -> Result<Inspection, BackendError> {
        Ok(Inspection::default())
    }

    fn prepare(self: Box<Self>, _: &Scope<'_>) -> Result<Preparation, PrepareError> {
        let environment = Environment { facts: Default::default() };
        Ok(Preparation { environment, notices: Vec::new(), backend: self })
    }
}

impl Prepared for Emulation {
    fn apply(&mut self, _: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        Ok(Vec::new())
    }

    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Observation, BackendError> {
        let named = request.treatment.settings.get(PLACEMENT).map(Setting::to_string);
        let found = self.placements.iter().find(|(name, _)| Some(name) == named.as_ref());
        let (name, program) = found.ok_or_else(|| BackendError::Failed {
            doing: "a trial".to_owned(),
            reason: "no such placement".to_owned(),
        })?;
        if let Some(known) = repeated(&self.ran, name) {
            return Ok(known);
        }
        let observation = self.run(program)?;
        self.ran.entry(name.clone()).or_default().push(observation.clone());
        Ok(observation)
    }

    fn restore(self: Box<Self>) -> Result<(), BackendError> {
        Ok(())
    }
}

fn fingerprint(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The program as a candidate would have it, or why that cannot be tried.
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
            match &placed {
                Placed::Huge => program.huge_always = true,
                Placed::Packed => program.threads.sort_by_key(|cpu| machine.cpus[*cpu]),
                placed => program.policy = Some(word(placed)),
            }
            if let Placed::Bound(at) = placed {
                let all = 0..machine.cpus.len();
                program.threads = all.filter(|cpu| machine.cpus[*cpu] == at).collect();
            }
        }
    }
    Ok(program)
}

/// The cpus of a machine by its L3 groups, in turn or one group after the other.
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

/// A placement as the emulator has it.
pub(super) fn word(placed: &Placed) -> String {
    match placed {
        Placed::Bound(at) => format!("bind.{at}"),
        Placed::Interleaved(turns) => {
            let turns: Vec<String> = turns.iter().map(usize::to_string).collect();
            format!("interleave.{}", turns.join("."))
        }
        Placed::Huge => "thp".to_owned(),
        Placed::Packed => "pack".to_owned(),
        Placed::Users => "users".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use numalab_record::study::Quantity;

    use super::*;

    fn gave(value: f64) -> Observation {
        let readings = vec![Quantity::lower("time", "s").at(value)];
        Observation { readings, ..Observation::default() }
    }

    fn ran(of: &[(&str, &[f64])]) -> BTreeMap<String, Vec<Observation>> {
        let runs = |values: &[f64]| values.iter().copied().map(gave).collect();
        of.iter().map(|(name, values)| ((*name).to_owned(), runs(values))).collect()
    }

    #[test]
    fn a_placement_runs_once_where_the_program_repeats_to_the_last_bit() {
        let once = ran(&[(AS_IS, &[2.0]), ("1", &[1.0])]);
        assert_eq!(repeated(&once, "1"), None, "nothing is known of repeats yet");
        let twice = ran(&[(AS_IS, &[2.0, 2.0]), ("1", &[1.0])]);
        let known = repeated(&twice, "1").expect("known");
        assert_eq!(known.readings, gave(1.0).readings);
        assert_eq!(known.evidence[0].what, REPEATED);
        assert_eq!(repeated(&twice, "2"), None, "it never ran");
        let differs = ran(&[(AS_IS, &[2.0, 2.000_000_1]), ("1", &[1.0])]);
        assert_eq!(repeated(&differs, "1"), None);
    }
}
