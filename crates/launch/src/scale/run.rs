//! Runs the steps one after another.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use numalab_formats::ReadError;
use numalab_host::{
    Classed, ErrorClass, Interrupt, end_gently, terminate_with_parent, users_program,
};
use numalab_record::shell::command_line;

use super::banner::{RULE, closing, opening, step_heading};
use super::directory::{DirectoryError, ResultDirectory};
use super::launcher::Workload;
use super::line::LaunchLine;
use super::step::LaunchStep;

/// Consecutive failed steps after which the run gives up, as the node has probably failed.
const MOST_FAILURES_IN_A_ROW: usize = 2;

/// Reason why a run ended before its last step.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The result directory cannot be written.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("cannot start `{command}`: {error}")]
    Launch { command: String, error: io::Error },
    /// The manifest's architecture is damaged.
    #[error(transparent)]
    Architecture(#[from] ReadError),
    /// Some steps have no result.
    #[error("{0}")]
    Incomplete(String),
}

impl Classed for RunError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Architecture(_) => ErrorClass::BadInput,
            _ => ErrorClass::Failed,
        }
    }
}

/// The results of the steps.
#[derive(Default)]
struct Tally {
    /// Number of steps with a result, including those of earlier runs.
    done: usize,
    /// The numbers of ranks of the failed steps.
    failed: Vec<usize>,
    /// True if a signal ended the run.
    interrupted: bool,
}

/// A run of the steps that have no result yet.
#[derive(Debug)]
pub struct Runner<'a> {
    pub directory: &'a ResultDirectory,
    /// The common parts of the launch lines.
    pub line: LaunchLine<'a>,
    /// True if the log is not shown on the terminal.
    pub quiet: bool,
    /// Checked between steps and during each step.
    pub interrupt: &'a Interrupt,
}

impl Runner<'_> {
    /// Runs every step that has no result.
    ///
    /// # Errors
    ///
    /// [`RunError`] if nothing can be written or launched, or if steps fail; results are kept.
    pub fn run(&self) -> Result<(), RunError> {
        let manifest = self.line.manifest;
        let architecture = manifest.architecture()?;
        self.log(&opening(&architecture))?;
        let tally = self.steps()?;
        self.log(&closing(manifest, &architecture, false))?;
        if tally.done == manifest.steps.len() {
            return self.log(&format!("Benchmarks completed successfully\n{RULE}\n"));
        }
        let message = self.incomplete(&tally);
        self.log(&format!("{message}\n"))?;
        Err(RunError::Incomplete(message))
    }

    /// Says why steps have no result, and how to continue.
    fn incomplete(&self, tally: &Tally) -> String {
        let why = if tally.interrupted {
            "interrupted".to_owned()
        } else {
            let failed: Vec<String> = tally.failed.iter().map(ToString::to_string).collect();
            let (failed, log) = (failed.join(", "), self.directory.log_path());
            format!("the steps of {failed} ranks failed ({} has the reason)", log.display())
        };
        let (all, path) = (self.line.manifest.steps.len(), self.directory.path().display());
        format!(
            "{why}; {} of {all} steps have their results in {path}; finish them with:\n  \
             numalab scale --resume {path}",
            tally.done
        )
    }

    fn steps(&self) -> Result<Tally, RunError> {
        let mut tally = Tally::default();
        let mut in_a_row = 0;
        for step in &self.line.manifest.steps {
            if self.directory.has(step, self.line.manifest.workload.file_end()) {
                tally.done += 1;
                continue;
            }
            if self.interrupt.requested() {
                tally.interrupted = true;
                break;
            }
            if self.run_step(step)? {
                tally.done += 1;
                in_a_row = 0;
            } else {
                tally.failed.push(step.ranks);
                in_a_row += 1;
            }
            tally.interrupted = self.interrupt.requested();
            if tally.interrupted || in_a_row == MOST_FAILURES_IN_A_ROW {
                break;
            }
        }
        Ok(tally)
    }

    /// Runs a step; returns true if it produced its result.
    fn run_step(&self, step: &LaunchStep) -> Result<bool, RunError> {
        let words = self.line.words(step);
        let command = command_line(&words);
        let (log_path, log) = self.directory.log()?;
        let log = Mutex::new(log);
        let failed = |error| DirectoryError::Write { path: log_path.clone(), error };
        self.say(&log, &step_heading(self.line.manifest, step, &command)).map_err(failed)?;
        let mut launcher = users_program(&words[0], &words[1..]);
        launcher
            .current_dir(self.directory.path())
            .envs(crate::team::new_secret().ok().map(|secret| (crate::team::SECRET, secret)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        terminate_with_parent(&mut launcher);
        let mut child = launcher.spawn().map_err(|error| RunError::Launch { command, error })?;
        let (status, printed) = self.follow(&mut child, &log).map_err(failed)?;
        if let (Workload::Command(_), true) = (&self.line.manifest.workload, status.success()) {
            self.directory.write_whole(&format!("{}.out", step.stem), &printed)?;
        }
        let done = self.directory.has(step, self.line.manifest.workload.file_end());
        let verdict = match (status.success(), done) {
            (true, true) => "Benchmark completed successfully".to_owned(),
            (true, false) => "Benchmark ended without a result".to_owned(),
            (false, _) => format!("Benchmark failed: {status}"),
        };
        let end = format!("\n[ {} RANKS ] {verdict}\n{RULE}\n", step.ranks);
        self.say(&log, &end).map_err(failed)?;
        Ok(status.success() && done)
    }

    /// Copies the launcher's output to the log until it ends; the second value is its standard
    /// output.
    fn follow(&self, child: &mut Child, log: &Mutex<File>) -> io::Result<(ExitStatus, String)> {
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        std::thread::scope(|scope| {
            let errors = scope.spawn(|| self.copy(errors, log));
            let output = scope.spawn(|| self.copy(output, log));
            let status = self.wait(child)?;
            let join = |thread: std::thread::ScopedJoinHandle<'_, io::Result<String>>| match thread
                .join()
            {
                Ok(copied) => copied,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            join(errors)?;
            Ok((status, join(output)?))
        })
    }

    fn copy(&self, from: Option<impl io::Read>, log: &Mutex<File>) -> io::Result<String> {
        let mut all = String::new();
        let Some(from) = from else { return Ok(all) };
        let mut failed = None;
        for line in BufReader::new(from).split(b'\n') {
            let line = format!("{}\n", String::from_utf8_lossy(&line?));
            // The pipe is read to its end even when the disk is full, since the launcher would
            // otherwise block forever.
            if let Err(error) = self.say(log, &line) {
                failed.get_or_insert(error);
            }
            all.push_str(&line);
        }
        failed.map_or(Ok(all), Err)
    }

    /// Waits for the launcher, and forwards a signal that ends this run to it once.
    fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let mut passed_on = false;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if self.interrupt.requested() && !passed_on {
                passed_on = true;
                end_gently(child);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn log(&self, text: &str) -> Result<(), RunError> {
        let (path, log) = self.directory.log()?;
        let said = self.say(&Mutex::new(log), text);
        Ok(said.map_err(|error| DirectoryError::Write { path, error })?)
    }

    fn say(&self, log: &Mutex<File>, text: &str) -> io::Result<()> {
        if !self.quiet {
            // Only the log matters; a closed terminal is not a reason to stop.
            let _ = io::stdout().lock().write_all(text.as_bytes());
        }
        let mut log = log.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        log.write_all(text.as_bytes())
    }
}
