//! Programs for aarch64, and guests that run them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use tempfile::TempDir;

const TARGET: &str = "aarch64-unknown-linux-gnu";
pub const MACHINE: [&str; 8] =
    ["--arch", "aarch64", "--emulate", "512M,256M", "--cpus", "4", "--distances", "10,21;21,10"];
/// Script by which the guest examines itself.
const LOOK: &str = "set -e
echo up
mkdir out
uname -rm > out/kernel.txt
numalab topology --source sysfs --format json > out/topology.json
numactl --hardware > out/numactl.txt
ls /dev/ram0 > out/modules.txt
echo to errors >&2
exit 7";

/// Files from the guest, and numalab's messages about it.
pub struct Booted {
    pub kernel: String,
    pub topology: String,
    pub numactl: String,
    pub modules: String,
    pub listed: String,
    pub errors: String,
}

/// A directory with numalab built for aarch64.
pub struct Lab(TempDir);

impl Lab {
    pub fn open() -> Self {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let lab = Self(tempfile::Builder::new().prefix("nl").tempdir_in("/tmp").expect("made"));
        lab.add_own_program();
        let dry = run(lab.path(), &["guest", "run", "--arch", "aarch64", "--dry-run"]);
        if stderr(&dry).contains("--fetch-qemu") {
            run(lab.path(), &["guest", "image", "--fetch-qemu", "--arch", "aarch64"]);
        }
        lab
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Builds numalab like `scripts/test`, without features that do not fit into a small guest.
    fn add_own_program(&self) {
        let linker = ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
        let is_static =
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS", "-C target-feature=+crt-static");
        let target = build(&["-p", "numalab", "--target", TARGET], &[linker, is_static]);
        let mut strip = Command::new("aarch64-linux-gnu-strip");
        strip.args(["--strip-debug", "-o"]).arg(self.path().join("numalab-aarch64"));
        let stripped = strip.arg(target.join(TARGET).join("debug/numalab")).status();
        assert!(stripped.expect("strip starts").success());
    }
}

/// Builds with cargo, and returns the target directory.
pub fn build(what: &[&str], variables: &[(&str, &str)]) -> PathBuf {
    let debug = Path::new(env!("CARGO_BIN_EXE_numalab")).parent().expect("a directory");
    let target = debug.parent().expect("the target directory").to_path_buf();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-q", "--manifest-path"]);
    cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml")).args(what);
    cargo.env("CARGO_TARGET_DIR", &target).envs(variables.iter().copied());
    let built = cargo.status().expect("cargo starts");
    assert!(built.success(), "cargo build {what:?}: {built}");
    target
}

pub fn numalab(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
    command.args(arguments).stdin(Stdio::null());
    command.env("XDG_RUNTIME_DIR", directory.join("run"));
    command.env("NUMALAB_AARCH64", directory.join("numalab-aarch64"));
    command
}

pub fn run(directory: &Path, arguments: &[&str]) -> Output {
    numalab(directory, arguments).output().expect("numalab starts")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns true if a guest was booted; prints a notice if none can be.
pub fn was_booted(output: &Output) -> bool {
    // The codes of `guest run` and of a study for a missing requirement.
    if ![Some(125), Some(3)].contains(&output.status.code()) {
        return true;
    }
    let errors = stderr(output);
    let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
    assert!(!required, "no aarch64 guest can be booted here: {errors}");
    eprintln!("NOT RUN: no aarch64 guest can be booted here: {errors}");
    false
}

/// Boots a guest, and lists the running guests meanwhile.
fn boot() -> Option<Booted> {
    let lab = Lab::open();
    let results = lab.path().join("results");
    let results = results.to_str().expect("UTF-8");
    let rest = ["--with", "numactl", "--module", "brd", "--collect", "out", "-o", results];
    let words = [&["guest", "run"], &MACHINE[..], &rest, &["--", "sh", "-c", LOOK]].concat();
    let mut running = numalab(lab.path(), &words);
    let mut running =
        running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let mut line = String::new();
    BufReader::new(running.stdout.take().expect("piped")).read_line(&mut line).expect("readable");
    let listed = stdout(&run(lab.path(), &["guest", "list"]));
    let output = running.wait_with_output().expect("it ends");
    if !was_booted(&output) {
        return None;
    }
    let errors = stderr(&output);
    assert_eq!((output.status.code(), line.as_str()), (Some(7), "up\n"), "{errors}");
    // A static is never dropped, so it must not hold the directory.
    let read = |name: &str| {
        fs::read_to_string(lab.path().join("results/root/out").join(name)).expect(name)
    };
    Some(Booted {
        kernel: read("kernel.txt"),
        topology: read("topology.json"),
        numactl: read("numactl.txt"),
        modules: read("modules.txt"),
        listed,
        errors,
    })
}

/// Returns the guest, which the first caller boots.
pub fn booted() -> Option<&'static Booted> {
    static BOOTED: LazyLock<Option<Booted>> = LazyLock::new(boot);
    BOOTED.as_ref()
}
