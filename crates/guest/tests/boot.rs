//! Real guests: booted, asked, made to fail, and gone afterwards.
//!
//! They need `qemu-system-x86_64` and the distribution's kernel package, which
//! is downloaded into the cache once. With `NUMALAB_REQUIRE_TOOLS=1` their lack
//! is a failure; otherwise it is printed.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use numalab_guest::{
    Accelerator, BootFiles, Cache, Contents, Exit, Guest, GuestError, HostMemory, Image, Job, Kernel,
    KernelChoice, Launch, Limits, Outcome, Phase, PinPlan, Pins, Qemu, QemuNeeds, Runtime, Stream,
    Task,
};
use numalab_topology::{
    AccessAttributes, Cpu, CpuId, CpuSet, Distances, Machine, Node, NodeId,
};

/// Guests use both cores for seconds: one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What all boots share.
struct Lab {
    qemu: Qemu,
    files: BootFiles,
    runtime: Runtime,
    directory: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// What a job in a guest printed, and what came of it.
struct Ran {
    outcome: Outcome,
    output: String,
    errors: String,
}

impl Lab {
    /// `None`, and loud words, where guests cannot be booted.
    fn open() -> Option<Self> {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        match Self::try_open(turn) {
            Ok(lab) => Some(lab),
            Err(error) => {
                let remedy = error.remedy().unwrap_or_default();
                let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
                assert!(!required, "no guest can be booted here: {error}; {remedy}");
                eprintln!("NOT RUN: no guest can be booted here: {error}; {remedy}");
                None
            }
        }
    }

    fn try_open(turn: MutexGuard<'static, ()>) -> Result<Self, GuestError> {
        let cache = Cache::open()?;
        let qemu = Qemu::find(&cache, &QemuNeeds::default())?;
        let mut note = |text: &str| eprintln!("{text}");
        let kernel = Kernel::ensure(&cache, &KernelChoice::Distribution, &mut note)?;
        let mut contents = Contents::new(env!("CARGO_BIN_EXE_numalab-guest-init"));
        contents.need_program("numactl")?;
        let image = Image::ensure(&cache, &kernel, &contents, &mut note)?;
        let directory = tempfile::Builder::new().prefix("nl").tempdir_in("/tmp").unwrap();
        Ok(Self {
            qemu,
            files: image.boot_files().clone(),
            runtime: Runtime::at(directory.path().join("run"))?,
            directory,
            _turn: turn,
        })
    }

    fn launch(&self, guest: Guest) -> Launch {
        let qemu = self.qemu.clone();
        Launch::plan(guest, qemu, Accelerator::tcg(), &self.files).unwrap()
    }

    fn run(&self, guest: Guest, task: &Task) -> Result<Ran, GuestError> {
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

    fn failing(&self, guest: Guest, script: &str) -> GuestError {
        match self.run(guest, &shell(script)) {
            Err(error) => error,
            Ok(ran) => panic!("succeeded: {:?} {}", ran.outcome, ran.output),
        }
    }

    /// No process and no file of any guest of this lab.
    fn nothing_is_left(&self) {
        let run = self.directory.path().join("run");
        assert_eq!(qemus_of(&run), Vec::<u32>::new());
        let left: Vec<_> = fs::read_dir(&run).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["lock"]);
    }
}

/// The processes which have this directory in their arguments.
fn qemus_of(directory: &Path) -> Vec<u32> {
    let needle = directory.to_str().unwrap();
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mentions = |process: &u32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(needle)
    };
    processes.filter(mentions).collect()
}

fn shell(script: &str) -> Task {
    Task {
        job: Job::new(["sh", "-c", script]),
        ..Task::default()
    }
}

fn node(id: u32, cpus: &str, memory_mib: u64) -> Node {
    Node {
        id: NodeId(id),
        online: true,
        cpus: cpus.parse().unwrap(),
        memory_bytes: memory_mib << 20,
        ..Node::default()
    }
}

/// A cpu in a package of two cores per node.
fn cpu(id: u32, node: u32) -> Cpu {
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

/// 8 cpus, 4 nodes of 256 MiB, distances 10/12/20/22.
fn four_nodes() -> Machine {
    let distances = [[10, 12, 20, 22], [12, 10, 22, 20], [20, 22, 10, 12], [22, 20, 12, 10]];
    let rows: Vec<Vec<u8>> = distances.iter().map(|row| row.to_vec()).collect();
    Machine {
        nodes: (0..4).map(|id| node(id, &format!("{}-{}", 2 * id, 2 * id + 1), 256)).collect(),
        cpus: (0..8).map(|id| cpu(id, id / 2)).collect(),
        distances: Distances::from_rows(&rows).unwrap(),
        ..Machine::default()
    }
}

/// One cpu, one node.
fn small() -> Guest {
    let machine = Machine {
        nodes: vec![node(0, "0", 256)],
        cpus: vec![cpu(0, 0)],
        distances: Distances::uniform(1, 20),
        ..Machine::default()
    };
    Guest {
        machine,
        ..Guest::default()
    }
}

const LOOK: &str = r#"
cd /sys/devices/system/node
for n in 0 1 2 3; do
    echo "node $n cpus $(cat node$n/cpulist) distances $(cat node$n/distance)"
    awk '/MemTotal/ { print "node", $2, ($4 > 150000 && $4 <= 262144) ? "has memory" : $4 }' node$n/meminfo
done
for c in 0 1 7; do echo "cpu $c package $(cat ../cpu/cpu$c/topology/physical_package_id)"; done
echo "sent: $(cat /data/in.txt), variable: $COLOUR, in $(pwd)"
numactl --cpunodebind=2 --membind=3 numactl --show | grep -E '^(physcpubind|membind)'
mkdir -p /root/results/deep
echo brought back > /root/results/deep/file.txt
head -c 3000000 /dev/zero | tr '\0' x > /root/results/big
echo to errors >&2
sleep 1000 &
exit 7
"#;

const SEEN: &str = "\
node 0 cpus 0-1 distances 10 12 20 22
node 0: has memory
node 1 cpus 2-3 distances 12 10 22 20
node 1: has memory
node 2 cpus 4-5 distances 20 22 10 12
node 2: has memory
node 3 cpus 6-7 distances 22 20 12 10
node 3: has memory
cpu 0 package 0
cpu 1 package 0
cpu 7 package 3
sent: hello guest, variable: blue, in /sys/devices/system/node
physcpubind: 4 5 
membind: 3 
";

#[test]
fn a_guest_has_the_machine_that_was_asked_for_and_brings_everything_back() {
    let Some(lab) = Lab::open() else { return };
    let sent = lab.directory.path().join("in.txt");
    fs::write(&sent, "hello guest").unwrap();
    let results = lab.directory.path().join("results");
    let mut task = shell(LOOK);
    task.job.environment = vec![("COLOUR".to_owned(), "blue".to_owned())];
    task.job.collect = vec!["/root/results".to_owned(), "/no/such/file".to_owned()];
    task.send = vec![(sent, "/data/in.txt".to_owned())];
    task.results = Some(results.clone());
    let guest = Guest {
        machine: four_nodes(),
        ..Guest::default()
    };
    let ran = lab.run(guest, &task).unwrap();

    assert_eq!(ran.output.replace("node 0 has", "node 0: has").replace("node 1 has", "node 1: has").replace("node 2 has", "node 2: has").replace("node 3 has", "node 3: has"), SEEN);
    assert_eq!(ran.errors, "to errors\n");
    assert_eq!(ran.outcome.exit, Exit::Code(7));
    assert_eq!(ran.outcome.complaints.len(), 1, "{:?}", ran.outcome.complaints);
    assert!(ran.outcome.complaints[0].starts_with("/no/such/file: "));
    let file = fs::read_to_string(results.join("root/results/deep/file.txt")).unwrap();
    assert_eq!(file, "brought back\n");
    let big = fs::read(results.join("root/results/big")).unwrap();
    assert!(big.len() == 3_000_000 && big.iter().all(|byte| *byte == b'x'));
    let times = ran.outcome.times;
    eprintln!("times: {times:?}");
    assert!(times.first_output.unwrap() >= times.boot && times.total >= times.boot);
}
