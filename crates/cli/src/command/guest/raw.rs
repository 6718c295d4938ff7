//! `numalab guest run --raw`: any kernel, firmware or disk.

use std::process::ExitCode;

use numalab_guest::{Disk, Launch, Patterns, RawEnd, RawOutcome, RawTask};
use numalab_host::{note, print_error};
use numalab_image::{BootFiles, DiskFormat, KernelChoice, Medium, MediumError};
use numalab_record::MemoryReport;
use numalab_results::Report as _;

use super::report::{Relay, say_placement};
use super::{boot, memory_emulator};
use crate::args::{BootKernel, RunArgs};
use crate::failure::{Code, Failure};
use crate::output::{self, Stream, hint};

/// Boots the file and passes its console on; the exit code reports how it ended.
pub(super) fn run_raw(args: &RunArgs) -> Result<ExitCode, Failure> {
    let (launch, medium) = plan(args).map_err(Failure::of_wrapper)?;
    if args.guest.dry_run {
        output::print(&output::shell_lines(&launch.raw_command_line(medium)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let patterns = Patterns { expect: args.raw.expect.clone(), fail: args.raw.fail.clone() };
    let task = RawTask { medium, patterns };
    let relay = Relay::new().map_err(Failure::of_wrapper)?;
    let outcome = relay.follow(|runtime, sink, asked| launch.run_raw(runtime, &task, sink, asked));
    let outcome = outcome.map_err(|error| Failure::from(error).of_wrapper())?;
    conclude(args, &outcome).map_err(Failure::of_wrapper)?;
    // A closed pipe means that its reader has seen enough.
    if relay.is_unread() {
        return Ok(ExitCode::SUCCESS);
    }
    let code = exit_code(&outcome.end, &relay, &task.patterns)?;
    hint(format_args!("{}, after {:.1?}", outcome.end, outcome.time));
    Ok(code)
}

fn plan(args: &RunArgs) -> Result<(Launch, Medium), Failure> {
    let contents = &args.guest.contents;
    let BootKernel::Linux(KernelChoice::File(file)) = &contents.kernel else {
        return Err(Failure::bad_input("--raw: expected --kernel FILE, the file to boot"));
    };
    let no_image = contents.with.is_empty() && contents.module.is_empty();
    if !no_image || !args.collect.is_empty() || args.format.is_some() || args.label.is_some() {
        let message = "--with, --module, --collect, --format, --label: this guest does not \
                       contain numalab, expected none of them";
        return Err(Failure::bad_input(message));
    }
    let medium = Medium::of(file).map_err(medium_failure)?;
    check_words(args, medium)?;
    let mut guest = boot::guest(&args.guest, args.timeout)?;
    guest.kernel_arguments.extend(args.command.iter().cloned());
    for file in &args.raw.disk {
        let format = DiskFormat::of(file).map_err(medium_failure)?;
        guest.disks.push(Disk { file: file.clone(), format });
    }
    hint(format_args!("{} boots as {}", file.display(), medium.name()));
    let files = BootFiles { kernel: file.clone(), initramfs: args.raw.initrd.clone() };
    let launch = boot::bare(&args.guest, guest, &files)?;
    Ok((launch, medium))
}

/// Refuses words for firmware and disks, which have no command line.
fn check_words(args: &RunArgs, medium: Medium) -> Result<(), Failure> {
    let is_kernel = matches!(medium, Medium::Linux | Medium::Multiboot | Medium::Pvh);
    if is_kernel || (args.command.is_empty() && args.raw.initrd.is_none()) {
        return Ok(());
    }
    Err(Failure::bad_input(format!(
        "arguments after --, --initrd: {} does not take them, expected a kernel",
        medium.name()
    )))
}

fn medium_failure(error: MediumError) -> Failure {
    Failure::bad_input(format!("--kernel, --disk: {error}"))
}

/// Reports how the guest ended, where it ran, and what its memory emulator counted.
fn conclude(args: &RunArgs, outcome: &RawOutcome) -> Result<(), Failure> {
    if !output::quiet() {
        let is_placed = args.guest.pin.is_some() || args.guest.host_nodes.is_some();
        match &outcome.memory {
            memory @ Some(_) if is_placed => {
                say_placement(outcome.pins.as_ref(), memory.as_deref());
            }
            None if is_placed => {
                note("the location of the memory is unknown: QEMU ended with the guest");
            }
            _ => {}
        }
        if let Some(text) = &outcome.memory_report {
            let failed = |error| Failure::new(Code::Failed, error);
            let report = MemoryReport::read(text).map_err(failed)?;
            print_error(report.page().terminal(Stream::Error.style()));
        }
    }
    let file = args.guest.memory_emulator.emulate_report.as_deref();
    memory_emulator::keep_report(file, outcome.memory_report.as_deref())
}

/// Returns the exit code: patterns decide if given, otherwise the guest's exit port or power-off.
fn exit_code(end: &RawEnd, relay: &Relay, patterns: &Patterns) -> Result<ExitCode, Failure> {
    let silence = if relay.is_silent() { "; its first serial port printed nothing" } else { "" };
    match end {
        RawEnd::Expected { .. } => Ok(ExitCode::SUCCESS),
        RawEnd::Failed { .. } => Err(Failure::new(Code::Worse, end)),
        RawEnd::Stopped => Err(Failure::new(Code::WrapperFailed, end)),
        _ if patterns.expect.is_some() => {
            let message = format!("--expect matches no line of the console: {end}{silence}");
            Err(Failure::new(Code::Worse, message))
        }
        RawEnd::Port { value } => Ok(ExitCode::from(*value)),
        RawEnd::PoweredOff => Ok(ExitCode::SUCCESS),
        _ => Err(Failure::new(Code::WrapperFailed, format!("{end}{silence}"))),
    }
}
