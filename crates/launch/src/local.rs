//! Runs ranks as processes of this machine, without a launcher.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use numalab_host::{
    Classed, ErrorClass, Interrupt, die_with_parent, end_gently, note, process_limits,
    users_program,
};

use crate::identity::{LOCAL_RANK, LOCAL_SIZE, RANK, SIZE};

/// Variable with the ranks' meeting place.
pub const MEETING: &str = "NUMALAB_MEETING";
/// Time for the other ranks to end after one of them failed.
const GRACE: Duration = Duration::from_secs(2);

/// A rank that could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start rank {rank}, `{program}`: {error}{}", too_many(error))]
pub struct StartError {
    pub rank: usize,
    pub program: String,
    pub error: io::Error,
}

impl Classed for StartError {
    fn class(&self) -> ErrorClass {
        match self.error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::WouldBlock => ErrorClass::Lacking,
            _ => ErrorClass::Failed,
        }
    }
}

/// Returns the limits of processes, if they are the reason for the error.
fn too_many(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock => {
            format!("; {}: raise the limit, or start fewer ranks", process_limits())
        }
        _ => String::new(),
    }
}

/// Starts `ranks` copies of a command and waits for them. If one fails, the others are ended.
/// Returns the exit code of the rank that failed first, or 0.
///
/// # Errors
/// [`StartError`] if a rank cannot be started; those already started are ended.
pub fn run(ranks: usize, words: &[String], interrupt: &Interrupt) -> Result<u8, StartError> {
    let (program, arguments) = words.split_first().map_or(("", words), |(p, a)| (p.as_str(), a));
    let time = numalab_host::monotonic_raw_ns();
    let meeting = format!("local-{}-{time}", std::process::id());
    let mut children: Vec<(usize, Child)> = Vec::new();
    for rank in 0..ranks {
        let mut command = users_program(program, arguments);
        command
            .env(RANK, rank.to_string())
            .env(SIZE, ranks.to_string())
            .env_remove(LOCAL_RANK)
            .env_remove(LOCAL_SIZE)
            .env(MEETING, &meeting);
        die_with_parent(&mut command);
        match command.spawn() {
            Ok(child) => children.push((rank, child)),
            Err(error) => {
                end(&mut children);
                return Err(StartError { rank, program: program.to_owned(), error });
            }
        }
    }
    Ok(wait(children, interrupt))
}

fn wait(mut children: Vec<(usize, Child)>, interrupt: &Interrupt) -> u8 {
    let mut failed = None;
    let mut deadline: Option<Instant> = None;
    while !children.is_empty() {
        children.retain_mut(|(rank, child)| match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) => {
                failed = worse(failed, failure_of(*rank, status));
                false
            }
            Err(_) => false,
        });
        match deadline {
            None if failed.is_some() || interrupt.requested() => {
                // The others notice the failure at their next barrier, and report the reason.
                deadline = Some(Instant::now() + GRACE);
                if interrupt.requested() {
                    children.iter().for_each(|(_, child)| end_gently(child));
                }
            }
            Some(at) if Instant::now() > at => end(&mut children),
            _ => {}
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    failed.unwrap_or(u8::from(interrupt.requested()))
}

/// Returns the exit code of a failed rank, reporting a signal that killed it.
fn failure_of(rank: usize, status: ExitStatus) -> Option<u8> {
    if status.success() {
        return None;
    }
    if status.code().is_none() {
        note(format_args!("rank {rank} was killed: {status}"));
    }
    Some(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Returns the first exit code, unless it is 1 and a later one is more specific: ranks that end
/// because another one failed exit with 1.
fn worse(first: Option<u8>, next: Option<u8>) -> Option<u8> {
    match (first, next) {
        (None | Some(1), Some(code)) => Some(code),
        (first, _) => first,
    }
}

fn end(children: &mut [(usize, Child)]) {
    for (_, child) in children {
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[test]
    fn every_rank_knows_its_number_and_that_of_all() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ranks");
        let script = format!("echo $NUMALAB_RANK/$NUMALAB_RANKS >> {}", file.display());
        assert_eq!(run(3, &sh(&script), &Interrupt::never()).unwrap(), 0);
        let text = std::fs::read_to_string(file).unwrap();
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["0/3", "1/3", "2/3"]);
    }

    #[test]
    fn a_rank_refused_for_a_limit_of_processes_is_refused_with_that_limit() {
        let of = |kind: io::ErrorKind| {
            let (rank, program, error) = (1, "x".to_owned(), kind.into());
            StartError { rank, program, error }
        };
        let refused = of(io::ErrorKind::WouldBlock);
        let said = refused.to_string();
        assert!(said.ends_with(": raise the limit, or start fewer ranks"), "{said}");
        assert_eq!(refused.class(), ErrorClass::Lacking);
        let absent = of(io::ErrorKind::NotFound).to_string();
        assert!(!absent.contains("limit"), "{absent}");
    }

    #[test]
    fn a_rank_that_fails_ends_the_others_and_its_code_is_the_result() {
        let script = "test $NUMALAB_RANK = 1 && exit 7; exec sleep 60";
        let begun = Instant::now();
        assert_eq!(run(2, &sh(script), &Interrupt::never()).unwrap(), 7);
        assert!(begun.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn the_result_is_the_code_of_the_rank_at_fault_in_any_order() {
        let script = "test $NUMALAB_RANK = 0 && sleep 0.3 && exit 2; exit 1";
        assert_eq!(run(3, &sh(script), &Interrupt::never()).unwrap(), 2);
    }

    #[test]
    fn a_command_that_cannot_be_started_is_named() {
        let error = run(2, &["/no/such".to_owned()], &Interrupt::never()).unwrap_err();
        assert!(error.to_string().contains("rank 0, `/no/such`"), "{error}");
    }
}
