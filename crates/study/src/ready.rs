//! A study that is ready to run: its plan, with the text that errors refer to.

use std::io;
use std::path::Path;
use std::time::Duration;

use numalab_host::bounded::{MOST_STUDY_BYTES, read_file_text, read_input_text};
use numalab_host::{Classed, ErrorClass, Interrupt, UtcTime};
use numalab_record::file;
use numalab_record::shell::command_line;
use numalab_record::study::{
    JournalEntry, ListedStudy, PlannedStudy, Rules, ShownStudy, StudyDocument,
};
use numalab_workload::SpecError;

use crate::backend::{Backend, BackendError, Backends};
use crate::bundled::{bundled, bundled_text};
use crate::definition::Study;
use crate::estimate::stated_time;
use crate::foreseen::foreseen;
use crate::parse::{ParseError, parse};
use crate::plan::Plan;
use crate::position::Position;

/// Changes to a study for one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StudyChanges {
    pub blocks: Option<usize>,
    pub budget: Option<Duration>,
    pub precision_percent: Option<f64>,
    pub seed: Option<u64>,
    /// Settings of the backend, levels of factors and workloads, by key.
    pub set: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub struct ReadyStudy {
    pub plan: Plan,
    pub text: String,
    /// The study's file, or the name of a bundled study.
    origin: String,
    backends: Backends,
}

/// Reason why a study cannot be planned or opened.
#[derive(Debug, thiserror::Error)]
pub enum ReadyError {
    #[error(transparent)]
    Parse(Box<ParseError>),
    #[error(transparent)]
    Workload(#[from] SpecError),
    /// The changed study cannot be written.
    #[error(transparent)]
    Write(#[from] toml::ser::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// There is no such file, nor a bundled study of this name.
    #[error("{name}: {error}: expected a file, or one of {known}")]
    Absent { name: String, error: io::Error, known: String },
    /// The study in a result directory cannot be read.
    #[error("{origin}: {error}")]
    Unreadable { origin: String, error: io::Error },
    /// A value that the backend rejects, with its position.
    #[error("{at}: {error}")]
    InText { at: String, error: Box<BackendError> },
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error(
        "{origin}: its plan is {found}, but the study was started with {begun}: it has changed \
         since, or another version of numalab started it; start a new run"
    )]
    OtherPlan { origin: String, found: String, begun: String },
    #[error(
        "blocks: {given}: the study has {taken} already, and the number is their total: expected \
         {taken} or more"
    )]
    FewerBlocks { given: usize, taken: usize },
}

impl From<ParseError> for ReadyError {
    fn from(error: ParseError) -> Self {
        Self::Parse(Box::new(error))
    }
}

impl Classed for ReadyError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Backend(error) => error.class(),
            _ => ErrorClass::BadInput,
        }
    }
}

impl StudyChanges {
    fn apply(&self, rules: &mut Rules) {
        rules.blocks = self.blocks.unwrap_or(rules.blocks);
        rules.budget_s = self.budget.map(|budget| budget.as_secs_f64()).or(rules.budget_s);
        rules.precision_percent = self.precision_percent.or(rules.precision_percent);
        rules.seed = self.seed.or(rules.seed);
    }
}

impl ReadyStudy {
    /// Reads and plans a bundled study, or else a file, or that of a result directory.
    ///
    /// # Errors
    /// [`ReadyError`] if there is neither, or for an invalid study or change.
    pub fn named(
        name: &str,
        changes: &StudyChanges,
        backends: Backends,
    ) -> Result<Self, ReadyError> {
        if let Some(text) = bundled_text(name) {
            return Self::read(text, name, changes, backends);
        }
        let path = Path::new(name);
        let file = if path.is_dir() { path.join(file::STUDY) } else { path.to_owned() };
        let text = read_input_text(&file, MOST_STUDY_BYTES).map_err(|error| {
            let known = bundled().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            ReadyError::Absent { name: name.to_owned(), error, known }
        })?;
        Self::read(&text, name, changes, backends)
    }

    /// Reads and plans a study from its TOML.
    ///
    /// # Errors
    /// [`ReadyError`] for an invalid study or an invalid change.
    pub fn read(
        text: &str,
        origin: &str,
        changes: &StudyChanges,
        backends: Backends,
    ) -> Result<Self, ReadyError> {
        let mut study = parse(text, origin, backends)?;
        changes.apply(&mut study.rules);
        if changes.set.is_empty() {
            return Self::planned(study, text, origin, backends);
        }
        // Results keep the study that was run, so its text is rewritten with what was set.
        backends.kind(&study.backend.kind)?.set_all(&mut study, &changes.set)?;
        Self::of(&study, origin, backends)
    }

    /// Plans a study that has no text yet, or that differs from its text: results keep the study
    /// that was run.
    ///
    /// # Errors
    /// [`ReadyError`] if it is invalid.
    pub fn of(study: &Study, origin: &str, backends: Backends) -> Result<Self, ReadyError> {
        let text = study.to_toml()?;
        Self::planned(parse(&text, origin, backends)?, &text, origin, backends)
    }

    fn planned(
        study: Study,
        text: &str,
        origin: &str,
        backends: Backends,
    ) -> Result<Self, ReadyError> {
        // Any number will do, and the clock gives one that no one chose.
        let seed = study.rules.seed.unwrap_or_else(|| UtcTime::now().unix_ms);
        let plan = Plan::new(study, seed)?;
        Ok(Self { plan, text: text.to_owned(), origin: origin.to_owned(), backends })
    }

    /// Returns the plan of an interrupted run; its blocks and time may be changed.
    ///
    /// # Errors
    /// [`ReadyError`] if its study cannot be read, or is not the one that was started.
    pub fn resumed(
        directory: &Path,
        document: &StudyDocument,
        changes: &StudyChanges,
        backends: Backends,
    ) -> Result<Self, ReadyError> {
        let path = directory.join(file::STUDY);
        let origin = path.display().to_string();
        let text = read_file_text(&path, MOST_STUDY_BYTES)
            .map_err(|error| ReadyError::Unreadable { origin: origin.clone(), error })?;
        let mut study = parse(&text, &origin, backends)?;
        let run = &document.run;
        // The file still has the original rules; options of the first start may have changed them.
        study.rules = run.rules.clone();
        let taken = taken_blocks(document);
        if let Some(given) = changes.blocks.filter(|given| *given < taken) {
            return Err(ReadyError::FewerBlocks { given, taken });
        }
        changes.apply(&mut study.rules);
        let plan = Plan::new(study, run.seed)?;
        if plan.hash() != run.plan {
            let (found, begun) = (plan.hash(), run.plan.clone());
            return Err(ReadyError::OtherPlan { origin, found, begun });
        }
        Ok(Self { plan, text, origin, backends })
    }

    /// Opens the backend that the study names, and checks that the study can be run in it.
    ///
    /// # Errors
    /// [`ReadyError`] with the position of a value that the backend rejects.
    pub fn backend(&self, interrupt: &Interrupt) -> Result<Box<dyn Backend>, ReadyError> {
        let backend = self.opened(interrupt)?;
        backend.inspect(&self.plan.scope()).map_err(|error| self.refused(error))?;
        Ok(backend)
    }

    /// Describes what would be run; starts and writes nothing.
    ///
    /// # Errors
    /// [`ReadyError`] with the position of a value that the backend rejects.
    pub fn foreseen(&self) -> Result<PlannedStudy, ReadyError> {
        let backend = self.opened(&Interrupt::never())?;
        foreseen(&self.plan, backend.as_ref(), stated_time(&self.plan))
            .map_err(|error| self.refused(error))
    }

    /// Summarizes the study in one line.
    pub fn listed(&self) -> ListedStudy {
        let Study { name, question, .. } = self.plan.study().clone();
        ListedStudy { name, question, blocks: self.plan.blocks(), time: stated_time(&self.plan) }
    }

    /// Shows the study with all defaults filled in, and the command lines of workloads that only name
    /// their tool as comments.
    ///
    /// # Errors
    /// [`ReadyError`] if it cannot be written.
    pub fn shown(&self) -> Result<ShownStudy, ReadyError> {
        let study = self.plan.study();
        let workloads = study.workloads.iter().zip(self.plan.workloads());
        let comments = workloads.filter(|(spec, _)| spec.tool.is_some()).map(|(_, workload)| {
            // A comment must stay on one line, whatever the arguments contain.
            let command = command_line(&workload.command).replace('\n', " ");
            format!("#   {}: {command}\n", workload.name)
        });
        let toml = format!("{}\n{}", comments.collect::<String>(), study.to_toml()?);
        Ok(ShownStudy { line: self.listed(), toml, study: serde_json::to_value(study)? })
    }

    fn opened(&self, interrupt: &Interrupt) -> Result<Box<dyn Backend>, ReadyError> {
        let opened = self.backends.open(self.plan.study(), interrupt);
        opened.map_err(|error| self.refused(error))
    }

    /// Adds the position in the study's text to an error in it.
    fn refused(&self, error: BackendError) -> ReadyError {
        match &error {
            BackendError::BadInput { place, .. } => {
                let at = Position::of(place, &self.text);
                let at = at.map_or_else(String::new, |at| at.to_string());
                ReadyError::InText { at: format!("{}{at}", self.origin), error: Box::new(error) }
            }
            _ => error.into(),
        }
    }
}
/// Returns the number of blocks that have a sample, without warm-ups.
fn taken_blocks(document: &StudyDocument) -> usize {
    let block = |entry: &JournalEntry| match entry {
        JournalEntry::Sample(sample) => Some(sample.block + 1),
        _ => None,
    };
    let last = document.journal.iter().filter_map(block).max();
    last.unwrap_or(0).saturating_sub(document.run.rules.warm_ups)
}
