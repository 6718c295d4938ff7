//! A scripted backend, and a directory for the journal of a study in it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use numalab_host::Interrupt;
use numalab_record::Environment;
use numalab_record::study::{
    Disturbance, EndReason, Evidence, JournalEntry, Observation, Quantity, Reading, StudyDocument,
    Treatment,
};
use numalab_study::{
    Backend, BackendError, Backends, Inspection, Journal, JournalError, Observer, Plan,
    Preparation, PrepareError, Prepared, SampleRequest, Scope, Session, SessionError, Started,
    parse,
};
use tempfile::TempDir;

pub(crate) const STUDY: &str = r#"
name = "s"
question = "q?"
[rules]
blocks = 2
warm-ups = 0
aa = false
repeats = 0
seed = 3
[[factor]]
name = "v"
levels = [1, 2]
[[workload]]
name = "w"
command = ["true", "{v}"]
metric = [{ name = "t", better = "lower", exit-time = true }]
"#;

/// The calls, in order.
pub(crate) type Calls = Rc<RefCell<Vec<&'static str>>>;

/// A backend that fails at one of its calls, counted from 0, and may fail to restore.
#[derive(Clone)]
pub(crate) struct Scripted {
    pub(crate) calls: Calls,
    pub(crate) fails_at: Option<usize>,
    pub(crate) restores: bool,
    pub(crate) disturbance: Option<Disturbance>,
}

impl Scripted {
    pub(crate) fn new(fails_at: Option<usize>, restores: bool) -> Self {
        Self { calls: Calls::default(), fails_at, restores, disturbance: None }
    }

    pub(crate) fn call(&self, name: &'static str) -> Result<(), BackendError> {
        let number = self.calls.borrow().len();
        self.calls.borrow_mut().push(name);
        match self.fails_at == Some(number) {
            true => Err(failed(&format!("call {number}: {name}"))),
            false => Ok(()),
        }
    }
}

pub(crate) fn failed(doing: &str) -> BackendError {
    BackendError::Failed { doing: doing.to_owned(), reason: "as scripted".to_owned() }
}

impl Backend for Scripted {
    fn describe(&self) -> String {
        "a script".to_owned()
    }

    fn inspect(&self, _scope: &Scope<'_>) -> Result<Inspection, BackendError> {
        Ok(Inspection::default())
    }

    fn prepare(self: Box<Self>, _scope: &Scope<'_>) -> Result<Preparation, PrepareError> {
        if let Err(cause) = self.call("prepare") {
            let restore = self.restore().err().map(Box::new);
            return Err(PrepareError { cause, restore });
        }
        let environment = Environment { facts: BTreeMap::new() };
        Ok(Preparation { environment, notices: Vec::new(), backend: self })
    }
}

impl Prepared for Scripted {
    fn apply(&mut self, _treatment: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        self.call("apply").map(|()| Vec::new())
    }

    fn sample(&mut self, _request: &SampleRequest<'_>) -> Result<Observation, BackendError> {
        self.call("sample")?;
        let quantity = Quantity::lower("t", "s");
        Ok(Observation {
            readings: vec![Reading { quantity, value: 1.0 }],
            disturbances: self.disturbance.clone().into_iter().collect(),
            ..Observation::default()
        })
    }

    fn restore(self: Box<Self>) -> Result<(), BackendError> {
        self.calls.borrow_mut().push("restore");
        if self.restores { Ok(()) } else { Err(failed("knob k")) }
    }
}

/// Drops treatments at a given number of samples.
#[derive(Clone, Copy, Default)]
pub(crate) struct Judge {
    pub(crate) after_samples: usize,
    pub(crate) out: &'static [usize],
}

impl Observer for Judge {
    fn out(&mut self, document: &StudyDocument) -> Vec<usize> {
        let is_time = document.samples().count() >= self.after_samples;
        if is_time { self.out.to_vec() } else { Vec::new() }
    }
}

/// A plan of two blocks of two treatments, and a directory for its journal.
pub(crate) struct Lab {
    pub(crate) plan: Plan,
    pub(crate) directory: TempDir,
}

impl Lab {
    pub(crate) fn open() -> Self {
        Self::of(STUDY)
    }

    pub(crate) fn of(study: &str) -> Self {
        let study = parse(study, "s.toml", Backends::NONE).unwrap();
        Self { plan: Plan::new(study, 3).unwrap(), directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn run(&self, backend: &Scripted) -> Result<EndReason, SessionError> {
        self.judged(backend, Judge::default())
    }

    pub(crate) fn judged(
        &self,
        backend: &Scripted,
        judge: Judge,
    ) -> Result<EndReason, SessionError> {
        let journal = self.created(self.directory.path(), backend);
        self.session(Box::new(backend.clone()), journal, judge)
    }

    /// Runs the plan in another directory, in any backend.
    pub(crate) fn run_in(
        &self,
        directory: &Path,
        backend: Box<dyn Backend>,
    ) -> Result<EndReason, SessionError> {
        let journal = self.created(directory, backend.as_ref());
        self.session(backend, journal, Judge::default())
    }

    fn created(
        &self,
        directory: &Path,
        backend: &dyn Backend,
    ) -> impl FnOnce() -> Result<Journal, JournalError> + use<> {
        let started = Started { version: "0".to_owned(), command: Vec::new(), unix_ms: 1 };
        let run = self.plan.run(backend.describe(), started);
        let directory = directory.to_owned();
        move || Journal::create(&directory, run, STUDY)
    }

    pub(crate) fn resume(&self, backend: &Scripted) -> Result<EndReason, SessionError> {
        let journal = || Journal::resume(&self.results().unwrap());
        self.session(Box::new(backend.clone()), journal, Judge::default())
    }

    pub(crate) fn session(
        &self,
        backend: Box<dyn Backend>,
        journal: impl FnOnce() -> Result<Journal, JournalError>,
        mut judge: Judge,
    ) -> Result<EndReason, SessionError> {
        let interrupt = Interrupt::never();
        let session = Session::new(&self.plan, &interrupt);
        session.run(backend, journal, &mut judge).map(|(_, end)| end)
    }

    pub(crate) fn results(&self) -> Option<std::path::PathBuf> {
        Some(std::fs::read_dir(self.directory.path()).unwrap().next()?.unwrap().path())
    }

    pub(crate) fn entries(&self) -> Vec<JournalEntry> {
        self.results().map_or_else(Vec::new, |path| numalab_study::read(&path).unwrap().journal)
    }

    pub(crate) fn samples(&self) -> usize {
        self.entries().iter().filter(|entry| matches!(entry, JournalEntry::Sample(_))).count()
    }
}
