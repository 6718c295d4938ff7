//! numalab's own kernel and the emulator, built for tests in a separate directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tempfile::TempDir;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The program, the kernel and the emulator, with a separate directory.
pub struct Lab {
    pub kernel: PathBuf,
    emulator: PathBuf,
    directory: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Lab {
    /// Opens the lab; `None`, after printing why, if no kernel can be built or booted.
    pub fn open() -> Option<Self> {
        static BUILT: OnceLock<Result<(PathBuf, PathBuf), String>> = OnceLock::new();
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
        let missing = match (qemu, BUILT.get_or_init(build)) {
            (Ok(_), Ok((kernel, emulator))) => {
                let (kernel, emulator) = (kernel.clone(), emulator.clone());
                let directory = tempfile::Builder::new().prefix("nl").tempdir_in("/tmp");
                let directory = directory.expect("made");
                return Some(Self { kernel, emulator, directory, _turn: turn });
            }
            (Err(error), _) => format!("qemu-system-x86_64: {error}"),
            (_, Err(error)) => error.clone(),
        };
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
        assert!(!required, "the kernel cannot be booted here: {missing}");
        eprintln!("NOT RUN: the kernel cannot be booted here: {missing}");
        None
    }

    /// Runs numalab with these arguments.
    pub fn numalab(&self, arguments: &[&str]) -> Output {
        self.output(Command::new(env!("CARGO_BIN_EXE_numalab")).args(arguments))
    }

    /// Runs a script of the repository, which calls numalab, with these arguments.
    pub fn script(&self, name: &str, arguments: &[&str]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(name);
        let mut command = Command::new(script);
        self.output(command.args(arguments).env("NUMALAB", env!("CARGO_BIN_EXE_numalab")))
    }

    /// Returns the output of a command that finds the kernel and the emulator.
    fn output(&self, command: &mut Command) -> Output {
        command.stdin(Stdio::null());
        command.env("NUMALAB_KERNEL", &self.kernel).env("NUMALAB_EMULATOR", &self.emulator);
        command.env("XDG_RUNTIME_DIR", self.directory.path());
        command.output().expect("it starts")
    }

    /// Returns a path in the directory.
    pub fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().expect("UTF-8").to_owned()
    }
}

/// Returns standard output of a command that must exit with this code.
pub fn text(output: &Output, code: i32) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn build() -> Result<(PathBuf, PathBuf), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = "x86_64-unknown-none";
    let cargo = |arguments: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        let built = cargo.arg("build").arg("-q").args(arguments).current_dir(&root).output();
        let built = built.map_err(|error| error.to_string())?;
        let errors = String::from_utf8_lossy(&built.stderr);
        if built.status.success() { Ok(()) } else { Err(format!("{arguments:?}: {errors}")) }
    };
    cargo(&["--profile", "kernel", "-p", "numalab-kernel", "--target", target])?;
    cargo(&["--release", "-p", "numalab-emulator"])?;
    let directory = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| root.join("target"));
    Ok((
        directory.join(target).join("kernel/numalab-kernel"),
        directory.join("release/libnumalab_emulator.so"),
    ))
}
