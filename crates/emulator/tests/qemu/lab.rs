//! Starts QEMU with the plugin and a test program of a few dozen instructions.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use numalab_guest::{Qemu, QemuError, QemuNeeds, Version};
use numalab_image::{Architecture, Cache};
use serde_json::Value;

/// Memory of each of the two nodes.
pub const NODE_BYTES: u64 = 512 << 20;
/// Addresses on the nodes.
pub const NODE0: u64 = 16 << 20;
pub const NODE1: u64 = NODE_BYTES + (16 << 20);
/// QEMU's exit status when a program ends.
pub const LEFT: i32 = 3;
/// Time limit of a program, generous for busy machines.
const LIMIT: Duration = Duration::from_secs(120);

/// QEMU's options for virtual time.
pub const ICOUNT: [&str; 4] = ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"];

/// Returns this machine's QEMUs: the installed one, and one of 10.0 or later.
pub fn qemus() -> Vec<Qemu> {
    let found = Cache::open().map_err(QemuError::from).and_then(|cache| {
        let newer = QemuNeeds {
            plugins: true,
            least_version: Some(Version::new(10, 0, 0)),
            ..QemuNeeds::default()
        };
        let newer = Qemu::find(&cache, &newer).or_else(|_| {
            let note = &mut |note: &str| eprintln!("{note}");
            Qemu::fetch_backports(&cache, Architecture::X86_64, note)
        })?;
        Ok([Qemu::installed()?, newer])
    });
    match found {
        Ok([installed, newer]) if installed == newer => vec![newer],
        Ok(both) => both.into(),
        Err(error) => {
            let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
            assert!(!required, "no QEMU with plugins here: {error}");
            eprintln!("NOT RUN: no QEMU with plugins here: {error}");
            Vec::new()
        }
    }
}

/// A test program.
pub struct Program {
    directory: tempfile::TempDir,
}

impl Program {
    /// Assembles a source of `tests/guest` with these symbols.
    pub fn assemble(source: &str, symbols: &[(&str, u64)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guest");
        let object = directory.path().join("program.o");
        let defined = symbols.iter().map(|(name, value)| format!("--defsym={name}={value}"));
        run(Command::new("as")
            .args(["--32", "-I"])
            .arg(&sources)
            .args(defined)
            .arg("-o")
            .arg(&object)
            .arg(sources.join(source)));
        let program = directory.path().join("program");
        let flat = ["-m", "elf_i386", "-N", "-Ttext", "0x100000", "--no-warn-rwx-segments", "-o"];
        run(Command::new("ld").args(flat).arg(&program).arg(&object));
        Self { directory }
    }

    /// Runs a program on `cpus` cpus, the second half of them on node 1.
    pub fn run(&self, qemu: &Qemu, cpus: usize, plugin: &str, options: &[&str]) -> Run {
        let report = self.directory.path().join("report.json");
        let console = self.directory.path().join("console");
        let _ = std::fs::remove_file(&report);
        let half = cpus.div_ceil(2);
        let of_node = |node: usize| match (node, cpus) {
            (0, 1) => ",cpus=0".to_owned(),
            (1, 1) => String::new(),
            (0, _) => format!(",cpus=0-{}", half - 1),
            _ => format!(",cpus={half}-{}", cpus - 1),
        };
        let mut command = qemu.command();
        command.args(["-nodefaults", "-display", "none", "-no-reboot", "-machine", "q35"]);
        command.args(["-m", "1G", "-smp", &format!("{cpus},sockets={cpus}")]);
        for node in 0..2 {
            let size = NODE_BYTES >> 20;
            command.args(["-object", &format!("memory-backend-ram,id=m{node},size={size}M")]);
            command.args(["-numa", &format!("node,memdev=m{node}{}", of_node(node))]);
        }
        command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        command.args(["-chardev", &format!("file,id=c,path={}", console.display())]);
        command.args(["-device", "isa-debugcon,iobase=0xe9,chardev=c"]);
        command.arg("-kernel").arg(self.directory.path().join("program")).args(options);
        let plugin_file = plugin_file();
        let report_argument = format!("report={}", report.display());
        command.arg("-plugin");
        command.arg(format!("{},{plugin},{report_argument}", plugin_file.display()));
        let output = limited(&mut command);
        Run {
            status: output.status.code(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
            report: std::fs::read_to_string(report).unwrap_or_default(),
            said: words(&std::fs::read(console).unwrap_or_default()),
        }
    }

    /// Returns the path of a file in the program's directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Run {
    /// QEMU's exit status.
    pub status: Option<i32>,
    /// Its standard error.
    pub errors: String,
    /// The plugin's report.
    pub report: String,
    /// The program's output.
    pub said: Vec<u64>,
}

impl Run {
    /// Returns the report, after checking that the program came to its end.
    pub fn json(&self) -> Value {
        assert_eq!(self.status, Some(LEFT), "{}", self.errors);
        let report: Value = serde_json::from_str(&self.report).unwrap();
        assert_eq!(report["schema"], "numalab-emulator/1");
        let checks = report["self_test"].as_array().unwrap();
        assert!(checks.iter().all(|check| check["passed"] == true), "{checks:?}");
        report
    }

    /// Returns the report's entry of a vCPU in a phase.
    pub fn vcpu(&self, phase: u64, vcpu: usize) -> Value {
        let report = self.json();
        let phases = report["phases"].as_array().unwrap();
        let found = phases.iter().find(|entry| entry["phase"] == phase);
        found.unwrap_or_else(|| panic!("no phase {phase}: {report}"))["vcpus"][vcpu].clone()
    }
}

/// Returns the plugin built with these tests, in the same directory.
fn plugin_file() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let file = tests.with_file_name("libnumalab_emulator.so");
    assert!(file.exists(), "{} was not built", file.display());
    file
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error} (binutils)"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the output of a command, which is killed at the time limit.
fn limited(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > LIMIT {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    words.map(u64::from).collect()
}
