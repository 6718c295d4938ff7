//! `numalab guest run`, and `shell`.

use std::process::ExitCode;

use numalab_advise::{is_piped, redirected};
use numalab_guest::{GuestError, Runtime, Task};
use numalab_guest_agent::Job;
use numalab_host::{Interrupt, note};
use numalab_image::Architecture;

use super::report::{self, Relay};
use super::{boot, kernel, raw};
use crate::args::{BootKernel, RunArgs, ShellArgs};
use crate::failure::Failure;

/// Boots the guest and runs the command in it.
pub(super) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let architecture = args.guest.contents.architecture;
    let is_linux = matches!(args.guest.contents.kernel, BootKernel::Linux(_)) && !args.raw.raw;
    if architecture != Architecture::X86_64 && !is_linux {
        let name = architecture.name();
        let message = format!("--arch {name}: expected a Linux guest, without --raw");
        return Err(Failure::bad_input(message).of_wrapper());
    }
    if !args.guest.append.is_empty() && !is_linux {
        let message = "--append: expected a Linux guest; this kernel's parameters follow --";
        return Err(Failure::bad_input(message).of_wrapper());
    }
    if args.raw.raw {
        return raw::run_raw(args);
    }
    if args.guest.contents.kernel == BootKernel::Numalab {
        return kernel::run_kernel(args);
    }
    run_command(args).map_err(Failure::of_wrapper)
}

fn run_command(args: &RunArgs) -> Result<ExitCode, Failure> {
    if args.format.is_some() || args.label.is_some() {
        let message = "--format, --label: only with --kernel numalab; a command's output is \
                       printed unchanged";
        return Err(Failure::bad_input(message));
    }
    note_input();
    if args.guest.dry_run {
        return boot::show(&args.guest, &args.command, args.timeout).map(|()| ExitCode::SUCCESS);
    }
    if args.command.is_empty() {
        let message = "no command: expected one after --, such as -- numalab topology";
        return Err(Failure::bad_input(message));
    }
    let launch = boot::prepare(&args.guest, &args.command, args.timeout)?;
    let mut job = Job::new(in_guest(&args.command));
    job.collect = args.collect.clone();
    let task = Task { job, results: args.output.clone(), ..Task::default() };
    let relay = Relay::new()?;
    match relay.follow(|runtime, sink, asked| launch.run(runtime, &task, sink, asked)) {
        // A closed pipe means that its reader has seen enough.
        Err(GuestError::Stopped) if relay.is_unread() => Ok(ExitCode::SUCCESS),
        outcome => report::conclude(&outcome?, &args.guest),
    }
}

/// Notes that the command does not get the input that it would get on the host.
fn note_input() {
    let file = redirected().map(|file| file.display().to_string());
    let what = if is_piped() { Some("a pipe".to_owned()) } else { file };
    if let Some(what) = what {
        note(format_args!(
            "standard input is {what}, which is not passed to the guest: the command reads empty \
             input; --with FILE copies a file into the guest"
        ));
    }
}

/// Boots the guest and connects this terminal to its shell.
pub(super) fn shell(args: &ShellArgs) -> Result<ExitCode, Failure> {
    if args.guest.dry_run {
        return boot::show(&args.guest, &args.command, None).map(|()| ExitCode::SUCCESS);
    }
    let launch = boot::prepare(&args.guest, &args.command, None)?;
    let runtime = Runtime::open()?;
    let interrupt = Interrupt::install()?;
    let task = Task { job: Job::new(in_guest(&args.command)), ..Task::default() };
    let outcome = launch.shell(&runtime, &task, &|| interrupt.requested())?;
    report::conclude(&outcome, &args.guest)
}

/// Returns the command with the name that its program has in the guest: a file of the host keeps its
/// absolute path there.
fn in_guest(command: &[String]) -> Vec<String> {
    let mut command = command.to_vec();
    if let Some(program) = command.first_mut().filter(|program| program.contains('/'))
        && let Ok(path) = std::path::absolute(&*program)
    {
        *program = path.to_string_lossy().into_owned();
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_named_from_here_has_its_whole_path_in_the_guest() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let here = std::env::current_dir().unwrap();
        let expected = [here.join("job.sh").to_string_lossy().into_owned(), "./data".to_owned()];
        assert_eq!(in_guest(&words("./job.sh ./data")), expected);
        assert_eq!(in_guest(&words("/bin/job a")), ["/bin/job", "a"]);
        assert_eq!(in_guest(&words("numactl -H")), ["numactl", "-H"]);
        assert_eq!(in_guest(&[]), [""; 0]);
    }
}
