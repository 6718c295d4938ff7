//! QEMU's command line, in one place and one order.

use std::path::{Path, PathBuf};

use super::guest::{Hypervisor, Launch};
use super::runtime;
use numalab_guest_agent::protocol::PORT_NAME;

/// The port that a kernel without drivers ends QEMU with.
pub const EXIT_PORT: &str = "isa-debug-exit,iobase=0xf4,iosize=4";

/// How the guest is connected to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wiring {
    /// The directory with the sockets.
    pub directory: PathBuf,
    /// What runs in the guest.
    pub system: System,
}

/// What runs in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux with our process 1; a person's terminal is joined to it or not.
    Linux {
        /// Whether a person's terminal is joined to it.
        terminal: bool,
    },
    /// A kernel that needs nothing but a serial port.
    Bare,
}

/// The socket of QEMU's monitor, which we hold.
pub fn monitor(directory: &Path) -> PathBuf {
    directory.join("monitor.sock")
}

/// The socket of the guest's console.
pub fn console(directory: &Path) -> PathBuf {
    directory.join("console.sock")
}

/// The socket of the result channel.
pub fn result(directory: &Path) -> PathBuf {
    directory.join("result.sock")
}

impl Wiring {
    /// The wiring of a Linux guest.
    pub fn linux(directory: PathBuf, terminal: bool) -> Self {
        Self { directory, system: System::Linux { terminal } }
    }
}

impl Launch {
    /// The command line, for people; sockets are in a directory `GUEST`.
    #[must_use]
    pub fn command_line(&self) -> Vec<String> {
        self.words(&Wiring::linux(PathBuf::from("GUEST"), false))
    }

    /// As [`Launch::command_line`], of [`Launch::run_bare`].
    #[must_use]
    pub fn bare_command_line(&self) -> Vec<String> {
        self.words(&Wiring { directory: PathBuf::from("GUEST"), system: System::Bare })
    }

    fn words(&self, wiring: &Wiring) -> Vec<String> {
        let program = self.qemu.program.to_string_lossy().into_owned();
        let mut words = vec![program];
        words.extend(self.arguments(wiring));
        words
    }

    /// QEMU's arguments with these connections.
    pub(super) fn arguments(&self, wiring: &Wiring) -> Vec<String> {
        arguments(self, wiring)
    }
}

/// All of QEMU's arguments.
fn arguments(launch: &Launch, wiring: &Wiring) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |option: &[&str]| words.extend(option.iter().map(|word| (*word).to_owned()));
    let accelerator = launch.accelerator.kind;
    add(&["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    add(&["-machine", "q35", "-accel", accelerator.name()]);
    let directory = &wiring.directory;
    let emulator = launch.guest.memory_emulator.as_ref();
    let emulator = emulator.map(|emulator| emulator.arguments(directory)).unwrap_or_default();
    add(&emulator.iter().map(String::as_str).collect::<Vec<_>>());
    let hypervisor = launch.guest.hypervisor.as_ref();
    add(&["-cpu", hypervisor.map_or(accelerator.cpu_model(), |own| own.cpu_model.as_str())]);
    add(&launch.machine_words.iter().map(String::as_str).collect::<Vec<_>>());
    // Nothing runs before its threads are where they belong.
    add(&["-S"]);
    let socket = |id: &str, path: &Path| {
        let path = path.to_string_lossy().replace(',', ",,");
        format!("socket,id={id},path={path}")
    };
    add(&["-chardev", &socket("monitor", &monitor(directory))]);
    add(&["-mon", "chardev=monitor,mode=control"]);
    add(&["-chardev", &runtime::mark_of(directory)]);
    add(&["-mon", "chardev=control,mode=control"]);
    add(&["-chardev", &socket("console", &console(directory))]);
    add(&["-serial", "chardev:console"]);
    match wiring.system {
        System::Bare => add(&["-device", EXIT_PORT]),
        System::Linux { terminal } => {
            add(&["-device", "virtio-serial-pci"]);
            add(&["-chardev", &socket("result", &result(directory))]);
            let port = format!("virtserialport,chardev=result,name={PORT_NAME}");
            add(&["-device", &port]);
            if terminal {
                add(&["-chardev", "stdio,id=terminal,signal=off"]);
                add(&["-device", "virtconsole,chardev=terminal"]);
            }
        }
    }
    words.extend(boot(launch, wiring.system));
    words
}

/// `panic=-1`: a panic ends QEMU, as reboots do. `no_timer_check`: on a loaded host the
/// translator is too slow for the ten ticks that the kernel waits for at its start, and it
/// panics with "IO-APIC + timer doesn't work".
const LINUX_WORDS: [&str; 5] =
    ["console=ttyS0", "panic=-1", "no_timer_check", "quiet", "loglevel=4"];

fn boot(launch: &Launch, system: System) -> Vec<String> {
    let kernel = launch.files.kernel.to_string_lossy().into_owned();
    let mut line = match system {
        System::Linux { .. } => LINUX_WORDS.to_vec(),
        System::Bare => Vec::new(),
    };
    if let (System::Linux { .. }, Some(emulator)) = (system, &launch.guest.memory_emulator) {
        line.extend(emulator.mode.kernel_arguments());
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

/// The hypervisor is what QEMU boots; kernel and initramfs are its modules, each with its
/// own command line, apart by commas.
fn boot_under(
    hypervisor: &Hypervisor,
    kernel: &str,
    line: Vec<&str>,
    initramfs: Option<&Path>,
) -> Vec<String> {
    // Its console is the hypervisor's, which has the serial port; the later one counts.
    let line: Vec<&str> = line.into_iter().chain(["console=hvc0"]).collect();
    let mut modules = vec![format!("{kernel} {}", line.join(" "))];
    modules.extend(initramfs.map(|file| file.to_string_lossy().into_owned()));
    let modules: Vec<String> = modules.iter().map(|module| module.replace(',', ",,")).collect();
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
