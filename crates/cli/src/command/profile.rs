//! `numalab profile`.

mod emulation;

use std::process::ExitCode;

use numalab_host::{Interrupt, Root, SourceLines, note, read_machine};
use numalab_profile::{Choice, ProfileError, Watched, choose, watch};
use numalab_record::profile::{Ended, Hindrance, SourceName};
use numalab_results::profile::page::{hindrance_words, remarks};

use crate::args::ProfileArgs;
use crate::command::wrapper;
use crate::failure::{Code, Failure};
use crate::output;

/// Profiles a command, or a running process.
pub(crate) fn run(args: &ProfileArgs) -> Result<ExitCode, Failure> {
    let done = profile(args);
    // The command's exit code is passed on, so our own failures must differ from it.
    if args.pid.is_none() { done.map_err(Failure::of_wrapper) } else { done }
}

fn profile(args: &ProfileArgs) -> Result<ExitCode, Failure> {
    let root = Root::live();
    let machine = read_machine(&root)?.machine;
    let emulated = emulation::prepare(args);
    let hindrance = emulated.as_ref().err().cloned();
    let choice = choose(&root, &machine, args.wanted(), hindrance);
    let first = choice.sources.first().copied();
    if args.dry_run {
        return intention(&choice, emulated.ok().filter(|_| first == Some(SourceName::Emulation)));
    }
    if first.is_none() {
        let Some(over) = choice.passed_over.first() else { return Ok(ExitCode::SUCCESS) };
        return Err(hindered(over.source, &over.why));
    }
    let interrupt = Interrupt::install()?;
    let mut profile = match emulated {
        Ok(emulated) if first == Some(SourceName::Emulation) => {
            match emulation::run(emulated, choice.passed_over, args.wanted().is_none())? {
                Ok(profile) => profile,
                Err(status) => return Ok(wrapper::exit_code(status)),
            }
        }
        _ => {
            let watched = match args.pid {
                Some(process) => Watched::Process(process),
                None => Watched::Command(&args.command),
            };
            watch(&machine, watched, choice, args.for_, &interrupt).map_err(
                |error| match error {
                    ProfileError::Hindered { source_name, why } => hindered(source_name, &why),
                    error => error.into(),
                },
            )?
        }
    };
    let mut lines = SourceLines::default();
    profile.program.name_code(|place| lines.frames(place));
    remarks(&profile).iter().for_each(note);
    // The report about a command is apart from its own output.
    let print = if args.pid.is_some() { output::print } else { output::print_apart };
    args.report.deliver(&profile, print)?;
    Ok(exit_code(profile.ended))
}

/// Describes what would be done.
fn intention(choice: &Choice, emulated: Option<emulation::Prepared>) -> Result<ExitCode, Failure> {
    let over = choice
        .passed_over
        .iter()
        .map(|over| format!("not {}: {}\n", over.source, hindrance_words(&over.why)));
    let mut text: String = over.collect();
    match choice.sources.first() {
        Some(source) => text.push_str(&format!("source: {source}\n")),
        None => text.push_str("source: none\n"),
    }
    if let Some(emulated) = emulated {
        text.push_str(&output::shell_lines(&emulated.command_line()?));
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn hindered(source: SourceName, why: &Hindrance) -> Failure {
    let message = format!("--source {source}: {}", hindrance_words(why));
    Failure::new(Code::Lacking, message)
}

/// Returns the command's exit code as a shell would.
fn exit_code(ended: Ended) -> ExitCode {
    let code = match ended {
        Ended::Exited(code) => code & 0xff,
        Ended::Signalled(signal) => 128 + (signal & 0x7f),
        Ended::ProcessEnded | Ended::TimeOver | Ended::Interrupted => 0,
    };
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
