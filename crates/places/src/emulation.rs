//! Candidates under emulation: a backend whose samples are emulated runs of the program.

use std::collections::BTreeMap;

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
    /// The observations of each placement, run by run.
    ran: BTreeMap<String, Vec<Observation>>,
}

impl<Run: FnMut(&EmulatedProgram) -> Result<Observation, BackendError>> Emulation<Run> {
    /// Returns a backend without samples; `placements` are named as in the treatments' settings,
    /// and `run` runs the program once under one of them.
    pub fn new(placements: Vec<(String, EmulatedProgram)>, run: Run) -> Self {
        Self { placements, run, ran: BTreeMap::new() }
    }
}

/// Returns an earlier observation of a placement, once the unchanged program has given
/// bit-identical results twice: the emulator is deterministic, so the program must be as well.
fn repeated(ran: &BTreeMap<String, Vec<Observation>>, placement: &str) -> Option<Observation> {
    let [first, second, ..] = ran.get(AS_IS)?.as_slice() else { return None };
    let mut known = ran.get(placement)?.first().filter(|_| first == second)?.clone();
    known.evidence.push(Evidence::fact(REPEATED, "as before"));
    Some(known)
}

impl<Run> Backend for Emulation<Run>
where
    Run: FnMut(&EmulatedProgram) -> Result<Observation, BackendError> + 'static,
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
    Run: FnMut(&EmulatedProgram) -> Result<Observation, BackendError>,
{
    fn apply(&mut self, _: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        Ok(Vec::new())
    }

    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Observation, BackendError> {
        let named = request.treatment.settings.get(PLACEMENT).map(Setting::to_string);
        let found = self.placements.iter().find(|(name, _)| Some(name) == named.as_ref());
        let (name, program) =
            found.ok_or_else(|| BackendError::failed("a trial", "no such placement"))?;
        if let Some(known) = repeated(&self.ran, name) {
            return Ok(known);
        }
        let observation = (self.run)(program)?;
        self.ran.entry(name.clone()).or_default().push(observation.clone());
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
