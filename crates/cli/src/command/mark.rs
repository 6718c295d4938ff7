//! `numalab mark`.

use std::env;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use numalab_host::{current_place, pin};
use numalab_membench::mark;

use crate::args::{MarkArgs, Phase};
use crate::failure::{Code, Failure};

/// Runs a command between markers, and ends as it did.
pub(crate) fn run(args: &MarkArgs) -> Result<ExitCode, Failure> {
    wait();
    let (program, words) = args.command.split_first().unwrap_or((const { &String::new() }, &[]));
    mark::begin();
    args.phase.as_ref().inspect(|phase| enter(phase));
    let ended = Command::new(program).args(words).status();
    args.phase.as_ref().inspect(|_| mark::phase(0));
    mark::end();
    let ended = ended.map_err(|error| {
        let absent = error.kind() == ErrorKind::NotFound;
        Failure::new(
            if absent { Code::Lacking } else { Code::Failed },
            format!("{program}: {error}"),
        )
    })?;
    Ok(ExitCode::from(code_of(ended)))
}

/// Waits until the guests of a study begin together.
fn wait() {
    let at = env::var(mark::AT).ok().and_then(|at| at.parse().ok()).map(Duration::from_nanos);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    thread::sleep(at.unwrap_or_default().saturating_sub(now));
}

fn enter(phase: &Phase) {
    match phase {
        Phase::Number(number) => mark::phase(*number),
        Phase::Name(name) => {
            // Each cpu spells for itself; without a pin a move in between would cut the
            // name in two, which is no reason to run nothing.
            let _stay = pin(current_place().cpu);
            mark::named_phase(name);
        }
    }
}

/// As a shell gives it: 128 and the signal's number for a signal.
fn code_of(ended: ExitStatus) -> u8 {
    let signal = || ended.signal().map_or(255, |signal| 128 + (signal & 0x7f));
    u8::try_from(ended.code().unwrap_or_else(signal) & 0xff).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_gives_the_code_of_a_shell() {
        assert_eq!(code_of(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(code_of(ExitStatus::from_raw(9)), 137);
    }
}
