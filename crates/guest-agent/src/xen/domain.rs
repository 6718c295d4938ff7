//! Process 1 of a domain other than the first: waits for jobs in xenstore, runs them, and writes
//! each result there.
//!
//! xenstore holds the result as numbered pieces, then their length and checksum, then the state; so
//! a state only appears after everything before it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::process::Command;
use std::thread;
use std::time::Duration;

use numalab_host::{CommandError, Interrupt, from_json, run_command, unix_ns};
use numalab_marks::mark;
use serde::{Deserialize, Serialize};

use super::xenstore::{DEVICE, MAX_VALUE_BYTES, Xenstore, XenstoreError};
use crate::digest::sha256;
use crate::init;

/// Path at which the first domain posts the job.
pub(crate) const JOB: &str = "/numalab/job";
/// Path of each domain's state, relative to its own path.
pub(crate) const STATE: &str = "data/numalab/state";
pub(crate) const RESULT: &str = "data/numalab/result";
pub(crate) const OUTPUT: &str = "data/numalab/output";
/// Path of the time at which the domain begins its next job, in ns, if it differs between domains.
pub(crate) const BEGIN: &str = "data/numalab/begin";
/// The state of a domain that waits for its first job.
pub(crate) const READY: &str = "ready";
/// Limit of the output: xenstored allows a domain about a thousand values.
const MAX_OUTPUT_BYTES: usize = 400 * MAX_VALUE_BYTES;
/// The largest plausible wait; a larger one means that the clock is not shared by the domains.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// A shell's code for a command that took too long (timeout(1)).
const TIMED_OUT: u8 = 124;
const NOT_RUN: u8 = 126;

/// A job as stored in xenstore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PostedJob {
    /// Number of the job, from 1.
    pub number: usize,
    pub command: Vec<String>,
    pub limit_s: u64,
    /// Common start time of all domains, by their shared clock, in ns.
    pub start_ns: u64,
    /// Start of the marked part (`numalab mark`) in all domains, in ns, if each domain starts the
    /// command itself at a different time.
    pub mark_ns: Option<u64>,
    /// True if all its accesses are counted, and charged if memory is emulated; otherwise only
    /// those that it marks itself.
    pub charged: bool,
}

/// The result of a job as stored in xenstore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PostedResult {
    pub number: usize,
    pub exit: u8,
    pub begin_ns: u64,
    pub end_ns: u64,
    pub output_bytes: usize,
    /// SHA-256 of the output, in hexadecimal.
    pub checksum: String,
}

/// Returns the state of a domain that has finished this job.
pub(crate) fn done(number: usize) -> String {
    format!("done {number}")
}

/// Serves jobs until the domain is destroyed.
///
/// # Errors
/// [`XenstoreError`], on which the domain ends.
pub(crate) fn serve() -> Result<(), XenstoreError> {
    serve_over(&mut Xenstore::over(open()?))
}

fn serve_over(store: &mut Xenstore<impl Read + Write>) -> Result<(), XenstoreError> {
    // Fires immediately, as all watches do when they are set.
    store.watch(JOB, JOB)?;
    let mut last = 0;
    loop {
        if store.change()?.is_none() {
            continue;
        }
        let posted = store.read(JOB)?.unwrap_or_default();
        // A missing or partially written value is not a job.
        let Ok(job) = from_json::<PostedJob>(&posted) else {
            // A restored domain is a new one, which has not reported itself yet: its kernel sets
            // all watches again, so each of them fires.
            if last == 0 {
                store.write(STATE, READY.as_bytes())?;
            }
            continue;
        };
        if job.number <= last {
            continue;
        }
        last = job.number;
        let begin = store.text(BEGIN)?.and_then(|text| text.parse().ok());
        let start_ns = begin.filter(|_| job.mark_ns.is_some()).unwrap_or(job.start_ns);
        let (result, output) = run(&PostedJob { start_ns, ..job });
        post(store, &result, &output)?;
    }
}

/// Opens the device, which appears as soon as the kernel's own part of xenbus is ready.
fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(DEVICE)
}

fn post(
    store: &mut Xenstore<impl Read + Write>,
    result: &PostedResult,
    output: &[u8],
) -> Result<(), XenstoreError> {
    for (index, piece) in output.chunks(MAX_VALUE_BYTES).enumerate() {
        store.write(&format!("{OUTPUT}/{index}"), piece)?;
    }
    let text = serde_json::to_vec(result).map_err(io::Error::from)?;
    store.write(RESULT, &text)?;
    store.write(STATE, done(result.number).as_bytes())
}

fn run(job: &PostedJob) -> (PostedResult, Vec<u8>) {
    wait_until(job.start_ns);
    mark::phase(u8::try_from(job.number).unwrap_or(u8::MAX));
    if job.charged {
        mark::begin();
    }
    // Jobs run at the same time only from the marks on.
    let begin_ns = unix_ns().max(job.mark_ns.unwrap_or(0));
    let (mut exit, mut output) = execute(&job.command, job.limit_s, job.mark_ns);
    let end_ns = unix_ns();
    if job.charged {
        mark::end();
    }
    if output.len() > MAX_OUTPUT_BYTES {
        let text = format!("numalab: {} bytes of output, at most {MAX_OUTPUT_BYTES}", output.len());
        output = text.into_bytes();
        exit = NOT_RUN;
    }
    let result = PostedResult {
        number: job.number,
        exit,
        begin_ns,
        end_ns,
        output_bytes: output.len(),
        checksum: sha256(&output),
    };
    (result, output)
}

fn wait_until(time_ns: u64) {
    let wait = Duration::from_nanos(time_ns.saturating_sub(unix_ns()));
    thread::sleep(wait.min(LONGEST_WAIT));
}

/// Runs a command in this domain, and returns its exit code and both its outputs. The marked part
/// begins at `mark_ns`; its time limit counts from then.
pub(crate) fn execute(command: &[String], limit_s: u64, mark_ns: Option<u64>) -> (u8, Vec<u8>) {
    let before_mark = mark_ns.map_or(0, |mark_ns| mark_ns.saturating_sub(unix_ns()));
    let limit = Duration::from_secs(limit_s) + Duration::from_nanos(before_mark).min(LONGEST_WAIT);
    let mut words = command.iter();
    let mut command = Command::new(words.next().map_or("", String::as_str));
    command.args(words).env_clear().current_dir("/tmp");
    command.envs([("PATH", init::PATH), ("HOME", "/root"), ("TERM", "linux")]);
    command.envs(mark_ns.map(|mark_ns| (mark::AT, mark_ns.to_string())));
    match run_command(command, limit, &Interrupt::never()) {
        Ok(ran) => {
            let output = ran.stdout + &ran.stderr;
            (init::exit_of(ran.status).code(), output.into_bytes())
        }
        Err(error @ CommandError::TimedOut { .. }) => (TIMED_OUT, error.to_string().into_bytes()),
        Err(error) => (NOT_RUN, error.to_string().into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xen::xenstore::WATCH_EVENT;
    use crate::xen::xenstore::tests::{answered_by, message};

    fn job(command: &[&str], limit_s: u64) -> PostedJob {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        PostedJob { number: 1, command, limit_s, start_ns: 0, mark_ns: None, charged: true }
    }

    #[test]
    fn a_command_gives_its_code_and_both_outputs_with_their_checksum() {
        let (result, output) = run(&job(&["sh", "-c", "echo out; echo err >&2; exit 5"], 20));
        assert_eq!((result.exit, output.as_slice()), (5, &b"out\nerr\n"[..]));
        assert_eq!(result.checksum, sha256(&output));
        assert!(result.begin_ns <= result.end_ns && result.begin_ns > 0);
    }

    #[test]
    fn a_domain_reports_that_it_is_ready_and_again_after_it_is_restored() {
        let change = message(WATCH_EVENT, 0, b"/numalab/job\0/numalab/job\0");
        let answers = [message(4, 1, b"OK\0"), message(2, 2, b""), message(11, 3, b"OK\0")];
        let restored = [message(2, 4, b""), message(11, 5, b"OK\0")];
        let mut answers = [&answers[..], &restored[..]].concat();
        answers[0].extend_from_slice(&change);
        answers[2].extend_from_slice(&change);
        let (mut store, server) = answered_by(answers);
        assert!(serve_over(&mut store).is_err(), "xenstore is closed at the end");
        let looks = [&b"/numalab/job\0"[..], b"data/numalab/state\0ready"].concat();
        let asked = [&b"/numalab/job\0/numalab/job\0"[..], &looks, &looks].concat();
        assert_eq!(server.join().unwrap(), asked);
    }

    #[test]
    fn a_job_begins_at_the_common_start() {
        let mut later = job(&["true"], 20);
        later.start_ns = unix_ns() + 30_000_000;
        let (result, _) = run(&later);
        assert!(result.begin_ns >= later.start_ns);
    }

    #[test]
    fn a_command_gets_the_time_to_mark_and_its_limit_counts_from_then() {
        let mark_ns = unix_ns() + 400_000_000;
        let script = ["sh", "-c", "sleep 0.1; echo $NUMALAB_MARK_AT_NS"];
        let (result, output) = run(&PostedJob { mark_ns: Some(mark_ns), ..job(&script, 0) });
        assert_eq!((result.exit, output), (0, format!("{mark_ns}\n").into_bytes()));
        assert_eq!(result.begin_ns, mark_ns);
        let (_, unmarked) = run(&job(&["sh", "-c", "echo $NUMALAB_MARK_AT_NS"], 20));
        assert_eq!(unmarked, b"\n");
    }

    #[test]
    fn a_hanging_or_missing_command_gives_a_result_too() {
        let (result, output) = run(&job(&["sleep", "60"], 0));
        assert_eq!(result.exit, TIMED_OUT);
        assert!(String::from_utf8_lossy(&output).contains("did not end within"));
        assert_eq!(run(&job(&["no-such-program"], 5)).0.exit, NOT_RUN);
    }

    #[test]
    fn more_output_than_xenstore_can_hold_is_refused_with_its_size() {
        let script = format!("head -c {} /dev/zero", MAX_OUTPUT_BYTES + 1);
        let (result, output) = run(&job(&["sh", "-c", &script], 20));
        assert_eq!(result.exit, NOT_RUN);
        assert!(String::from_utf8_lossy(&output).contains("bytes of output"));
    }
}
