//! Real guests: booted, asked, made to fail, and gone afterwards.
//!
//! They need `qemu-system-x86_64` and the distribution's kernel package, which
//! is downloaded into the cache once. With `NUMALAB_REQUIRE_TOOLS=1` their lack
//! is a failure; otherwise it is printed.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use numalab_guest::{
    Accelerator, BootFiles, Cache, Contents, Exit, Guest, GuestError, HostMemory, Image, Job,
    Kernel, KernelChoice, Launch, Limits, Outcome, Phase, PinPlan, Pins, Qemu, QemuNeeds, Runtime,
    Stream, Task,
};
use numalab_topology::{AccessAttributes, Cpu, CpuId, CpuSet, Distances, Machine, Node, NodeId};

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
        let directory = tempfile::Builder::new()
            .prefix("nl")
            .tempdir_in("/tmp")
            .unwrap();
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
        let outcome = self
            .launch(guest)
            .run(&self.runtime, task, &mut sink, &|| false);
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
        let left: Vec<_> = fs::read_dir(&run)
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
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
    let distances = [
        [10, 12, 20, 22],
        [12, 10, 22, 20],
        [20, 22, 10, 12],
        [22, 20, 12, 10],
    ];
    let rows: Vec<Vec<u8>> = distances.iter().map(|row| row.to_vec()).collect();
    Machine {
        nodes: (0..4)
            .map(|id| node(id, &format!("{}-{}", 2 * id, 2 * id + 1), 256))
            .collect(),
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
    awk '/MemTotal/ { print "node", $2 + 0, ($4 > 150000 && $4 <= 262144) ? "has its memory" : $4 }' node$n/meminfo
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
node 0 has its memory
node 1 cpus 2-3 distances 12 10 22 20
node 1 has its memory
node 2 cpus 4-5 distances 20 22 10 12
node 2 has its memory
node 3 cpus 6-7 distances 22 20 12 10
node 3 has its memory
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
    let ran = lab.run(placed(four_nodes()), &task).unwrap();

    assert_eq!(ran.output, SEEN);
    assert_eq!(ran.errors, "to errors\n");
    assert_eq!(ran.outcome.exit, Exit::Code(7));
    assert_eq!(
        ran.outcome.complaints.len(),
        1,
        "{:?}",
        ran.outcome.complaints
    );
    assert!(ran.outcome.complaints[0].starts_with("/no/such/file: "));
    let file = fs::read_to_string(results.join("root/results/deep/file.txt")).unwrap();
    assert_eq!(file, "brought back\n");
    let big = fs::read(results.join("root/results/big")).unwrap();
    assert!(big.len() == 3_000_000 && big.iter().all(|byte| *byte == b'x'));
    let times = ran.outcome.times;
    eprintln!("times: {times:?}");
    assert!(times.first_output.unwrap() >= times.boot && times.total >= times.boot);
    assert_placed(&ran.outcome);
}

/// Memory bound to host node 0, vcpus on host cpu 0, other threads too.
fn placed(machine: Machine) -> Guest {
    let first = CpuSet::from_iter([CpuId(0)]);
    let plan = PinPlan::NodeLists {
        vcpus: None,
        lists: vec![first.clone()],
    };
    let pins = Pins {
        plan,
        helpers: Some(first),
        host: Machine::default(),
    };
    let memory = HostMemory {
        nodes: vec![[NodeId(0)].into_iter().collect()],
        ..HostMemory::default()
    };
    Guest {
        machine,
        memory,
        pins: Some(pins),
        ..Guest::default()
    }
}

fn assert_placed(outcome: &Outcome) {
    let pins = outcome.pins.as_ref().unwrap();
    assert_eq!(pins.vcpus.len(), 8);
    for pinned in &pins.vcpus {
        assert_eq!(pinned.affinity.to_string(), "0");
        assert_eq!(pinned.runs_on, Some(CpuId(0)));
        assert_eq!(pinned.vcpu.node, Some(pinned.vcpu.index / 2));
    }
    assert!(
        pins.helpers
            .iter()
            .all(|helper| helper.affinity.to_string() == "0")
    );
    let memory = outcome.memory.as_ref().unwrap();
    assert_eq!(memory.len(), 4, "{memory:?}");
    for proof in memory {
        assert_eq!(proof.policies, ["bind:0"], "{proof:?}");
        let nodes: Vec<_> = proof.bytes_by_node.keys().collect();
        assert_eq!(nodes, [&NodeId(0)], "{proof:?}");
        assert_eq!(proof.block.size_bytes, 256 << 20);
    }
    let present: u64 = memory
        .iter()
        .flat_map(|proof| proof.bytes_by_node.values())
        .sum();
    assert!(
        present > 50 << 20,
        "the kernel alone touches that much: {present}"
    );
}

/// Node 1 has no memory, node 2 no cpus.
fn uneven_machine() -> Machine {
    Machine {
        nodes: vec![node(0, "0-1", 512), node(1, "2-3", 0), node(2, "", 256)],
        cpus: (0..4).map(|id| cpu(id, id / 2)).collect(),
        distances: Distances::uniform(3, 20),
        ..Machine::default()
    }
}

/// The same with memory on every node, and what accesses cost (HMAT).
fn machine_with_latencies() -> Machine {
    let access = |initiator, target, nanoseconds: u64| AccessAttributes {
        initiator: NodeId(initiator),
        target: NodeId(target),
        read_latency_ps: Some(nanoseconds * 1000),
        write_latency_ps: Some(nanoseconds * 1000),
        read_bandwidth_mb_per_s: Some(20_000),
        write_bandwidth_mb_per_s: Some(20_000),
        ..AccessAttributes::default()
    };
    let mut machine = uneven_machine();
    machine.nodes[1].memory_bytes = 256 << 20;
    // Node 2 is reached best from node 1.
    machine.distances.set(1, 2, 15);
    machine.distances.set(2, 1, 15);
    machine.access = vec![
        access(0, 0, 80),
        access(0, 1, 140),
        access(0, 2, 300),
        access(1, 0, 140),
        access(1, 1, 80),
        access(1, 2, 200),
    ];
    machine
}

#[test]
fn nodes_without_memory_or_cpus_and_latencies_reach_the_guest() {
    let Some(lab) = Lab::open() else { return };
    let with = |machine| Guest {
        machine,
        ..Guest::default()
    };
    let uneven = shell("cd /sys/devices/system/node; cat online has_memory has_cpu node1/cpulist");
    let ran = lab.run(with(uneven_machine()), &uneven).unwrap();
    assert_eq!(ran.output, "0-2\n0,2\n0-1\n2-3\n", "{}", ran.errors);

    let latencies = shell(
        "cd /sys/devices/system/node; cat has_cpu node2/access0/initiators/read_latency
        ls node2/access0/initiators | grep node; cat node0/access0/initiators/read_latency",
    );
    let ran = lab.run(with(machine_with_latencies()), &latencies).unwrap();
    assert_eq!(ran.output, "0-1\n200\nnode1\n80\n", "{}", ran.errors);
}

#[test]
fn a_panic_is_reported_with_the_end_of_the_console() {
    let Some(lab) = Lab::open() else { return };
    let error = lab.failing(small(), "echo c > /proc/sysrq-trigger");
    let GuestError::Panicked { line, console } = &error else {
        panic!("{error}");
    };
    assert!(line.contains("sysrq triggered crash"), "{line}");
    assert!(
        console
            .0
            .iter()
            .any(|line| line.contains("sysrq_handle_crash")),
        "{error}"
    );
}

#[test]
fn a_command_that_does_not_end_and_a_boot_that_takes_too_long_meet_their_deadlines() {
    let Some(lab) = Lab::open() else { return };
    let run = Some(Duration::from_secs(1));
    let limits = Limits {
        run,
        ..Limits::default()
    };
    let error = lab.failing(Guest { limits, ..small() }, "exec sleep 1000");
    assert!(
        matches!(
            error,
            GuestError::Hung {
                phase: Phase::Run,
                ..
            }
        ),
        "{error}"
    );

    let boot = Duration::from_millis(200);
    let limits = Limits {
        boot,
        ..Limits::default()
    };
    let error = lab.failing(Guest { limits, ..small() }, "true");
    let shown = error.to_string();
    assert!(
        shown.starts_with("the guest hung while it booted: nothing after 200ms"),
        "{shown}"
    );
}

#[test]
fn running_out_of_memory_is_told_from_other_ends() {
    let Some(lab) = Lab::open() else { return };
    let error = lab.failing(small(), "tail /dev/zero");
    let GuestError::OutOfMemory { line, .. } = &error else {
        panic!("{error}");
    };
    assert!(
        line.contains("Killed process") && line.contains("(tail)"),
        "{line}"
    );
}

#[test]
fn a_killed_qemu_and_a_wish_to_stop_end_the_wait() {
    let Some(lab) = Lab::open() else { return };
    let run = lab.directory.path().join("run");
    let killer = || {
        for process in qemus_of(&run) {
            Command::new("kill")
                .args(["-9", &process.to_string()])
                .status()
                .unwrap();
        }
    };
    let launch = lab.launch(small());
    let mut sink = |_: Stream, _: &[u8]| killer();
    let task = shell("echo up; exec sleep 1000");
    let error = launch
        .run(&lab.runtime, &task, &mut sink, &|| false)
        .unwrap_err();
    assert!(matches!(error, GuestError::Died { .. }), "{error}");
    lab.nothing_is_left();

    let start = Instant::now();
    let stop = || start.elapsed() > Duration::from_millis(300);
    let error = launch
        .run(&lab.runtime, &task, &mut sink, &stop)
        .unwrap_err();
    assert!(matches!(error, GuestError::Stopped), "{error}");
    lab.nothing_is_left();
}

#[test]
fn arguments_qemu_refuses_are_quoted() {
    let Some(lab) = Lab::open() else { return };
    let guest = Guest {
        emulator_arguments: vec!["-no-such-option".to_owned()],
        ..small()
    };
    let error = lab.failing(guest, "true");
    assert!(matches!(error, GuestError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("no-such-option"), "{error}");
}

const CHILD: &str = "NUMALAB_GUEST_TEST_CHILD";

/// Not a test by itself: the process that the next test kills.
#[test]
fn child_that_owns_a_guest() {
    let Some(directory) = std::env::var_os(CHILD).map(PathBuf::from) else {
        return;
    };
    let Some(mut lab) = Lab::open() else { return };
    lab.runtime = Runtime::at(directory).unwrap();
    let mut sink = |_: Stream, _: &[u8]| println!("the guest is up");
    let task = shell("echo up; exec sleep 1000");
    let ended = lab
        .launch(small())
        .run(&lab.runtime, &task, &mut sink, &|| false);
    panic!("ended: {ended:?}");
}

#[test]
fn nothing_outlives_a_killed_owner_but_files_which_the_next_start_removes() {
    let Some(lab) = Lab::open() else { return };
    let run = lab.directory.path().join("run");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_owns_a_guest", "--nocapture"])
        .env(CHILD, &run)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let up = output
        .lines()
        .map_while(Result::ok)
        .any(|line| line.contains("the guest is up"));
    assert!(up, "the guest came up");
    let guests = lab.runtime.guests().unwrap();
    assert_eq!(guests.len(), 1, "{guests:?}");
    assert_eq!(guests[0].record.owner, child.id());
    let qemu = guests[0].qemu.unwrap();

    child.kill().unwrap();
    child.wait().unwrap();
    let start = Instant::now();
    while qemus_of(&run).contains(&qemu) {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "QEMU outlives its owner"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(guests[0].directory.exists());
    Runtime::at(&run).unwrap();
    lab.nothing_is_left();
}

#[test]
fn a_second_image_of_the_same_contents_is_not_built_again() {
    let Some(lab) = Lab::open() else { return };
    let before = fs::metadata(lab.files.initramfs.as_ref().unwrap())
        .unwrap()
        .modified()
        .unwrap();
    drop(lab);
    let Some(lab) = Lab::open() else { return };
    let after = fs::metadata(lab.files.initramfs.as_ref().unwrap())
        .unwrap()
        .modified()
        .unwrap();
    assert_eq!(before, after);
}
