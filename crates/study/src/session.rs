//! Executes a plan, from its beginning or from where it was interrupted.

mod attempts;
mod error;

pub use error::SessionError;

use std::path::Path;
use std::time::{Duration, Instant};

use numalab_host::{Interrupt, UtcTime};
use numalab_record::study::{
    Applied, EndReason, JournalEntry, Notice, SampleEntry, StudyDocument, StudyRun, Treatment,
    Visit,
};
use numalab_record::{Environment, Fact};

use crate::backend::{Backend, BackendError, Preparation, Prepared, SampleRequest};
use crate::elapsed::{remaining_time, time_spent};
use crate::journal::{Journal, JournalError};
use crate::plan::{Plan, Started};

use attempts::{Attempts, Cell};

/// Observes a session, and decides when its intervals are narrow enough.
pub trait Observer {
    /// Receives notices for the user when the backend is ready.
    fn starting(&mut self, _notices: &[Notice]) {}

    /// Receives the number of finished samples, and of all that will count, after each sample is
    /// stored.
    fn sampled(&mut self, _done: usize, _in_all: usize) {}

    /// Reports that other load disturbs most samples; from then on none is repeated.
    fn machine_is_shared(&mut self) {}

    /// Receives the estimated time of the rest after the first block of this session.
    fn first_block(&mut self, _rest: Duration) {}

    /// Returns the treatments that cannot be the best any more and are dropped; called after each
    /// block.
    fn out(&mut self, _document: &StudyDocument) -> Vec<usize> {
        Vec::new()
    }

    /// Returns whether every interval is narrow enough; called after each block if the study has a
    /// precision.
    fn is_precise(&mut self, _document: &StudyDocument) -> bool {
        false
    }
}

/// Restores a backend after `done`; a failure to restore takes precedence.
fn restored<T>(
    backend: Box<dyn Prepared>,
    outcome: Result<T, SessionError>,
) -> Result<T, SessionError> {
    match backend.restore() {
        Ok(()) => outcome,
        Err(restore) => {
            let cause = outcome.err().map(Box::new);
            Err(SessionError::NotRestored { restore, cause })
        }
    }
}

/// A plan that is executed in a backend, until the user interrupts it.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    plan: &'a Plan,
    interrupt: &'a Interrupt,
}

/// A session in a backend that is ready.
struct Running<'a> {
    session: Session<'a>,
    plan: &'a Plan,
    backend: &'a mut dyn Prepared,
    journal: &'a mut Journal,
}

/// Number of upcoming visits that are announced to a backend.
const FORESEEN: usize = 64;

impl<'a> Session<'a> {
    /// Creates a session of a plan.
    pub fn new(plan: &'a Plan, interrupt: &'a Interrupt) -> Self {
        Self { plan, interrupt }
    }

    /// Runs the plan from its beginning in a new directory under `parent`, which keeps the study's
    /// text.
    ///
    /// # Errors
    /// [`SessionError`]; every finished sample is kept.
    pub fn begin(
        self,
        backend: Box<dyn Backend>,
        (parent, text): (&Path, &str),
        version: &str,
        observer: &mut dyn Observer,
    ) -> Result<(Journal, EndReason), SessionError> {
        let (version, unix_ms) = (version.to_owned(), UtcTime::now().unix_ms);
        let started = Started { version, command: std::env::args().collect(), unix_ms };
        let run = self.plan.run(backend.describe(), started);
        self.run(backend, || Journal::create(parent, run, text), observer)
    }

    /// Runs what a journal lacks of the plan, by the rules that the plan has now.
    ///
    /// # Errors
    /// [`SessionError`]; every finished sample is kept.
    pub fn resume(
        self,
        backend: Box<dyn Backend>,
        mut journal: Journal,
        observer: &mut dyn Observer,
    ) -> Result<(Journal, EndReason), SessionError> {
        let rules = self.plan.study().rules.clone();
        let run = StudyRun { rules, ..journal.document().run.clone() };
        self.run(backend, move || journal.replace_run(run).map(|()| journal), observer)
    }

    /// Prepares the backend, takes every sample that the journal lacks, and restores the former
    /// state in any case. `journal` is called when the backend is ready, so that nothing is written
    /// for a study that cannot be run.
    ///
    /// # Errors
    /// [`SessionError`]; every finished sample is kept.
    pub fn run(
        self,
        backend: Box<dyn Backend>,
        journal: impl FnOnce() -> Result<Journal, JournalError>,
        observer: &mut dyn Observer,
    ) -> Result<(Journal, EndReason), SessionError> {
        let Preparation { environment, notices, mut backend } =
            backend.prepare(&self.plan.scope())?;
        observer.starting(&notices);
        let mut journal = match self.opened(journal, environment, notices) {
            Ok(journal) => journal,
            // The backend may have changed settings already.
            Err(error) => return restored(backend, Err(error)),
        };
        let running = Running {
            session: self,
            plan: self.plan,
            backend: backend.as_mut(),
            journal: &mut journal,
        };
        let outcome = match running.blocks(observer) {
            Err(SessionError::Backend(BackendError::Interrupted)) => Ok(EndReason::Interrupted),
            outcome => outcome,
        };
        let outcome = restored(backend, outcome);
        let reason = match &outcome {
            Ok(reason) => reason.clone(),
            Err(error) => EndReason::Failed(error.to_string()),
        };
        // After the restore, whose failure is the reason to record.
        let kept = journal.append(JournalEntry::Ended { reason, unix_ms: UtcTime::now().unix_ms });
        // The failure of the session is more important than that of its last line.
        let reason = outcome?;
        kept?;
        Ok((journal, reason))
    }

    fn opened(
        &self,
        journal: impl FnOnce() -> Result<Journal, JournalError>,
        environment: Environment,
        notices: Vec<Notice>,
    ) -> Result<Journal, SessionError> {
        let mut journal = journal()?;
        refuse_other_environment(journal.document(), &environment)?;
        let unix_ms = UtcTime::now().unix_ms;
        let plan = self.plan.hash();
        journal.append(JournalEntry::Began { plan, unix_ms, environment, notices })?;
        Ok(journal)
    }
}

fn refuse_other_environment(
    document: &StudyDocument,
    now: &Environment,
) -> Result<(), SessionError> {
    let began = document.journal.iter().find_map(|entry| match entry {
        JournalEntry::Began { environment, .. } => Some(environment),
        _ => None,
    });
    let shown = |fact: Option<&Fact>| fact.map_or_else(|| "absent".to_owned(), ToString::to_string);
    let differences = began.map(|began| began.differences(now)).unwrap_or_default();
    if differences.is_empty() {
        return Ok(());
    }
    let said = differences
        .into_iter()
        .map(|(name, began, now)| format!("{name} was {}, is {}", shown(began), shown(now)));
    Err(SessionError::OtherEnvironment { differences: said.collect::<Vec<_>>().join("; ") })
}

impl Running<'_> {
    fn blocks(mut self, observer: &mut dyn Observer) -> Result<EndReason, SessionError> {
        let mut is_first = true;
        let rules = self.plan.study().rules.clone();
        let mut attempts = Attempts::of(self.journal.document(), &rules);
        for block in 0..self.plan.blocks() {
            if self.none_is_left() {
                return Ok(EndReason::NoneLeft);
            }
            let left = self.visits(block).iter().any(|visit| {
                self.plan.workload_order(block).into_iter().any(|workload| {
                    !attempts.is_done((block, visit.treatment, visit.arm, workload))
                })
            });
            if !left {
                continue;
            }
            // The first judged block runs in any case: without one, the warm-ups would be wasted.
            if block > rules.warm_ups && self.is_spent(block) {
                return Ok(EndReason::BudgetSpent);
            }
            for visit in self.visits(block) {
                self.visit(block, visit, &mut attempts, observer)?;
            }
            // Treatments are dropped between blocks only, so that every block is complete for
            // analysis in pairs.
            self.put_out(block, observer)?;
            if std::mem::take(&mut is_first) {
                self.report_rest(&attempts, observer);
            }
            // The width of intervals may end a study, but no verdict may: stopping at the first
            // significant one would raise the error rate.
            let precise = rules.precision_percent.is_some() && block >= rules.warm_ups;
            if precise && observer.is_precise(self.journal.document()) {
                return Ok(EndReason::Precise);
            }
        }
        Ok(EndReason::Done)
    }

    /// Returns the visits of a block without those of dropped treatments.
    fn visits(&self, block: usize) -> Vec<Visit> {
        let out = self.journal.document().out();
        let mut visits = self.plan.visits(block);
        visits.retain(|visit| out.get(&visit.treatment).is_none_or(|from| block < *from));
        visits
    }

    /// Reports whether all treatments except the baseline have been dropped.
    fn none_is_left(&self) -> bool {
        let out = self.journal.document().out().len();
        out > 0 && out + 1 == self.plan.treatments().len()
    }

    /// Asks which treatments to drop after this block, and records them.
    fn put_out(&mut self, block: usize, observer: &mut dyn Observer) -> Result<(), SessionError> {
        let before = self.journal.document().out();
        let mut found = observer.out(self.journal.document());
        // The baseline is never dropped, because all effects are relative to it.
        found.retain(|treatment| *treatment > 0 && !before.contains_key(treatment));
        for treatment in found {
            self.journal.append(JournalEntry::Out { treatment, from_block: block + 1 })?;
        }
        Ok(())
    }

    fn visit(
        &mut self,
        block: usize,
        visit: Visit,
        attempts: &mut Attempts,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let is_done = |workload| attempts.is_done((block, visit.treatment, visit.arm, workload));
        if self.plan.workload_order(block).into_iter().all(is_done) {
            return Ok(());
        }
        let begun = Instant::now();
        loop {
            self.check_interrupt()?;
            let out = self.journal.document().out();
            let is_out = |cell: Cell| out.get(&cell.1).is_some_and(|from| *from <= cell.0);
            let coming = upcoming(self.plan, block, |cell| attempts.is_done(cell) || is_out(cell));
            let treatment = |(_, visit): &(usize, Visit)| &self.plan.treatments()[visit.treatment];
            let treatments: Vec<&Treatment> = coming.iter().map(treatment).collect();
            // Backends in virtual time boot upcoming treatments in parallel. What ends before the
            // treatment that is due is stored at once, so that a kill loses none of it.
            self.backend.expect(&treatments);
            match self.backend.first_ready(&treatments) {
                0 => break,
                early => self.apply(coming[early], Instant::now(), attempts, observer)?,
            }
        }
        self.apply((block, visit), begun, attempts, observer)
    }

    /// Applies a treatment and takes its samples that are missing.
    fn apply(
        &mut self,
        (block, visit): (usize, Visit),
        begun: Instant,
        attempts: &mut Attempts,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let cell = |workload| (block, visit.treatment, visit.arm, workload);
        let mut todo = self.plan.workload_order(block);
        todo.retain(|workload| !attempts.is_done(cell(*workload)));
        let evidence = self.backend.apply(&self.plan.treatments()[visit.treatment])?;
        let took_s = begun.elapsed().as_secs_f64();
        let Visit { treatment, arm } = visit;
        self.journal.append(JournalEntry::Applied(Applied {
            block,
            treatment,
            arm,
            took_s,
            evidence,
        }))?;
        for workload in todo {
            while !attempts.is_done(cell(workload)) {
                self.check_interrupt()?;
                let was_shared = attempts.machine_is_shared();
                attempts.push(&self.sample(cell(workload), attempts.count(cell(workload)))?);
                if attempts.machine_is_shared() && !was_shared {
                    observer.machine_is_shared();
                }
            }
            observer.sampled(attempts.done(), self.samples_in_all());
        }
        Ok(())
    }

    /// Reports the estimated time of the rest.
    fn report_rest(&self, attempts: &Attempts, observer: &mut dyn Observer) {
        let (done, in_all) = (attempts.done(), self.samples_in_all());
        let rest = remaining_time(self.journal.document(), done, in_all);
        if let Some(rest) = rest.filter(|_| done < in_all) {
            observer.first_block(rest);
        }
    }

    fn sample(&mut self, cell: Cell, attempt: usize) -> Result<SampleEntry, SessionError> {
        let (block, treatment, arm, workload) = cell;
        let order = SampleRequest {
            treatment: &self.plan.treatments()[treatment],
            workload: &self.plan.workloads()[workload],
            // All treatments of a block do the same work, so its variation cancels in pairs.
            seed: self.plan.sample_seed(block, workload),
        };
        let (unix_ms, begun) = (UtcTime::now().unix_ms, Instant::now());
        let observation = self.backend.sample(&order)?;
        let took_s = begun.elapsed().as_secs_f64();
        let entry =
            SampleEntry { block, treatment, arm, workload, attempt, unix_ms, took_s, observation };
        // On disk before the next sample begins, so that a kill costs one sample at most.
        self.journal.append(JournalEntry::Sample(entry.clone()))?;
        Ok(entry)
    }

    fn check_interrupt(&self) -> Result<(), SessionError> {
        match self.session.interrupt.requested() {
            true => Err(BackendError::Interrupted.into()),
            false => Ok(()),
        }
    }

    fn samples_in_all(&self) -> usize {
        let visits: usize = (0..self.plan.blocks()).map(|block| self.visits(block).len()).sum();
        visits * self.plan.workloads().len()
    }

    /// Reports whether another block of mean length would exceed the budget.
    fn is_spent(&self, blocks_done: usize) -> bool {
        let Some(budget_s) = self.plan.study().rules.budget_s else { return false };
        let spent = time_spent(self.journal.document()).as_secs_f64();
        spent + spent / blocks_done as f64 > budget_s
    }
}

/// Returns the visits from this block on that still lack a sample, with their blocks, in order.
fn upcoming(plan: &Plan, from: usize, is_done: impl Fn(Cell) -> bool) -> Vec<(usize, Visit)> {
    let visits = (from..plan.blocks())
        .flat_map(|block| plan.visits(block).into_iter().map(move |visit| (block, visit)));
    let lacking = visits.filter(|(block, Visit { treatment, arm })| {
        let mut workloads = 0..plan.workloads().len();
        workloads.any(|workload| !is_done((*block, *treatment, *arm, workload)))
    });
    lacking.take(FORESEEN).collect()
}

#[cfg(test)]
mod tests;
