//! `numalab mark`.

use std::env;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use numalab_host::{current_place, pin};
use numalab_marks::mark;
use numalab_record::shell::command_line;

use crate::args::{MarkArgs, Phase};
use crate::command::wrapper;
use crate::failure::Failure;
use crate::output;

/// Runs a command between markers, and exits with its code.
pub(crate) fn run(args: &MarkArgs) -> Result<ExitCode, Failure> {
    if args.dry_run {
        output::print(&intention(args))?;
        return Ok(ExitCode::SUCCESS);
    }
    wait();
    let ended = wrapper::start(&args.command, |mut command| {
        mark::begin();
        args.phase.as_ref().inspect(|phase| enter(phase));
        let ended = command.status();
        args.phase.as_ref().inspect(|_| mark::phase(0));
        mark::end();
        ended
    })?;
    Ok(wrapper::exit_code(ended))
}

/// Describes what would run between which markers.
fn intention(args: &MarkArgs) -> String {
    let phase = match &args.phase {
        None => String::new(),
        Some(Phase::Number(number)) => format!(" as phase {number}"),
        Some(Phase::Name(name)) => format!(" as phase {name}"),
    };
    format!("between markers{phase}: {}\n", command_line(&args.command))
}

/// Waits for the common start of a study's guests.
fn wait() {
    let at = env::var(mark::AT).ok().and_then(|at| at.parse().ok()).map(Duration::from_nanos);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    thread::sleep(at.unwrap_or_default().saturating_sub(now));
}

fn enter(phase: &Phase) {
    match phase {
        Phase::Number(number) => mark::phase(*number),
        Phase::Name(name) => {
            // Each cpu spells the name separately, so that a migration would cut it in two; a
            // failed pin is not worth an error.
            let _stay = pin(current_place().cpu);
            mark::named_phase(name);
        }
    }
}
