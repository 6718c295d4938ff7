//! Makes all domains run a job together, and reads the results from xenstore.

use std::io;
use std::time::Duration;

use numalab_host::{from_json, unix_ns};

use super::{Agent, AgentError, CreatedDomain};
use crate::digest::sha256;
use crate::xen::domain::{BEGIN, JOB, OUTPUT, PostedJob, PostedResult, RESULT, done, execute};
use crate::xen::event::{DomainAnswer, FIRST_DOMAIN, LostPhase, XenEvent};
use crate::xen::plan::DomainJob;
use crate::xen::xenstore::XenstoreError;

/// The delay from posting a job to its start, and an additional delay for each domain, in ns: by
/// then all domains have read it.
const START_NS: u64 = 500_000_000;
const START_EACH_NS: u64 = 150_000_000;
/// The delay between the domains' starts if only the marked part of the commands is charged: the
/// rest runs in one domain after another, because QEMU gives each of many busy cpus only a few
/// instructions at a time, so that together they take ten times as long.
const TURN_NS: u64 = 1_000_000_000;
/// Maximum time, after the end of the command's own limit, in which a domain must report its end.
const SAYING_SO: Duration = Duration::from_secs(60);

impl Agent<'_> {
    /// Creates the place where jobs are posted.
    pub(super) fn prepare_jobs(&mut self) -> Result<(), AgentError> {
        self.store.write(JOB, b"")?;
        Ok(self.store.let_all_read(JOB)?)
    }

    /// Runs a job in this domain and reports the result.
    pub(super) fn do_own_job(&mut self, index: usize, job: &DomainJob) -> Result<(), AgentError> {
        let begin_ns = unix_ns();
        let (exit, output) = execute(&job.command, job.limit_s, None);
        self.tell(XenEvent::Answered(DomainAnswer {
            domain: FIRST_DOMAIN.to_owned(),
            job: index,
            exit,
            output: String::from_utf8_lossy(&output).into_owned(),
            begin_ns,
            end_ns: unix_ns(),
        }))
    }

    /// Posts the job with this number (from 1) and reports every domain's result.
    pub(super) fn do_job(&mut self, number: usize) -> Result<(), AgentError> {
        let job = &self.plan.jobs[number - 1];
        let start_ns = unix_ns() + START_NS + START_EACH_NS * self.made.len() as u64;
        let mark_ns = match self.plan.charged && job.marks_itself {
            true => Some(self.give_turns(start_ns)?),
            false => None,
        };
        let posted = PostedJob {
            number,
            command: job.command.clone(),
            limit_s: job.limit_s,
            start_ns,
            mark_ns,
            charged: self.plan.charged && !job.marks_itself,
        };
        let text = serde_json::to_vec(&posted)
            .map_err(|error| XenstoreError::Io(io::Error::from(error)))?;
        self.store.write(JOB, &text)?;
        let turns = Duration::from_nanos(mark_ns.map_or(0, |mark_ns| mark_ns - start_ns));
        let limit = Duration::from_secs(job.limit_s) + turns + SAYING_SO;
        self.wait_for_state(&done(number), LostPhase::Job, limit)?;
        for domain in self.made.clone() {
            match self.answer_of(&domain, number)? {
                Ok(answer) => self.tell(XenEvent::Answered(answer))?,
                Err(reason) => self.lose(&domain.name, LostPhase::Job, reason)?,
            }
        }
        Ok(())
    }

    /// Gives every domain a start time, one after another; returns the time at which all have
    /// finished the part before their marks.
    fn give_turns(&mut self, start_ns: u64) -> Result<u64, XenstoreError> {
        let mut turn_ns = start_ns;
        for domain in self.made.clone() {
            let path = format!("/local/domain/{}/{BEGIN}", domain.id);
            self.store.write(&path, turn_ns.to_string().as_bytes())?;
            turn_ns += TURN_NS;
        }
        Ok(turn_ns)
    }

    /// Returns the result of one domain, or the problem with it.
    fn answer_of(
        &mut self,
        domain: &CreatedDomain,
        number: usize,
    ) -> Result<Result<DomainAnswer, String>, XenstoreError> {
        let path = |name: &str| format!("/local/domain/{}/{name}", domain.id);
        let posted = self.store.read(&path(RESULT))?.unwrap_or_default();
        let Ok(result) = from_json::<PostedResult>(&posted) else {
            return Ok(Err("its result cannot be read".to_owned()));
        };
        let mut output = Vec::new();
        let mut index = 0;
        while output.len() < result.output_bytes {
            let Some(piece) = self.store.read(&path(&format!("{OUTPUT}/{index}")))? else { break };
            output.extend_from_slice(&piece);
            index += 1;
        }
        if result.number != number || sha256(&output) != result.checksum {
            return Ok(Err("the checksum does not match the output".to_owned()));
        }
        Ok(Ok(DomainAnswer {
            domain: domain.name.clone(),
            job: number - 1,
            exit: result.exit,
            output: String::from_utf8_lossy(&output).into_owned(),
            begin_ns: result.begin_ns,
            end_ns: result.end_ns,
        }))
    }
}
