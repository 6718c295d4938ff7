//! Candidates under emulation: a backend whose samples are emulated runs of the program.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::thread;

use numalab_guest::program::EmulatedProgram;
use numalab_record::Environment;
use numalab_record::study::{Evidence, Observation, Setting, Treatment};
use numalab_study::{
    Backend, BackendError, Inspection, Preparation, PrepareError, Prepared, SampleRequest, Scope,
};

/// The placement that changes nothing.
pub const AS_IS: &str = "as it is";

/// The setting that names a placement.
pub const PLACEMENT: &str = "placement";

/// The evidence for a sample that was not run again, because emulated runs are deterministic.
pub const REPEATED: &str = "repeated";

/// The program under emulation, unchanged and under each placement.
pub struct Emulation<Run> {
    placements: Vec<(String, EmulatedProgram)>,
    run: Run,
    /// The number of runs at a time: they do not disturb each other's virtual time.
    at_once: usize,
    /// The placements of the next samples, in order.
    upcoming: Vec<String>,
    /// Runs that ended before their samples were requested.
    ahead: BTreeMap<String, Vec<Result<Observation, BackendError>>>,
    /// The observations of each placement, run by run.
    ran: BTreeMap<String, Vec<Observation>>,
}

impl<Run: Fn(&EmulatedProgram) -> Result<Observation, BackendError> + Sync> Emulation<Run> {
    /// Returns a backend without samples; `placements` are named as in the treatments' settings,
    /// and `run` runs the program once under one of them.
    pub fn new(placements: Vec<(String, EmulatedProgram)>, at_once: usize, run: Run) -> Self {
        let (upcoming, ahead, ran) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { placements, run, at_once, upcoming, ahead, ran }
    }

    /// Runs a placement, together with others whose samples will be requested.
    fn run_ahead(&mut self, name: &str) -> Result<(), BackendError> {
        let names = together(name, &self.upcoming, self.at_once, |name| {
            let runs = self.ran.get(name).map_or(0, Vec::len);
            runs + self.ahead.get(name).map_or(0, Vec::len)
        });
        let program = |name: &String| {
            let found = self.placements.iter().find(|(placement, _)| placement == name);
            let program = found.map(|(_, program)| program);
            program.ok_or_else(|| BackendError::failed("a trial", "no such placement"))
        };
        let programs = names.iter().map(program).collect::<Result<Vec<_>, BackendError>>()?;
        let run = &self.run;
        let ended: Vec<_> = thread::scope(|scope| {
            let start = |program| scope.spawn(move || run(program));
            let runs: Vec<_> = programs.into_iter().map(start).collect();
            let joined = runs.into_iter().map(|run| run.join());
            joined.map(|ran| ran.unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        for (name, ran) in names.into_iter().zip(ended) {
            self.ahead.entry(name).or_default().push(ran);
        }
        Ok(())
    }
}

/// Returns the placements to run at once: the given one, then upcoming ones that lack a run to tell
/// whether results repeat, for which the unchanged program runs twice.
fn together(
    name: &str,
    upcoming: &[String],
    at_once: usize,
    runs: impl Fn(&str) -> usize,
) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    for next in upcoming {
        let planned = names.iter().filter(|name| *name == next).count();
        let needed = if next == AS_IS { 2 } else { 1 };
        if names.len() < at_once && runs(next) + planned < needed {
            names.push(next.clone());
        }
    }
    names
}

/// Returns an earlier observation of a placement, once the unchanged program has given
/// bit-identical results twice: the emulator is deterministic, so the program must be as well.
fn repeated(ran: &BTreeMap<String, Vec<Observation>>, placement: &str) -> Option<Observation> {
    let [first, second, ..] = ran.get(AS_IS)?.as_slice() else { return None };
    let mut known = ran.get(placement)?.first().filter(|_| first == second)?.clone();
    known.evidence.push(Evidence::fact(REPEATED, "as before"));
    Some(known)
}

fn placement_of(treatment: &Treatment) -> Option<String> {
    treatment.settings.get(PLACEMENT).map(Setting::to_string)
}

impl<Run> Backend for Emulation<Run>
where
    Run: Fn(&EmulatedProgram) -> Result<Observation, BackendError> + Sync + 'static,
{
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

impl<Run> Prepared for Emulation<Run>
where
    Run: Fn(&EmulatedProgram) -> Result<Observation, BackendError> + Sync,
{
    fn expect(&mut self, treatments: &[&Treatment]) {
        self.upcoming = treatments.iter().filter_map(|of| placement_of(of)).collect();
        // The first one is the next sample itself.
        self.upcoming.drain(..self.upcoming.len().min(1));
    }

    fn apply(&mut self, _: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        Ok(Vec::new())
    }

    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Observation, BackendError> {
        let name = placement_of(request.treatment).unwrap_or_default();
        if let Some(known) = repeated(&self.ran, &name) {
            return Ok(known);
        }
        if self.ahead.get(&name).is_none_or(Vec::is_empty) {
            self.run_ahead(&name)?;
        }
        let observation = self.ahead.entry(name.clone()).or_default().remove(0)?;
        self.ran.entry(name).or_default().push(observation.clone());
        Ok(observation)
    }

    fn restore(self: Box<Self>) -> Result<(), BackendError> {
        Ok(())
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
    fn runs_that_show_whether_results_repeat_are_made_at_once() {
        let upcoming = [AS_IS, "1", "2", "1", AS_IS].map(str::to_owned);
        let none = |at_once| together(AS_IS, &upcoming, at_once, |_| 0);
        assert_eq!(none(1), [AS_IS]);
        assert_eq!(none(2), [AS_IS, AS_IS]);
        assert_eq!(none(9), [AS_IS, AS_IS, "1", "2"]);
        let ran = |name: &str| if name == AS_IS { 2 } else { 0 };
        assert_eq!(together("2", &upcoming, 2, ran), ["2", "1"]);
        assert_eq!(together("2", &upcoming, 9, |_| 2), ["2"]);
    }

    #[test]
    fn a_run_that_ended_ahead_is_the_sample_of_its_own_placement() {
        let mut of = Emulation::new(Vec::new(), 2, |_: &EmulatedProgram| Ok(gave(0.0)));
        of.ahead = [("1".to_owned(), vec![Ok(gave(1.0)), Ok(gave(2.0))])].into();
        let settings = [(PLACEMENT.to_owned(), Setting::Text("1".to_owned()))].into();
        let treatment = Treatment { name: "one".to_owned(), levels: vec![1], settings };
        let workload = numalab_workload::WorkloadSpec::of_tool("sysbench-cpu").resolve().unwrap();
        let request = SampleRequest { treatment: &treatment, workload: &workload, seed: 0 };
        for expected in [1.0, 2.0] {
            assert_eq!(of.sample(&request).unwrap().readings, gave(expected).readings);
        }
        assert!(of.sample(&request).is_err(), "there is no such placement to run");
    }

    #[test]
    fn a_placement_runs_once_if_the_program_is_deterministic() {
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
