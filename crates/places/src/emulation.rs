//! An emulated machine without a guest: every sample is a run of the program in QEMU's user mode,
//! with the memory emulator's virtual time.

mod kind;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;
use std::time::Duration;

use numalab_guest::program::{EmulatedProgram, Followed, ProgramError};
use numalab_host::{Input, Interrupt, Ran, Root, read_environment};
use numalab_record::study::{Evidence, Observation, Treatment};
use numalab_study::{
    Backend, BackendError, BackendSpec, Inspection, Preparation, PrepareError, Prepared,
    SampleRequest, Scope,
};
use numalab_workload::Workload;

use crate::host::OUTPUT;
use crate::knob_settings::check_names;
use crate::{exec, facts};
pub(super) use kind::KIND;
pub use kind::emulation_of;
use kind::{Imitated, is_knob};

/// The evidence for a sample that was not run again, because emulated runs are deterministic.
pub const REPEATED: &str = "repeated";

/// A treatment and a workload, by name.
type Run = (String, String);

/// Programs on an emulated machine, with the samples so far.
pub(super) struct Emulation {
    interrupt: Interrupt,
    imitated: Imitated,
    /// The treatments of the next samples, in order.
    upcoming: Vec<Treatment>,
    /// Runs that ended before their samples were requested.
    ahead: BTreeMap<Run, Vec<Result<Observation, BackendError>>>,
    ran: BTreeMap<Run, Vec<Observation>>,
    /// The name of the first treatment.
    baseline: String,
    /// Runs of that treatment that were made before.
    earlier: Vec<Ran>,
}

/// Returns programs on an emulated machine, given runs of the first treatment that were made before,
/// with the time that they took on that machine.
///
/// # Errors
/// [`BackendError`] if the settings are wrong.
pub fn emulation_after(
    earlier: Vec<Ran>,
    spec: &BackendSpec,
    interrupt: &Interrupt,
) -> Result<Box<dyn Backend>, BackendError> {
    Ok(Box::new(Emulation { earlier, ..Emulation::open(spec, interrupt)? }))
}

impl Emulation {
    pub(super) fn open(spec: &BackendSpec, interrupt: &Interrupt) -> Result<Self, BackendError> {
        Ok(Self {
            interrupt: interrupt.clone(),
            imitated: Imitated::of(spec)?,
            upcoming: Vec::new(),
            ahead: BTreeMap::new(),
            ran: BTreeMap::new(),
            baseline: String::new(),
            earlier: Vec::new(),
        })
    }

    /// Runs a treatment together with others that will be sampled later, since they do not disturb
    /// each other's virtual time.
    fn run_ahead(&mut self, request: &SampleRequest<'_>) -> Result<(), BackendError> {
        let workload = &request.workload.name;
        let treatments = together(request.treatment, &self.upcoming, runs_at_once(), |of| {
            let run = (of.name.clone(), workload.clone());
            let runs = self.ran.get(&run).map_or(0, Vec::len);
            let known = runs + self.ahead.get(&run).map_or(0, Vec::len);
            let needed = if of.name == self.baseline { 2_usize } else { 1 };
            needed.saturating_sub(known)
        });
        let program =
            |of: &&Treatment| self.imitated.program(&SampleRequest { treatment: of, ..*request });
        let programs = treatments.iter().map(program).collect::<Result<Vec<_>, BackendError>>()?;
        let names: Vec<String> = treatments.iter().map(|of| of.name.clone()).collect();
        let ended: Vec<_> = thread::scope(|scope| {
            let this = &*self;
            let start = |program| scope.spawn(move || this.run(request.workload, program));
            let runs: Vec<_> = programs.iter().map(start).collect();
            let joined = runs.into_iter().map(|run| run.join());
            joined.map(|ran| ran.unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        for (name, ran) in names.into_iter().zip(ended) {
            self.ahead.entry((name, workload.clone())).or_default().push(ran);
        }
        Ok(())
    }

    /// Runs a program once; its time is the virtual one.
    fn run(
        &self,
        workload: &Workload,
        program: &EmulatedProgram,
    ) -> Result<Observation, BackendError> {
        let failed = |reason: String| BackendError::of_workload(workload, reason);
        let input = workload.stdin.as_deref().map_or(Input::Empty, Input::File);
        let limit = Duration::from_secs(workload.timeout_s);
        let ran = program.run_apart(input, limit, &self.interrupt);
        let (mut ran, reports) = ran.map_err(|error| not_run(workload, error))?;
        if ran.status.success() {
            let followed = Followed::read(&reports).map_err(|error| failed(error.to_string()))?;
            followed.expect_most().map_err(|error| failed(error.to_string()))?;
            let program = followed.report.program();
            ran.took = Duration::from_nanos(program.map_or(0, |program| program.elapsed_ns));
        }
        self.observed(workload, &ran)
    }

    fn observed(&self, workload: &Workload, ran: &Ran) -> Result<Observation, BackendError> {
        let readings = exec::read(workload, ran)?;
        let output = || Evidence::fact(OUTPUT, facts::fingerprint(ran.stdout.as_bytes()));
        let evidence = self.imitated.watch_output.then(output).into_iter().collect();
        Ok(Observation { readings, evidence, ..Observation::default() })
    }

    /// Returns an earlier observation of a treatment, once the baseline has given bit-identical
    /// results twice: the emulator is deterministic, so the program must be as well.
    fn repeated(&self, (treatment, workload): &Run) -> Option<Observation> {
        let of = |treatment: &String| self.ran.get(&(treatment.clone(), workload.clone()));
        let [first, second, ..] = of(&self.baseline)?.as_slice() else { return None };
        let mut known = of(treatment)?.first().filter(|_| first == second)?.clone();
        known.evidence.push(Evidence::fact(REPEATED, "as before"));
        Some(known)
    }
}

/// Returns the number of emulated runs at a time: one for each cpu of this process.
pub fn runs_at_once() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Returns the treatments to run at once: the given one, then upcoming ones that lack a run to tell
/// whether results repeat, for which the baseline runs twice.
fn together<'a>(
    first: &'a Treatment,
    upcoming: &'a [Treatment],
    at_once: usize,
    lacks: impl Fn(&Treatment) -> usize,
) -> Vec<&'a Treatment> {
    let mut chosen = vec![first];
    for next in upcoming {
        let planned = chosen.iter().filter(|of| of.name == next.name).count();
        if chosen.len() < at_once && planned < lacks(next) {
            chosen.push(next);
        }
    }
    chosen
}

fn not_run(workload: &Workload, error: ProgramError) -> BackendError {
    match error {
        ProgramError::Run(error) => exec::failed(workload, &error),
        ProgramError::NotFound(program) => BackendError::missing(workload, &program),
        ProgramError::NoQemu { program } => BackendError::lacking(
            format!("{program} is missing, but needed to run programs on emulated machines"),
            "apt install qemu-user",
        ),
        error => BackendError::of_workload(workload, error),
    }
}

impl Backend for Emulation {
    fn describe(&self) -> String {
        self.imitated.words()
    }

    fn inspect(&self, scope: &Scope<'_>) -> Result<Inspection, BackendError> {
        let notices = check_names(scope, &KIND, is_knob)?;
        for workload in scope.workloads {
            if workload.service.is_some() || workload.needs_scratch() {
                return Err(BackendError::of_workload(
                    workload,
                    "it needs a service or a directory, which emulated programs do not have",
                ));
            }
            for treatment in scope.treatments {
                let request = SampleRequest { treatment, workload, seed: 0 };
                let program = self.imitated.program(&request)?;
                let line = program.command_line(Path::new("DIRECTORY"));
                line.map_err(|error| not_run(workload, error))?;
            }
        }
        Ok(Inspection { notices, ..Inspection::default() })
    }

    fn prepare(mut self: Box<Self>, scope: &Scope<'_>) -> Result<Preparation, PrepareError> {
        let notices = check_names(scope, &KIND, is_knob)?;
        self.baseline = scope.treatments.first().map(|of| of.name.clone()).unwrap_or_default();
        let environment = read_environment(&Root::live());
        Ok(Preparation { environment, notices, backend: self })
    }
}

impl Prepared for Emulation {
    fn expect(&mut self, treatments: &[&Treatment]) {
        // The first run is the next sample itself.
        self.upcoming = treatments.iter().skip(1).map(|of| (*of).clone()).collect();
    }

    fn apply(&mut self, _: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        Ok(Vec::new())
    }

    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Observation, BackendError> {
        let run = (request.treatment.name.clone(), request.workload.name.clone());
        if let Some(known) = self.repeated(&run) {
            return Ok(known);
        }
        for ran in std::mem::take(&mut self.earlier) {
            let observed = self.observed(request.workload, &ran);
            let baseline = (self.baseline.clone(), request.workload.name.clone());
            self.ahead.entry(baseline).or_default().push(observed);
        }
        if self.ahead.get(&run).is_none_or(Vec::is_empty) {
            self.run_ahead(request)?;
        }
        let observation = self.ahead.entry(run.clone()).or_default().remove(0)?;
        self.ran.entry(run).or_default().push(observation.clone());
        Ok(observation)
    }

    fn restore(self: Box<Self>) -> Result<(), BackendError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
