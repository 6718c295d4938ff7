//! Makes a guest ready to start from the arguments.

use std::path::PathBuf;
use std::time::Duration;

use numalab_formats::size::format_rounded;
use numalab_guest::{
    AcceleratorChoice, Boot, Guest, GuestError, HostMemory, HostPages, Launch, Limits, Pins,
    QemuHazard,
};
use numalab_host::{MemoryLimit, Root, note, read_machine};
use numalab_image::{BootFiles, Contents, KernelChoice};
use numalab_record::study::Notice;
use numalab_results::study::page::{accelerator_reason, notice_words};
use numalab_topology::Machine;

use super::memory_emulator;
use crate::args::{BootArgs, BootKernel, ContentArgs};
use crate::failure::Failure;
use crate::output::{self, hint};

/// Returns a Linux guest that is ready to start, with everything it boots in the cache.
pub(super) fn prepare(
    args: &BootArgs,
    command: &[String],
    timeout: Option<Duration>,
) -> Result<Launch, Failure> {
    let guest = guest(args, timeout)?;
    let kernel = linux(&args.contents)?;
    let own = Contents::own(args.contents.architecture)?;
    let mut contents = contents(&args.contents, own, command)?;
    if guest.machine.has_cxl() {
        contents.need_cxl();
    }
    let mut note = |text: &str| hint(text);
    let boot = Boot::find(&guest, args.accel, kernel, &mut note)?;
    let kernel = boot.kernel(&guest, kernel, &mut note)?;
    let image = boot.image(&kernel, &contents, &mut note)?;
    let launch = planned(&boot, guest, image.boot_files())?;
    if let Some(QemuHazard { version, fixed_in }) = launch.hazard() {
        let (version, fixed_in) = (version.to_string(), fixed_in.to_string());
        numalab_host::note(notice_words(&Notice::QemuCanHang { version, fixed_in }));
    }
    Ok(launch)
}

/// Prints the command line that [`prepare`] would produce. Nothing is written or started, so files
/// that do not exist yet have names in capitals, and KVM is not tried.
pub(super) fn show(
    args: &BootArgs,
    command: &[String],
    timeout: Option<Duration>,
) -> Result<(), Failure> {
    let guest = guest(args, timeout)?;
    contents(&args.contents, Contents::default(), command)?;
    let kernel = match linux(&args.contents)? {
        KernelChoice::File(file) => file.clone(),
        KernelChoice::Distribution | KernelChoice::Backports => PathBuf::from("KERNEL"),
    };
    if args.accel == AcceleratorChoice::Auto && guest.known_accelerator(args.accel).is_none() {
        note(
            "--accel auto: a real start first tries a guest under KVM, and uses KVM if that works; \
             this shows the fallback, tcg",
        );
    }
    let files = BootFiles { kernel, initramfs: Some(PathBuf::from("INITRAMFS")) };
    let launch = Boot::foreseen(&guest, args.accel)?.launch(guest, &files)?;
    launch.losses().iter().for_each(note);
    output::print(&output::shell_lines(&launch.command_line()))
}

/// Plans the start of a guest that boots these files instead of Linux with numalab's image.
pub(super) fn bare(args: &BootArgs, guest: Guest, files: &BootFiles) -> Result<Launch, Failure> {
    let boot = match args.dry_run {
        true => Boot::foreseen(&guest, args.accel)?,
        false => Boot::find(&guest, args.accel, &KernelChoice::Distribution, &mut |text| {
            note(text);
        })?,
    };
    planned(&boot, guest, files)
}

/// Plans the start, and reports which accelerator is used and what QEMU cannot show.
fn planned(boot: &Boot, guest: Guest, files: &BootFiles) -> Result<Launch, Failure> {
    let accelerator = &boot.accelerator;
    let reason = accelerator_reason(&accelerator.reason);
    hint(format_args!("accelerator {}: {reason}", accelerator.kind.name()));
    let launch = boot.launch(guest, files)?;
    launch.losses().iter().for_each(note);
    Ok(launch)
}

/// Adds to the contents of an image what the arguments and this command need.
pub(super) fn contents(
    args: &ContentArgs,
    own: Contents,
    command: &[String],
) -> Result<Contents, Failure> {
    let (modules, architecture) = (args.module.clone(), args.architecture);
    let mut contents = Contents { modules, architecture, ..own };
    for program in &args.with {
        contents.add_program(program)?;
    }
    command.first().map(|program| contents.need_program(program)).transpose()?;
    Ok(contents)
}

pub(super) fn linux(args: &ContentArgs) -> Result<&KernelChoice, Failure> {
    match &args.kernel {
        BootKernel::Linux(choice) => Ok(choice),
        BootKernel::Numalab => Err(Failure::bad_input(
            "--kernel numalab: it has no shell and no image, expected `numalab guest run`",
        )),
    }
}

pub(super) fn guest(args: &BootArgs, timeout: Option<Duration>) -> Result<Guest, Failure> {
    let described = args.machine.request().describe_guest()?;
    described.findings.iter().for_each(note);
    note_size(&described.machine);
    let memory = HostMemory {
        pages: args.pages,
        nodes: args.host_nodes.clone().unwrap_or_default(),
        prealloc: args.prealloc,
        unreserved: exceeds_host(args, &described.machine)?,
    };
    let emulator =
        memory_emulator::wanted(&args.memory_emulator, &described, args.contents.architecture)?;
    let boot = emulator.as_ref().map_or(Limits::default().boot, |_| memory_emulator::BOOT_LIMIT);
    let limits = Limits { boot, run: timeout };
    let tables = args.tables.as_deref().map(Guest::tables_in).transpose()?.unwrap_or_default();
    let pins = pins(args)?;
    let guest =
        Guest { machine: described.machine, memory, tables, pins, limits, ..Guest::default() };
    let architecture = args.contents.architecture;
    let kernel_arguments = args.append.clone();
    let guest = Guest { memory_emulator: emulator, architecture, kernel_arguments, ..guest };
    guest.expect_possible(args.accel == AcceleratorChoice::Kvm).map_err(GuestError::from)?;
    Ok(guest)
}

/// Returns true if memory must not be reserved in advance, because the guest may have more than the
/// host.
fn exceeds_host(args: &BootArgs, guest: &Machine) -> Result<bool, Failure> {
    let touched = args.prealloc || args.pages != HostPages::Normal;
    Ok(!touched && guest.memory_bytes() > host()?.memory_bytes())
}

/// Notes that the guest has more memory than the host can give now: it starts, but must not touch all.
fn note_size(guest: &Machine) {
    let bytes = guest.memory_bytes();
    let Ok(limit) = MemoryLimit::read(&Root::live()) else { return };
    if bytes > limit.available_bytes {
        note(format_args!(
            "the guest has {} of memory, of which {} are available here ({}): a command that uses more \
             of it makes this machine swap, or ends the guest",
            format_rounded(bytes),
            format_rounded(limit.available_bytes),
            limit.source
        ));
    }
}

fn pins(args: &BootArgs) -> Result<Option<Pins>, Failure> {
    let Some(plan) = &args.pin else { return Ok(None) };
    Ok(Some(Pins { plan: plan.clone(), host: host()? }))
}

/// Reads this machine, for automatic pinning.
pub(super) fn host() -> Result<Machine, Failure> {
    let reading = read_machine(&Root::live())?;
    Ok(reading.machine)
}
