//! `numalab guest shell`.

use std::process::ExitCode;

use numalab_guest::{Runtime, Task};
use numalab_guest_agent::Job;
use numalab_host::Interrupt;

use super::{boot, report};
use crate::args::ShellArgs;
use crate::failure::Failure;

/// Boots the guest and connects this terminal to its shell.
pub(super) fn run(args: &ShellArgs) -> Result<ExitCode, Failure> {
    if args.guest.dry_run {
        return boot::show(&args.guest, &args.command, None).map(|()| ExitCode::SUCCESS);
    }
    let launch = boot::prepare(&args.guest, &args.command, None)?;
    let runtime = Runtime::open()?;
    let interrupt = Interrupt::install()?;
    let task = Task { job: Job::new(args.command.iter().cloned()), ..Task::default() };
    let outcome = launch.shell(&runtime, &task, &|| interrupt.requested())?;
    report::conclude(&outcome, &args.guest)
}
