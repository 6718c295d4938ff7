//! A QEMU that boots the kernel, and the kernel's output.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use numalab_formats::{emulation, qemu};
use numalab_kernel::results::{Reader, Results};
use numalab_topology::{Machine, UniformMachine};

/// Guests use both cores, so tests run one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// Far more than any boot takes here, even on a loaded machine.
const LIMIT_S: &str = "240";

/// The kernel's verdicts, as QEMU's exit codes.
pub const DONE: i32 = 0x10 * 2 + 1;
pub const FAILED: i32 = 0x11 * 2 + 1;
pub const REFUSED: i32 = 0x12 * 2 + 1;
pub const PANICKED: i32 = 0x13 * 2 + 1;

/// A machine to boot on.
pub struct Qemu {
    kernel: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

/// The result of a boot.
pub struct Boot {
    pub status: Option<i32>,
    pub text: String,
}

impl Qemu {
    /// Returns `None`, with a message on stderr, if nothing can be booted.
    pub fn open() -> Option<Self> {
        static KERNEL: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
        let missing = match (qemu, KERNEL.get_or_init(build)) {
            (Ok(_), Ok(kernel)) => return Some(Self { kernel: kernel.clone(), _turn: turn }),
            (Err(error), _) => format!("qemu-system-x86_64: {error}"),
            (_, Err(error)) => error.clone(),
        };
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
        assert!(!required, "the kernel cannot be booted here: {missing}");
        eprintln!("NOT RUN: the kernel cannot be booted here: {missing}");
        None
    }

    /// Boots with these words on the command line.
    pub fn boot(&self, arguments: &[String], words: &str) -> Boot {
        let kernel = self.kernel.display().to_string();
        Self::started(arguments, &["-kernel", &kernel, "-append", words])
    }

    fn started(arguments: &[String], more: &[&str]) -> Boot {
        let mut command = Command::new("timeout");
        command.args([LIMIT_S, "qemu-system-x86_64", "-nodefaults", "-no-user-config"]);
        command.args(["-no-reboot", "-display", "none", "-machine", "q35", "-accel", "tcg"]);
        command.args(["-cpu", "max", "-serial", "stdio"]);
        command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        command.args(arguments).args(more);
        let Output { status, stdout, stderr } =
            command.stdin(Stdio::null()).output().expect("timeout starts");
        let errors = String::from_utf8_lossy(&stderr);
        eprint!("{errors}");
        Boot { status: status.code(), text: String::from_utf8_lossy(&stdout).into_owned() }
    }

    /// Returns the kernel's file.
    pub fn kernel(&self) -> &Path {
        &self.kernel
    }

    /// Boots from the medium in these arguments, an image.
    pub fn boot_image(&self, arguments: &[String]) -> Boot {
        Self::started(arguments, &[])
    }

    /// Boots on a machine, runs the given words, and returns the results.
    pub fn results(&self, machine: &Machine, words: &str) -> Results {
        self.boot(&arguments(machine), words).results(DONE)
    }
}

impl Boot {
    /// Returns the kernel's results, and checks this verdict.
    pub fn results(&self, verdict: i32) -> Results {
        assert_eq!(self.status, Some(verdict), "{}", self.text);
        let mut reader = Reader::default();
        for line in self.text.lines() {
            reader.line(line).unwrap_or_else(|error| panic!("{error}\n{}", self.text));
        }
        reader.finish().unwrap_or_else(|| panic!("no last line\n{}", self.text))
    }
}

/// Returns QEMU's arguments for a machine; untouched memory is not reserved.
pub fn arguments(machine: &Machine) -> Vec<String> {
    let words = qemu::write(machine).expect("QEMU can be it").output;
    let unreserved = |word: String| match word.starts_with("memory-backend-ram,") {
        true => format!("{word},reserve=off"),
        false => word,
    };
    words.into_iter().map(unreserved).collect()
}

/// Returns a machine as `--emulate` makes it: `nodes` as 1G:4,1G:4.
pub fn machine(nodes: &str, cpus: u32, memory_bytes: u64, distances: Option<&str>) -> Machine {
    let uniform = UniformMachine::of_packages(1, cpus, memory_bytes);
    let base = uniform.build().expect("a machine");
    let spec = emulation::parse(nodes, distances).expect("a specification");
    spec.emulate(&base).expect("its nodes")
}

fn build() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = "x86_64-unknown-none";
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-q", "--profile", "kernel", "-p", "numalab-kernel", "--target", target]);
    let built = cargo.current_dir(&root).output().map_err(|error| error.to_string())?;
    let errors = String::from_utf8_lossy(&built.stderr);
    if !built.status.success() {
        return Err(format!("rustup target add {target}: {errors}"));
    }
    let directory = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| root.join("target"));
    Ok(directory.join(target).join("kernel/numalab-kernel"))
}
