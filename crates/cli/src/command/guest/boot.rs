//! Shared by `run` and `shell`: makes a guest ready to start from the arguments.

use std::path::{Path, PathBuf};
use std::time::Duration;

use numalab_guest::{
    Accelerator, AcceleratorChoice, AcceleratorKind, Guest, GuestError, HostMemory, HostPages,
    Launch, Limits, Pins, Qemu, QemuHazard,
};
use numalab_host::{Root, note, read_machine};
use numalab_image::{BootFiles, Cache, Contents, Image, Kernel, KernelChoice};
use numalab_record::study::{AcceleratorReason, Notice};
use numalab_results::study::page::{accelerator_reason, notice_words};
use numalab_topology::Machine;

use super::memory_emulator;
use crate::args::{BootArgs, BootKernel, ContentArgs};
use crate::command::own::own_program;
use crate::failure::Failure;
use crate::output;
use crate::source::describe_guest;

/// Tables that QEMU generates only for a machine with nodes; it always generates a MADT.
const TABLES: [&str; 3] = ["SRAT.bin", "SLIT.bin", "HMAT.bin"];

/// Returns a guest that is ready to start, with everything it boots in the cache.
pub(super) fn prepare(
    args: &BootArgs,
    command: &[String],
    timeout: Option<Duration>,
) -> Result<Launch, Failure> {
    let guest = guest(args, timeout)?;
    let cache = Cache::open()?;
    let qemu = find_qemu(&guest, &cache)?;
    let program = command.first().map(String::as_str);
    let (kernel, image) = files(&cache, &args.contents, program, &guest.machine)?;
    let choice = args.accel;
    let accelerator = match guest.known_accelerator(choice) {
        Some(known) => known,
        None => Accelerator::decide(choice, &qemu, &kernel.file, &cache)?,
    };
    if !output::quiet() {
        say_accelerator(&accelerator);
    }
    let launch = Launch::plan(guest, qemu, accelerator, image.boot_files())?;
    say_losses(&launch);
    if let Some(QemuHazard { version, fixed_in }) = launch.hazard() {
        let (version, fixed_in) = (version.to_string(), fixed_in.to_string());
        note(notice_words(&Notice::QemuCanHang { version, fixed_in }));
    }
    Ok(launch)
}

/// Prints the command line that [`prepare`] would lead to. Nothing is written or started, so files
/// that do not exist yet have names in capitals, and KVM is not tried.
pub(super) fn show(
    args: &BootArgs,
    command: &[String],
    timeout: Option<Duration>,
) -> Result<(), Failure> {
    let guest = guest(args, timeout)?;
    contents(&args.contents, PathBuf::new(), command.first().map(String::as_str))?;
    let cache = Cache::open()?;
    let qemu = find_qemu(&guest, &cache)?;
    let kind = match (guest.known_accelerator(args.accel), args.accel) {
        (Some(known), _) => known.kind,
        (None, AcceleratorChoice::Kvm) => AcceleratorKind::Kvm,
        (None, _) => {
            note(format_args!(
                "--accel auto: a real start first tries a guest under KVM, and uses KVM if that \
                 works; shown is tcg, the fallback"
            ));
            AcceleratorKind::Tcg
        }
    };
    let accelerator = Accelerator { kind, reason: AcceleratorReason::NotTried };
    let kernel = match linux(&args.contents)? {
        KernelChoice::File(file) => file.clone(),
        KernelChoice::Distribution | KernelChoice::Backports => PathBuf::from("KERNEL"),
    };
    let files = BootFiles { kernel, initramfs: Some(PathBuf::from("INITRAMFS")) };
    let launch = Launch::plan(guest, qemu, accelerator, &files)?;
    say_losses(&launch);
    output::print(&output::shell_lines(&launch.command_line()))
}

/// Returns the kernel and the image for this machine, from the cache or newly built.
pub(super) fn files(
    cache: &Cache,
    args: &ContentArgs,
    program: Option<&str>,
    machine: &Machine,
) -> Result<(Kernel, Image), Failure> {
    let mut note = |text: &str| {
        if !output::quiet() {
            note(text);
        }
    };
    let init = match args.architecture.own_program() {
        Some(companion) => companion.find()?,
        None => own_program()?,
    };
    let mut contents = contents(args, init, program)?;
    if machine.has_cxl() {
        contents.need_cxl();
    }
    contents.expect_own_processor(&contents.init)?;
    let mut kernel =
        |choice: &KernelChoice| Kernel::ensure_for(cache, choice, args.architecture, &mut note);
    let kernel = match (linux(args)?, machine.tiers.len()) {
        (choice, 0 | 1) => kernel(choice),
        (choice, _) => numalab_image::with_tiers(choice, &mut kernel),
    };
    let kernel = kernel?;
    let image = Image::ensure(cache, &kernel, &contents, &mut note)?;
    Ok((kernel, image))
}

/// Lists the contents of the guest's image, including `program`.
pub(super) fn contents(
    args: &ContentArgs,
    init: PathBuf,
    program: Option<&str>,
) -> Result<Contents, Failure> {
    let mut contents = Contents {
        modules: args.module.clone(),
        architecture: args.architecture,
        ..Contents::new(init)
    };
    for program in &args.with {
        contents.add_program(program)?;
    }
    program.map(|program| contents.need_program(program)).transpose()?;
    Ok(contents)
}

/// Returns the Linux kernel to boot.
fn linux(args: &ContentArgs) -> Result<&KernelChoice, Failure> {
    match &args.kernel {
        BootKernel::Linux(choice) => Ok(choice),
        BootKernel::Numalab => Err(Failure::bad_input(
            "--kernel numalab: it has no shell and no image, expected `numalab guest run`",
        )),
    }
}

pub(super) fn guest(args: &BootArgs, timeout: Option<Duration>) -> Result<Guest, Failure> {
    let described = describe_guest(&args.machine)?;
    described.findings.iter().for_each(note);
    let memory = HostMemory {
        pages: args.pages,
        nodes: args.host_nodes(),
        prealloc: args.prealloc,
        unreserved: exceeds_host(args, &described.machine)?,
    };
    let emulator =
        memory_emulator::wanted(&args.memory_emulator, &described, args.contents.architecture)?;
    let boot = emulator.as_ref().map_or(Limits::default().boot, |_| memory_emulator::BOOT_LIMIT);
    let limits = Limits { boot, run: timeout };
    let tables = args.tables.as_deref().map(tables_in).transpose()?.unwrap_or_default();
    let pins = pins(args)?;
    let guest =
        Guest { machine: described.machine, memory, tables, pins, limits, ..Guest::default() };
    let architecture = args.contents.architecture;
    let guest = Guest { memory_emulator: emulator, architecture, ..guest };
    guest.expect_possible(args.accel == AcceleratorChoice::Kvm).map_err(GuestError::from)?;
    Ok(guest)
}

/// Finds a QEMU that can run this guest.
pub(super) fn find_qemu(guest: &Guest, cache: &Cache) -> Result<Qemu, Failure> {
    Ok(Qemu::find(cache, &guest.qemu_needs())?)
}

/// Chooses the accelerator of a guest that is not our Linux: KVM only if one really runs under it.
/// For a command line that is only shown, nothing is tried.
pub(super) fn bare_accelerator(
    guest: &Guest,
    args: &BootArgs,
    qemu: &Qemu,
    cache: &Cache,
) -> Result<Accelerator, Failure> {
    match args.accel {
        AcceleratorChoice::Auto if guest.memory_emulator.is_some() => {
            Ok(Accelerator::tcg_for(AcceleratorReason::MemoryEmulator))
        }
        AcceleratorChoice::Kvm if args.dry_run => {
            Ok(Accelerator { kind: AcceleratorKind::Kvm, reason: AcceleratorReason::NotTried })
        }
        accel if args.dry_run || accel == AcceleratorChoice::Tcg => Ok(Accelerator::tcg()),
        accel => {
            if let (AcceleratorChoice::Auto, Some(tcg)) = (accel, Accelerator::without_device()) {
                return Ok(tcg);
            }
            let mut report = |text: &str| note(text);
            let probe = Kernel::ensure(cache, &KernelChoice::Distribution, &mut report)?;
            Ok(Accelerator::decide(accel, qemu, &probe.file, cache)?)
        }
    }
}

/// Reports which accelerator is used, and why.
pub(super) fn say_accelerator(accelerator: &Accelerator) {
    let reason = accelerator_reason(&accelerator.reason);
    note(format_args!("accelerator {}: {reason}", accelerator.kind.name()));
}

/// Returns true if memory must not be reserved in advance, as the guest may have more than the
/// host.
fn exceeds_host(args: &BootArgs, guest: &Machine) -> Result<bool, Failure> {
    let touched = args.prealloc || args.pages != HostPages::Normal;
    Ok(!touched && guest.memory_bytes() > host()?.memory_bytes())
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

fn tables_in(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let files = TABLES.map(|name| directory.join(name));
    let files: Vec<PathBuf> = files.into_iter().filter(|file| file.is_file()).collect();
    if files.first().is_some_and(|first| first.ends_with(TABLES[0])) {
        return Ok(files);
    }
    let directory = directory.display();
    Err(Failure::bad_input(format!(
        "--tables {directory}: no SRAT.bin there, expected the files that `numalab machine acpi \
         build -o {directory}` writes"
    )))
}

pub(super) fn say_losses(launch: &Launch) {
    launch.losses().iter().for_each(note);
}
