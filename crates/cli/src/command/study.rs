//! `numalab study`: does this change really help?

mod run;
mod settings;
mod show;
pub(crate) mod source;

pub(crate) use run::begin;
pub(crate) use show::report;

use std::process::ExitCode;

use super::{bisect, probe};
use crate::args::StudyCommand;
use crate::failure::{Code, Failure};

/// Runs the subcommand.
pub(crate) fn run(command: &StudyCommand) -> Result<ExitCode, Failure> {
    let done = match command {
        StudyCommand::List { format } => source::list(*format),
        StudyCommand::New(args) => source::begin(args),
        StudyCommand::Show { study, format } => source::show(study, *format),
        StudyCommand::Settings { backend, format } => settings::list(backend.as_deref(), *format),
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
