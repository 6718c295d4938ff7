//! `numalab emulate`.

use std::path::Path;
use std::process::ExitCode;

use numalab_guest::emulator::PLUGIN;
use numalab_guest::program::{EmulatedProgram, Followed, ProgramError, in_turn};
use numalab_host::note;
use numalab_topology::{CpuId, Machine};

use crate::args::{EmulateArgs, ThreadPlacement};
use crate::command::wrapper;
use crate::failure::{Code, Failure};
use crate::output;
use crate::source::{describe, describe_guest};

/// Runs a program on an emulated machine, reports the cost of its memory, and exits with its code.
pub(crate) fn run(args: &EmulateArgs) -> Result<ExitCode, Failure> {
    let described = match args.machine.emulated.emulate_like {
        // Guests are small by default; a program gets all the memory that it touches.
        Some(_) => describe(&args.machine)?,
        None => describe_guest(&args.machine)?,
    };
    described.findings.iter().for_each(note);
    let program = EmulatedProgram::new(
        PLUGIN.find()?,
        described.followed_memory(args.costs.given())?,
        threads(&args.threads, &described.machine)?,
        args.command.clone(),
    );
    if args.dry_run {
        let words = program.command_line(Path::new("DIRECTORY"))?;
        output::print(&output::shell_lines(&words))?;
        return Ok(ExitCode::SUCCESS);
    }
    let outcome = program.run()?;
    deliver(args, &Followed::read(&outcome.reports)?)?;
    Ok(wrapper::exit_code(outcome.status))
}

/// Returns the positions of the cpus that threads take in turn.
pub(super) fn threads(
    placement: &ThreadPlacement,
    machine: &Machine,
) -> Result<Vec<usize>, Failure> {
    let online = machine.cpus.iter().filter(|cpu| cpu.online);
    let (cpus, nodes): (Vec<CpuId>, Vec<_>) = online.map(|cpu| (cpu.id, cpu.node)).unzip();
    let position = |wanted: CpuId| cpus.iter().position(|id| *id == wanted);
    Ok(match placement {
        ThreadPlacement::Pack => {
            let mut order: Vec<usize> = (0..cpus.len()).collect();
            order.sort_by_key(|at| nodes[*at]);
            order
        }
        ThreadPlacement::Spread => in_turn(&nodes),
        ThreadPlacement::Cpus(wanted) => {
            let unknown = |cpu: CpuId| {
                let most = cpus.len();
                Failure::bad_input(format!("--threads: no cpu {cpu} on a machine of {most} cpus"))
            };
            let found = wanted.iter().map(|cpu| position(cpu).ok_or_else(|| unknown(cpu)));
            found.collect::<Result<_, _>>()?
        }
    })
}

/// Prints or writes the report of all processes.
fn deliver(args: &EmulateArgs, followed: &Followed) -> Result<(), Failure> {
    followed.remarks().into_iter().for_each(note);
    args.report.deliver(&followed.report, output::print_apart)?;
    has_most(followed)
}

/// Refuses a report that covers only the smaller part of the processes.
pub(super) fn has_most(followed: &Followed) -> Result<(), Failure> {
    match followed.mostly_lost() {
        Some(lost) => Err(Failure::new(Code::Lacking, lost)),
        None => Ok(()),
    }
}

impl From<ProgramError> for Failure {
    fn from(error: ProgramError) -> Self {
        let code = match error {
            ProgramError::NotFound(_) => Code::NotFound,
            ProgramError::Unreadable { .. } | ProgramError::Foreign(_) => Code::NotRunnable,
            ProgramError::NoQemu { .. } => Code::Lacking,
            ProgramError::Start(_) | ProgramError::Run(_) => Code::Failed,
        };
        Self::new(code, error)
    }
}
