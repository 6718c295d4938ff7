//! The shared environment of all boots.

use numalab_host::Classed;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use numalab_guest::{
    Accelerator, Guest, GuestError, Launch, Outcome, Qemu, QemuNeeds, Runtime, Task,
};
use numalab_guest_agent::{Job, Stream};
use numalab_image::{BootFiles, Cache, Contents, Image, Kernel, KernelChoice};
use numalab_topology::{Cpu, CpuId, Distances, Machine, Node, NodeId};

/// Environment variable with the working directory of a child process of the tests.
pub const PARENT: &str = "NUMALAB_GUEST_TEST_PARENT";

/// Guests use both cores for seconds, so only one runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The shared environment of all boots.
pub struct Lab {
    pub qemu: Qemu,
    pub files: BootFiles,
    pub runtime: Runtime,
    pub directory: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// The output of a job in a guest, and its outcome.
pub struct Ran {
    pub outcome: Outcome,
    pub output: String,
    pub errors: String,
}

impl Lab {
    /// Opens the lab; prints a note and returns `None` where guests cannot be booted.
    pub fn open() -> Option<Self> {
        match Self::try_open(one_at_a_time()) {
            Ok(lab) => Some(lab),
            Err(error) => unavailable(&error, error.remedy()),
        }
    }

    fn try_open(turn: MutexGuard<'static, ()>) -> Result<Self, GuestError> {
        let cache = Cache::open()?;
        let qemu = Qemu::find(&cache, &QemuNeeds::default())?;
        let mut note = |text: &str| eprintln!("{text}");
        let kernel = Kernel::ensure(&cache, &KernelChoice::Distribution, &mut note)?;
        let mut contents = Contents::new(init());
        contents.need_program("numactl")?;
        let image = Image::ensure(&cache, &kernel, &contents, &mut note)?;
        // Socket paths are short, which those in TMPDIR may not be.
        let parent = std::env::var_os(PARENT).unwrap_or_else(|| "/tmp".into());
        let directory = tempfile::Builder::new().prefix("nl").tempdir_in(parent).unwrap();
        Ok(Self {
            qemu,
            files: image.boot_files().clone(),
            runtime: Runtime::at(directory.path().join("run"))?,
            directory,
            _turn: turn,
        })
    }

    pub fn launch(&self, guest: Guest) -> Launch {
        let qemu = self.qemu.clone();
        Launch::plan(guest, qemu, Accelerator::tcg(), &self.files).unwrap()
    }

    pub fn run(&self, guest: Guest, task: &Task) -> Result<Ran, GuestError> {
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let mut sink = |stream: Stream, bytes: &[u8]| match stream {
            Stream::Out => output.extend_from_slice(bytes),
            Stream::Err => errors.extend_from_slice(bytes),
        };
        let outcome = self.launch(guest).run(&self.runtime, task, &mut sink, &|| false);
        self.nothing_is_left();
        Ok(Ran {
            outcome: outcome?,
            output: String::from_utf8(output).unwrap(),
            errors: String::from_utf8(errors).unwrap(),
        })
    }

    pub fn failing(&self, guest: Guest, script: &str) -> GuestError {
        match self.run(guest, &shell(script)) {
            Err(error) => error,
            Ok(ran) => panic!("succeeded: {:?} {}", ran.outcome, ran.output),
        }
    }

    /// Asserts that neither a process nor a file of any guest of this lab is left.
    pub fn nothing_is_left(&self) {
        let run = self.directory.path().join("run");
        assert_eq!(qemus_of(&run), Vec::<u32>::new());
        let left: Vec<_> = fs::read_dir(&run).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["lock"]);
    }
}

/// Waits for this test's turn to boot guests.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Panics if the tools are required, else prints that the test did not run.
pub fn unavailable<T>(error: &dyn std::fmt::Display, remedy: Option<String>) -> Option<T> {
    let remedy = remedy.unwrap_or_default();
    let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(!required, "no guest can be booted here: {error}; {remedy}");
    eprintln!("NOT RUN: no guest can be booted here: {error}; {remedy}");
    None
}

/// Returns the processes that have this directory in their arguments.
pub fn qemus_of(directory: &Path) -> Vec<u32> {
    let needle = directory.to_str().unwrap();
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mentions = |process: &u32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(needle)
    };
    processes.filter(mentions).collect()
}

pub fn shell(script: &str) -> Task {
    Task { job: Job::new(["sh", "-c", script]), ..Task::default() }
}

pub fn node(id: u32, cpus: &str, memory_mib: u64) -> Node {
    Node {
        id: NodeId(id),
        online: true,
        cpus: cpus.parse().unwrap(),
        memory_bytes: memory_mib << 20,
        ..Node::default()
    }
}

/// Returns a cpu in a package of two cores per node.
pub fn cpu(id: u32, node: u32) -> Cpu {
    Cpu {
        id: CpuId(id),
        online: true,
        node: Some(NodeId(node)),
        package: Some(node),
        core: Some(id),
        l3_group: Some(node),
        ..Cpu::default()
    }
}

/// Returns 8 cpus, 4 nodes of 256 MiB, distances 10/12/20/22.
pub fn four_nodes() -> Machine {
    let distances = [[10, 12, 20, 22], [12, 10, 22, 20], [20, 22, 10, 12], [22, 20, 12, 10]];
    let rows: Vec<Vec<u8>> = distances.iter().map(|row| row.to_vec()).collect();
    Machine {
        nodes: (0..4).map(|id| node(id, &format!("{}-{}", 2 * id, 2 * id + 1), 256)).collect(),
        cpus: (0..8).map(|id| cpu(id, id / 2)).collect(),
        distances: Distances::from_rows(&rows).unwrap(),
        ..Machine::default()
    }
}

/// Returns one cpu, one node.
pub fn small() -> Guest {
    let machine = Machine {
        nodes: vec![node(0, "0", 256)],
        cpus: vec![cpu(0, 0)],
        distances: Distances::uniform(1, 20),
        ..Machine::default()
    };
    Guest { machine, ..Guest::default() }
}

/// Returns process 1.
pub fn init() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_numalab-guest-init"))
}
