//! QEMU's command line, in one place and one order.

use std::path::{Path, PathBuf};

use super::guest::{Hypervisor, Launch};
use super::runtime;
use crate::board::Board;
use crate::emulator::{EmulatorMode, EmulatorStart};
use crate::qemu::AcceleratorKind;
use numalab_guest_agent::protocol::PORT_NAME;
use numalab_image::{Architecture, DiskFormat, Medium};

/// The port to which a kernel without drivers writes in order to end QEMU.
pub const EXIT_PORT: &str = "isa-debug-exit,iobase=0xf4,iosize=4";

/// The connections between the guest and this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wiring {
    pub directory: PathBuf,
    /// The software that runs in the guest.
    pub system: System,
}

/// The software that runs in a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux with numalab's process 1.
    Linux {
        /// True if a user's terminal is attached.
        terminal: bool,
    },
    /// A kernel that needs only a serial port.
    Bare,
    /// Another kernel, firmware, or a bootable medium.
    Raw(Medium),
}

/// Returns the socket of QEMU's monitor, to which this process is connected.
pub fn monitor(directory: &Path) -> PathBuf {
    directory.join("monitor.sock")
}

/// Returns the pipe of the guest's console.
pub fn console(directory: &Path) -> PathBuf {
    directory.join("console")
}

/// Returns the socket of the result channel.
pub fn result(directory: &Path) -> PathBuf {
    directory.join("result.sock")
}

/// Returns QEMU's log of resets, including triple faults.
pub fn resets(directory: &Path) -> PathBuf {
    directory.join("resets.log")
}

impl System {
    /// Returns when charging begins: only kernels with our markers can exclude their start from it.
    fn charged(self) -> EmulatorStart {
        match self {
            // A foreign kernel never writes our markers, so charging would never begin.
            Self::Linux { .. } | Self::Bare => EmulatorStart::Marker,
            Self::Raw(_) => EmulatorStart::PowerOn,
        }
    }
}

impl Wiring {
    /// Returns the connections of a Linux guest.
    pub fn linux(directory: PathBuf, terminal: bool) -> Self {
        Self { directory, system: System::Linux { terminal } }
    }
}

impl Launch {
    /// Returns the command line for display; its sockets are in a directory `GUEST`.
    pub fn command_line(&self) -> Vec<String> {
        self.words(&Wiring::linux(PathBuf::from("GUEST"), false))
    }

    /// Returns the command line of [`Launch::run_bare`] for display.
    pub fn bare_command_line(&self) -> Vec<String> {
        self.words(&Wiring { directory: PathBuf::from("GUEST"), system: System::Bare })
    }

    /// Returns the command line of [`Launch::run_raw`] for display.
    pub fn raw_command_line(&self, medium: Medium) -> Vec<String> {
        self.words(&Wiring { directory: PathBuf::from("GUEST"), system: System::Raw(medium) })
    }

    fn words(&self, wiring: &Wiring) -> Vec<String> {
        let program = self.qemu.program.to_string_lossy().into_owned();
        let mut words = vec![program];
        words.extend(self.arguments(wiring));
        words
    }

    /// Returns QEMU's arguments with these connections.
    pub(super) fn arguments(&self, wiring: &Wiring) -> Vec<String> {
        arguments(self, wiring)
    }
}

/// Returns the processor model of a machine without a hypervisor.
fn cpu_model(launch: &Launch, wiring: &Wiring) -> &'static str {
    let emulator = launch.guest.memory_emulator.as_ref();
    let is_virtual = emulator.is_some_and(|own| own.mode == EmulatorMode::Virtual);
    match (&wiring.system, launch.accelerator.kind) {
        // QEMU 10.0 aborts with "Bad icount read" when a kernel sets its APIC timer by an MSR.
        (System::Raw(_), AcceleratorKind::Tcg) if is_virtual => "max,-x2apic",
        (_, accelerator) => {
            let board = Board::of(launch.guest.architecture);
            board.cpu_model.unwrap_or_else(|| accelerator.cpu_model())
        }
    }
}

/// Returns what QEMU's translator needs to show the threads of cores: its processors are AMD's, of which
/// Linux before 6.9 reads threads from a leaf that it lacks (`TOPOEXT`), and takes each for a core.
/// Intel's leaf it has.
fn shown_threads(launch: &Launch) -> &'static str {
    let guest = &launch.guest;
    let is_translated = launch.accelerator.kind == AcceleratorKind::Tcg
        && guest.architecture == Architecture::X86_64
        && guest.hypervisor.is_none();
    let has_threads = guest.machine.cores().iter().any(|core| core.cpus.len() > 1);
    if is_translated && has_threads { ",vendor=GenuineIntel" } else { "" }
}

fn arguments(launch: &Launch, wiring: &Wiring) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |option: &[&str]| words.extend(option.iter().map(|word| (*word).to_owned()));
    let accelerator = launch.accelerator.kind;
    // The user's configuration and QEMU's default devices would change the guest, and without
    // -no-reboot a reboot would not end QEMU.
    add(&["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    let board = Board::of(launch.guest.architecture);
    add(&["-machine", board.machine, "-accel", accelerator.name()]);
    let directory = &wiring.directory;
    let emulator = launch.guest.memory_emulator.as_ref();
    let emulator = emulator.map(|emulator| emulator.arguments(directory, wiring.system.charged()));
    let emulator = emulator.unwrap_or_default();
    add(&emulator.iter().map(String::as_str).collect::<Vec<_>>());
    let hypervisor = launch.guest.hypervisor.as_ref();
    // The hypervisor's own choice takes precedence: Xen 4.17 under TCG boots with `qemu64`, and
    // crashes with `max` and `EPYC`.
    let own_model = hypervisor.map(|own| own.cpu_model.as_str());
    let model = own_model.unwrap_or_else(|| cpu_model(launch, wiring));
    // Under a hypervisor Linux creates no region of CXL memory, since the hypervisor may not flush
    // caches (`drivers/cxl/core/region.c`, `cxl_region_invalidate_memregion`).
    let hidden = if launch.guest.machine.has_cxl() { ",-hypervisor" } else { "" };
    add(&["-cpu", &format!("{model}{hidden}{}", shown_threads(launch))]);
    add(&launch.machine_words.iter().map(String::as_str).collect::<Vec<_>>());
    let firmware = launch.qemu.firmware(board);
    // Only where ACPI tables are needed: a device tree suffices for other `virt` machines.
    if let Some(file) = firmware.filter(|_| launch.guest.qemu_needs().firmware) {
        add(&["-bios", &file.to_string_lossy()]);
    }
    // The guest's cpus start only after their threads have been pinned.
    add(&["-S"]);
    let channel = |backend: &str, id: &str, path: &Path| {
        let path = path.to_string_lossy().replace(',', ",,");
        format!("{backend},id={id},path={path}")
    };
    // A chardev serves one client at a time, so this process and `numalab guest pin` have separate
    // monitors.
    add(&["-chardev", &channel("socket", "monitor", &monitor(directory))]);
    add(&["-mon", "chardev=monitor,mode=control"]);
    add(&["-chardev", &runtime::mark_of(directory)]);
    add(&["-mon", "chardev=control,mode=control"]);
    add(&["-chardev", &channel("file", "console", &console(directory))]);
    add(&["-serial", "chardev:console"]);
    match wiring.system {
        System::Bare => add(&["-device", EXIT_PORT]),
        // Without a result channel, such a kernel can report a status only through the exit port.
        System::Raw(_) => {
            add(&["-device", EXIT_PORT]);
            // QEMU pauses at the guest's end instead of exiting, so that its memory can still be
            // inspected.
            add(&["-action", "reboot=shutdown,shutdown=pause"]);
            // QMP reports a triple fault as a plain reset; this log distinguishes the two.
            add(&["-d", "cpu_reset", "-D", &resets(directory).to_string_lossy()]);
        }
        System::Linux { terminal } => {
            add(&["-device", "virtio-serial-pci,bus=pcie.0"]);
            add(&["-chardev", &channel("socket", "result", &result(directory))]);
            let port = format!("virtserialport,chardev=result,name={PORT_NAME}");
            add(&["-device", &port]);
            if terminal {
                // signal=off: ctrl-C is a character for the guest's shell, not a signal to QEMU.
                add(&["-chardev", "stdio,id=terminal,signal=off"]);
                add(&["-device", "virtconsole,chardev=terminal"]);
            }
        }
    }
    match wiring.system {
        System::Raw(medium) => words.extend(boot_medium(launch, medium)),
        system => words.extend(boot(launch, system)),
    }
    words
}

/// `panic=-1`: a panic ends QEMU, as reboots do. `no_timer_check`: on a loaded host the translator
/// is too slow for the ten ticks that the kernel waits for at its start, and it panics with
/// "IO-APIC + timer doesn't work". `cryptomgr.notests`: Debian's 6.12 tests its ciphers in threads
/// that run for half a second after the first program has started.
const LINUX_WORDS: [&str; 4] = ["panic=-1", "cryptomgr.notests", "quiet", "loglevel=4"];

fn boot(launch: &Launch, system: System) -> Vec<String> {
    let kernel = launch.files.kernel.to_string_lossy().into_owned();
    let architecture = launch.guest.architecture;
    let mut line = match system {
        System::Linux { .. } => [Board::of(architecture).linux_words, &LINUX_WORDS].concat(),
        System::Bare | System::Raw(_) => Vec::new(),
    };
    // Other kernels than numalab's Linux get only the user's words.
    if let (System::Linux { .. }, Some(emulator)) = (system, &launch.guest.memory_emulator) {
        line.extend(emulator.mode.kernel_arguments(architecture));
    }
    line.extend(launch.guest.kernel_arguments.iter().map(String::as_str));
    if let Some(hypervisor) = &launch.guest.hypervisor {
        return boot_under(hypervisor, &kernel, line, launch.files.initramfs.as_deref());
    }
    let mut words = vec!["-kernel".to_owned(), kernel];
    if let Some(initramfs) = &launch.files.initramfs {
        let initramfs = initramfs.to_string_lossy().into_owned();
        words.extend(["-initrd".to_owned(), initramfs]);
    }
    if !line.is_empty() {
        words.extend(["-append".to_owned(), line.join(" ")]);
    }
    words
}

/// Returns the arguments for the medium with the guest's kernel arguments, and its disks, which
/// QEMU does not write to.
fn boot_medium(launch: &Launch, medium: Medium) -> Vec<String> {
    let file = launch.files.kernel.to_string_lossy().into_owned();
    let mut words = match medium {
        Medium::Linux | Medium::Multiboot | Medium::Pvh => boot(launch, System::Raw(medium)),
        Medium::Firmware => vec!["-bios".to_owned(), file],
        Medium::Disk(format) => drive("boot", &launch.files.kernel, format, ",bootindex=0"),
        // `bootindex` puts it before the guest's other disks, whatever their order is.
    };
    for (index, disk) in launch.guest.disks.iter().enumerate() {
        words.extend(drive(&format!("disk{index}"), &disk.file, disk.format, ""));
    }
    words
}

fn drive(id: &str, file: &Path, format: DiskFormat, more: &str) -> Vec<String> {
    let file = file.to_string_lossy().replace(',', ",,");
    let (format, device) = match format {
        // snapshot=on: writes go to a temporary file, so that a run never changes the user's disk.
        DiskFormat::Raw => ("raw,snapshot=on", "ide-hd"),
        DiskFormat::Qcow2 => ("qcow2,snapshot=on", "ide-hd"),
        DiskFormat::Iso => ("raw,readonly=on,media=cdrom", "ide-cd"),
    };
    let drive = format!("if=none,id={id},file={file},format={format}");
    let device = format!("{device},drive={id}{more}");
    ["-drive", &drive, "-device", &device].map(ToOwned::to_owned).to_vec()
}

/// Returns the arguments for a hypervisor, which QEMU boots with the kernel and the initramfs as
/// modules. Each module has its own command line; commas separate the modules.
fn boot_under(
    hypervisor: &Hypervisor,
    kernel: &str,
    line: Vec<&str>,
    initramfs: Option<&Path>,
) -> Vec<String> {
    // The serial port belongs to the hypervisor's console; Linux uses the last console named.
    let line: Vec<&str> = line.into_iter().chain(["console=hvc0"]).collect();
    let mut modules = vec![format!("{kernel} {}", line.join(" "))];
    modules.extend(initramfs.map(|file| file.to_string_lossy().into_owned()));
    let modules: Vec<String> = modules.iter().map(|module| module.replace(',', ",,")).collect();
    // Commas separate modules in -initrd, so those within a module's command line are doubled.
    let program = hypervisor.program.to_string_lossy().into_owned();
    let mut arguments = vec!["console=com1".to_owned()];
    arguments.extend(hypervisor.arguments.iter().cloned());
    let append = arguments.join(" ");
    let words = ["-kernel", &program, "-append", &append, "-initrd", &modules.join(",")];
    words.map(ToOwned::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_and_initramfs_are_the_modules_of_a_hypervisor() {
        let hypervisor = Hypervisor {
            program: "/cache/xen.elf".into(),
            arguments: vec!["numa=on".to_owned(), "dom0_mem=1G,max:1G".to_owned()],
            cpu_model: "qemu64".to_owned(),
        };
        let initramfs = Some(Path::new("/cache/dom0.cpio"));
        let words = boot_under(&hypervisor, "/cache/vm,linux", vec!["quiet"], initramfs);
        let expected = [
            "-kernel",
            "/cache/xen.elf",
            "-append",
            "console=com1 numa=on dom0_mem=1G,max:1G",
            "-initrd",
            "/cache/vm,,linux quiet console=hvc0,/cache/dom0.cpio",
        ];
        assert_eq!(words, expected);
    }
}
