//! `numalab knobs run`.

use std::env;
use std::process::ExitCode;

use numalab_host::{Interrupt, Root, note, wait_passing_signals};
use numalab_knobs::{Acts, Knob, KnobError, Tuning};
use numalab_record::shell::command_line;
use numalab_results::system::no_effect;

use super::{KnobRunArgs, state_words};
use crate::command::wrapper;
use crate::failure::{Code, Failure};
use crate::output;

/// Sets the knobs, runs the command, and restores the knobs.
pub(super) fn run(args: &KnobRunArgs) -> Result<ExitCode, Failure> {
    let root = args.root.root()?;
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
    let started = wrapper::start(&args.command, |mut command| command.spawn());
    let ended = started.map(|child| wait_passing_signals(child, &interrupt));
    tuning.restore()?;
    let failed = |error| Failure::new(Code::Failed, format!("waiting for the command: {error}"));
    Ok(wrapper::exit_code(ended?.map_err(failed)?))
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
        knob.check_value(root, value)?;
        let state = knob.state(root);
        text += &format!("{name}: {} would be {value}", state_words(state));
        if let Acts::No(reason) = knob.acts(root) {
            text += &format!(", and cannot act here: {}", no_effect(&reason));
        }
        text.push('\n');
    }
    output::print(&(text + &args.command.join(" ") + "\n"))
}
