//! `numalab study`: does this change really help?

mod run;
mod show;
mod source;

pub(crate) use run::begin;
pub(crate) use show::report;

use std::process::ExitCode;

use numalab_places::BACKENDS;

use super::{bisect, probe};
use crate::args::StudyCommand;
use crate::failure::{Code, Failure};
use crate::output;

/// Runs the subcommand.
pub(crate) fn run(command: &StudyCommand) -> Result<ExitCode, Failure> {
    let done = match command {
        StudyCommand::List { format } => source::list(*format),
        StudyCommand::New(args) => source::begin(args),
        StudyCommand::Show { study, format } => source::show(study, *format),
        StudyCommand::Settings { backend, format } => {
            output::show(&BACKENDS.settings(backend.as_deref())?, *format)
        }
        StudyCommand::Run(args) => run::run(args),
        StudyCommand::Resume(args) => run::resume(args),
        StudyCommand::Bisect(args) => return bisect::run(args),
        StudyCommand::Probe(args) => probe::run(&args.command),
        StudyCommand::Agent { settings } => {
            numalab_places::serve(settings, std::io::stdin().lock(), std::io::stdout().lock())
                .map_err(|error| Failure::new(Code::Failed, error))
        }
    };
    done.map(|()| ExitCode::SUCCESS)
}
