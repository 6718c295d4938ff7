//! Finds the commit that made a metric worse: builds, boots and samples until each commit is
//! decided.

mod build;
mod error;
#[cfg(test)]
mod git_lab;
mod repository;
mod sampler;
mod search;
mod subject;

use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{fmt, fs};

use numalab_host::files::write_atomically;
use numalab_host::{Interrupt, UtcTime};
use numalab_record::Kind;
use numalab_record::bisect::{BisectAnswer, BisectDocument, Commit, CommitSide, JudgedCommit};
use numalab_record::study::{Quantity, Treatment};
use numalab_stats::{Bisection, Confidence};
use numalab_workload::Workload;

use crate::backend::{BackendError, Backends};
use crate::plan::Plan;

pub use build::Build;
use build::Built;
pub use error::BisectError;
pub use repository::Repository;
use sampler::Sampler;
pub use subject::{metric_of, treatment_of};

#[derive(Clone, Debug)]
pub struct BisectQuestion {
    pub good: String,
    pub bad: String,
    /// Build method of each commit.
    pub build: Build,
    /// The settings under which samples are taken.
    pub treatment: Treatment,
    pub workload: Workload,
    /// The metric that became worse.
    pub metric: String,
    /// One minus the probability that the whole search names a wrong commit.
    pub confidence: Confidence,
    /// The largest change, in percent, that counts as none.
    pub margin_percent: f64,
    /// Largest number of samples of one commit.
    pub most_samples: usize,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// The version of numalab, for the record.
    pub version: String,
}

/// The progress of a bisection.
#[derive(Clone, Copy, Debug)]
pub enum BisectStep<'a> {
    /// This commit is being built; that number of commits may be the first bad one.
    Building(&'a Commit, usize),
    Judged(&'a JudgedCommit),
}

impl fmt::Display for BisectStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let judged = match self {
            Self::Building(commit, left) => {
                let (short, subject) = (commit.short(), &commit.subject);
                return write!(f, "building {short} ({subject}), 1 of {left} commits");
            }
            Self::Judged(judged) => judged,
        };
        write!(f, "{}: ", judged.commit.short())?;
        match &judged.side {
            CommitSide::Good => f.write_str("good")?,
            CommitSide::Bad => f.write_str("bad")?,
            CommitSide::NotBuilt(reason) | CommitSide::NotRun(reason) => {
                write!(f, "skipped: {reason}")?;
            }
            CommitSide::Open | CommitSide::Undecided => f.write_str("skipped: undecided")?,
        }
        match judged.samples.len() {
            1 => f.write_str(" after 1 sample"),
            samples => write!(f, " after {samples} samples"),
        }
    }
}

/// A search in progress.
pub struct Bisect<'a> {
    question: &'a BisectQuestion,
    repository: &'a Repository,
    /// The directory for results, and for files that one build leaves to the next.
    directory: &'a Path,
    sampler: Sampler<'a>,
    interrupt: &'a Interrupt,
    bisection: Bisection,
    document: BisectDocument,
}

/// A commit with the file that was built from it.
struct Candidate {
    judged: JudgedCommit,
    file: PathBuf,
}

impl<'a> Bisect<'a> {
    /// Looks up the commits; builds nothing yet.
    ///
    /// # Errors
    /// [`BisectError`] for revisions that do not exist, or if the bad one does not descend from the
    /// good one.
    pub fn new(
        plan: &'a Plan,
        backends: Backends,
        question: &'a BisectQuestion,
        repository: &'a Repository,
        directory: &'a Path,
        interrupt: &'a Interrupt,
    ) -> Result<Self, BisectError> {
        let good = repository.commit(&question.good)?;
        let bad = repository.commit(&question.bad)?;
        let candidates = repository.count(&good, &bad)?;
        let BisectQuestion { treatment, workload, metric, .. } = question;
        let sampler =
            Sampler::new(plan, backends, treatment.clone(), workload.clone(), metric, interrupt);
        sampler.check()?;
        let judged = |commit| JudgedCommit { commit, ..JudgedCommit::default() };
        let document = BisectDocument {
            schema: Kind::Bisect.into(),
            version: question.version.clone(),
            command: question.command.clone(),
            started_unix_ms: UtcTime::now().unix_ms,
            study: plan.study().name.clone(),
            backend: sampler.describe()?,
            treatment: treatment.name.clone(),
            workload: workload.name.clone(),
            // Unit and direction are known from the first sample.
            quantity: Quantity::lower(metric.clone(), ""),
            error_percent: 100.0 * question.confidence.alpha(),
            margin_percent: question.margin_percent,
            most_samples: question.most_samples,
            candidates,
            good: judged(good),
            bad: judged(bad),
            judged: Vec::new(),
            answer: None,
        };
        let bisection = Bisection::new(question.confidence, candidates, question.most_samples);
        Ok(Self { question, repository, directory, sampler, interrupt, bisection, document })
    }

    /// Returns what is known before the first build.
    pub fn document(&self) -> &BisectDocument {
        &self.document
    }

    /// Returns the largest number of builds in addition to the two ends, if each commit can be
    /// judged.
    pub fn halvings(&self) -> usize {
        self.bisection.halvings()
    }

    /// Searches to the end, and records the state after each commit.
    ///
    /// # Errors
    /// [`BisectError`]; the state until then is kept.
    pub fn run(
        mut self,
        watch: &mut dyn FnMut(BisectStep<'_>),
    ) -> Result<BisectDocument, BisectError> {
        self.keep()?;
        let answer = match self.search(watch) {
            // An interruption is an answer, so that the commits judged so far are kept.
            Err(BisectError::Backend(BackendError::Interrupted)) => BisectAnswer::Interrupted,
            other => other?,
        };
        self.document.answer = Some(answer);
        self.keep()?;
        Ok(self.document)
    }

    /// Checks a commit out and builds it; keeps the file with the results.
    fn built(&self, judged: &mut JudgedCommit) -> Result<Option<PathBuf>, BisectError> {
        let begun = Instant::now();
        self.repository.check_out(&judged.commit)?;
        let kept = self.made("build")?;
        let worktree = self.repository.worktree();
        let built = self.question.build.run(&judged.commit, worktree, &kept, self.interrupt)?;
        judged.build_s = begun.elapsed().as_secs_f64();
        let file = match built {
            Built::File(file) => file,
            Built::Skipped(reason) => {
                judged.side = CommitSide::NotBuilt(reason);
                return Ok(None);
            }
        };
        // Copied, because the next build overwrites it in the common build directory.
        let name = file.file_name().unwrap_or_default();
        let place = self.made(&format!("built/{}", judged.commit.short()))?.join(name);
        fs::copy(&file, &place).map_err(|source| io(&place, source))?;
        Ok(Some(place))
    }

    fn made(&self, name: &str) -> Result<PathBuf, BisectError> {
        let path = self.directory.join(name);
        fs::create_dir_all(&path).map_err(|source| io(&path, source))?;
        // Builds run in another working directory.
        path.canonicalize().map_err(|source| io(&path, source))
    }

    fn keep(&self) -> Result<(), BisectError> {
        let path = self.directory.join(numalab_record::file::BISECT);
        let text = serde_json::to_string_pretty(&self.document).unwrap_or_default() + "\n";
        write_atomically(&path, &text).map_err(|source| io(&path, source))
    }
}

fn io(path: &Path, source: std::io::Error) -> BisectError {
    BisectError::Io { path: path.to_path_buf(), source }
}
