//! `numalab knobs run`.

use std::env;
use std::process::{Child, ExitCode, ExitStatus};
use std::thread;
use std::time::Duration;

use numalab_host::knobs::{Acts, Knob, KnobError, Tuning};
use numalab_host::{Interrupt, Root, note, users_program};
use numalab_record::shell::command_line;
use numalab_results::system::no_effect;

use super::list::state_words;
use crate::args::KnobRunArgs;
use crate::command::wrapper;
use crate::failure::{Code, Failure};
use crate::output;

/// Steps for which a command may go on after it was asked to end; then it is killed.
const GRACE_STEPS: u32 = 100;
const STEP: Duration = Duration::from_millis(50);

/// Sets the knobs, runs the command, and restores the knobs.
pub(super) fn run(args: &KnobRunArgs) -> Result<ExitCode, Failure> {
    let root = args.root.root();
    let knobs: Result<Vec<Knob>, _> =
        args.settings.iter().map(|(name, _)| Knob::find(&root, name)).collect();
    let knobs = knobs?;
    if args.dry_run {
        return show(args, &root, &knobs).map(|()| ExitCode::SUCCESS);
    }
    let mut tuning = Tuning::new(&root).map_err(refused)?;
    // From here on a signal ends the command, and the knobs are still restored.
    let interrupt = Interrupt::install()?;
    for (knob, (name, value)) in knobs.iter().zip(&args.settings) {
        if interrupt.requested() {
            break;
        }
        let before = knob.state(&root);
        let applied = tuning.set(knob, value).map_err(refused)?;
        if !output::quiet() {
            note(format_args!("{name}: {} (was {})", applied.found, state_words(before)));
            applied.left_out.iter().for_each(|file| note(format_args!("{name}: left out {file}")));
            if let Acts::No(reason) = knob.acts(&root) {
                note(format_args!("{name} cannot act here: {}", no_effect(&reason)));
            }
        }
    }
    let ended = start(&args.command).and_then(|child| wait(child, &interrupt));
    tuning.restore()?;
    let status = ended?;
    Ok(wrapper::exit_code(status))
}

/// Adds the command with the needed permission to an error about a missing one.
fn refused(error: KnobError) -> Failure {
    match &error {
        KnobError::Denied { .. } | KnobError::NoJournal { denied: true, .. } => {
            let own: Vec<String> = env::args().collect();
            Failure::new(Code::Lacking, format!("{error}; as root: sudo {}", command_line(&own)))
        }
        _ => error.into(),
    }
}

fn show(args: &KnobRunArgs, root: &Root, knobs: &[Knob]) -> Result<(), Failure> {
    let mut text = String::new();
    for (knob, (name, value)) in knobs.iter().zip(&args.settings) {
        let state = knob.state(root);
        text += &format!("{name}: {} would be {value}", state_words(state));
        if let Acts::No(reason) = knob.acts(root) {
            text += &format!(", and cannot act here: {}", no_effect(&reason));
        }
        text.push('\n');
    }
    output::print(&(text + &args.command.join(" ") + "\n"))
}

fn start(command: &[String]) -> Result<Child, Failure> {
    let (program, arguments) = command.split_first().ok_or_else(|| {
        Failure::bad_input("expected a command after `--`, such as `-- sysbench memory run`")
    })?;
    let started = users_program(program, arguments).spawn();
    started.map_err(|error| Failure::not_started(program, &error))
}

/// Waits for the command; a signal to numalab is passed on to it.
fn wait(mut child: Child, interrupt: &Interrupt) -> Result<ExitStatus, Failure> {
    let failed = |error| Failure::new(Code::Failed, format!("waiting for the command: {error}"));
    let mut steps_since_told = 0;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        if interrupt.requested() {
            match steps_since_told {
                0 => numalab_host::end_gently(&child),
                GRACE_STEPS => child.kill().map_err(failed)?,
                _ => {}
            }
            steps_since_told += 1;
        }
        thread::sleep(STEP);
    }
}
