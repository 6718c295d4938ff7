//! Guests from outside: real boots, one at a time.
//!
//! They need `qemu-system-x86_64` and the distribution's kernel package, which is
//! downloaded into the cache once. With `NUMALAB_REQUIRE_TOOLS=1` their lack is a
//! failure; otherwise it is printed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use numalab_formats::{emulation, machine_toml};
use numalab_topology::{
    AccessAttributes, AccessClass, CpuSet, Device, DeviceKind, Machine, MemorySideCache, NodeId,
    UniformMachine,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::schemas;

/// Guests use both cores for seconds, so they run one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const NUMALAB: &str = env!("CARGO_BIN_EXE_numalab");
const DISTANCES: &str = "10,12,20,22;12,10,22,20;20,22,10,12;22,20,12,10";
/// QEMU's own SRAT leaves out the addresses of video memory and firmware below 1 MiB.
const VIDEO_BYTES: u64 = 384 << 10;
/// Script by which each guest examines itself.
const LOOK: &str = "\
set -e
mkdir out
numalab topology --format json > out/sysfs.json
numalab topology --source acpi --format json > out/acpi.json
numalab machine acpi show --system --format json > out/tables.json
numalab machine acpi check --system > out/findings.txt
echo looked; echo to errors >&2
exit 7
";

/// Script in a guest: a thread on node 3 chases through memory on node 0.
const EXPLORE: &str = "\
set -e
mkdir out
sizes=$(seq -s M, 64 2 256)M
# Rarely a vCPU loses a timer under TCG, and a sleep never ends: start again then.
for start in 1 2 3; do
  numalab latency --cpus 7 --nodes 0 --size $sizes --budget 900s --precision 0.001% --quiet > /dev/null 2>&1 &
  worker=$!
  for try in $(seq 30); do
    sleep 1
    numalab explore --pid $worker > out/process.txt
    grep -q 'on node 3; .* is on node 0' out/process.txt && break 2
  done
  kill -9 $worker
done
numalab explore --pid $worker --format json > out/process.json
numalab explore --nodes --interval 100ms --format json > out/nodes.json
kill -9 $worker
numalab topology > out/topology.txt
numalab topology --format json > out/sysfs.json
numalab bind -q --near eth0 -- cat /proc/self/status /proc/self/numa_maps > out/near.txt
numalab bind --dry-run --near eth0 -- true > out/said.txt
numalab bind -q --numa=1 --cpus node -- cat /proc/self/status /proc/self/numa_maps > out/home.txt
for device in eth7 00:1f.2; do
  numalab bind -q --near $device -- true 2>> out/refused.txt && exit 1
done
gpu=$(sed -n 's/.*GPU.* \\(0000:[^ ]*\\).*/\\1/p' out/topology.txt)
numalab bind -q --numa=3 --cpus 7 -- sh -c \"exec sleep 300 3< /sys/bus/pci/devices/$gpu/resource0\" &
sleep 2
numalab explore --pid $! > out/device.txt
numalab explore --pid $! --format json > out/device.json
exit 7
";

/// A separate directory.
struct Lab {
    directory: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Lab {
    fn open() -> Self {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::Builder::new().prefix("nl").tempdir_in("/tmp").expect("made");
        Self { directory, _turn: turn }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    fn numalab(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(NUMALAB);
        command.args(arguments).stdin(Stdio::null());
        command.env("XDG_RUNTIME_DIR", self.path("run"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.numalab(arguments).output().expect("numalab starts")
    }

    /// Returns the output if it exits with `expected`; `None`, after printing why, if no guest can be
    /// booted.
    ///
    /// Rarely (once in some forty runs, QEMU 10.0) a vCPU of several loses a timer under TCG, and
    /// what sleeps on it never wakes: such a guest is ended and booted once more.
    fn boots(&self, arguments: &[&str], expected: i32) -> Option<Output> {
        let mut output = self.run(arguments);
        if expected != 125 && stderr(&output).contains("did not finish its command within") {
            eprintln!("booted once more: {}", stderr(&output));
            output = self.run(arguments);
        }
        let errors = stderr(&output);
        if output.status.code() == Some(125) && expected != 125 {
            let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
            assert!(!required, "no guest can be booted here: {errors}");
            eprintln!("NOT RUN: no guest can be booted here: {errors}");
            return None;
        }
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}: {errors}");
        self.nothing_is_left();
        Some(output)
    }

    fn nothing_is_left(&self) {
        let Ok(entries) = fs::read_dir(self.path("run/numalab")) else { return };
        let names: Vec<_> = entries.map(|entry| entry.expect("readable").file_name()).collect();
        assert_eq!(names, ["lock"]);
    }

    /// Returns a document from the guest.
    fn found(&self, name: &str) -> Value {
        let file = self.path("results/root/out").join(name);
        schemas::document(&fs::read(&file).expect("brought back"))
    }

    fn found_machine(&self, name: &str) -> Machine {
        serde_json::from_value(self.found(name)["machine"].clone()).expect("a machine")
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the machine that `--emulate nodes --cpus cpus --distances DISTANCES` requests.
fn asked(nodes: &str, cpus: u32) -> Machine {
    let spec = emulation::parse(nodes, Some(DISTANCES)).expect("a specification");
    let memory_bytes = 4 << 30;
    let base = UniformMachine::of_packages(1, cpus, memory_bytes);
    spec.emulate(&base.build().expect("a machine")).expect("nodes")
}

fn cpus_of_nodes(machine: &Machine) -> Vec<(NodeId, CpuSet)> {
    machine.nodes.iter().map(|node| (node.id, node.cpus.clone())).collect()
}

fn memory_of_nodes(machine: &Machine) -> Vec<u64> {
    machine.nodes.iter().map(|node| node.memory_bytes).collect()
}

/// Checks for the same nodes, cpus and distances, and for the memory minus the kernel's part.
fn assert_linux_shows(found: &Machine, asked: &Machine) {
    assert_eq!(cpus_of_nodes(found), cpus_of_nodes(asked));
    assert_eq!(found.distances, asked.distances);
    for (found, asked) in found.nodes.iter().zip(&asked.nodes) {
        let (has, wanted) = (found.memory_bytes, asked.memory_bytes);
        assert!(has <= wanted && has >= wanted / 5 * 4, "node {}: {has} of {wanted}", found.id);
    }
}

/// Checks that the tables describe the requested machine to the byte.
fn assert_tables_say(found: &Machine, asked: &Machine) {
    assert_eq!(cpus_of_nodes(found), cpus_of_nodes(asked));
    assert_eq!(found.distances, asked.distances);
    assert_eq!(memory_of_nodes(found), memory_of_nodes(asked));
}

fn signatures(tables: &Value) -> Vec<&str> {
    let tables = tables["tables"].as_array().expect("tables");
    tables.iter().filter_map(|table| table["signature"].as_str()).collect()
}

#[test]
fn a_guest_is_the_requested_machine_and_its_tables_agree() {
    let lab = Lab::open();
    let results = lab.text("results");
    let machine = ["--emulate", "512M,512M,1G,1G", "--cpus", "8", "--distances", DISTANCES];
    let start = [&["guest", "run"], &machine[..], &["--pin", "auto"]].concat();
    let end = ["-o", &results, "--collect", "/root/out", "--", "sh", "-c", LOOK];
    let Some(output) = lab.boots(&[&start[..], &end].concat(), 7) else { return };
    assert_eq!(stdout(&output), "looked\n");
    let errors = stderr(&output);
    assert!(errors.contains("to errors\n"), "{errors}");
    assert!(errors.contains("vCPU 7 of node 3: thread "), "{errors}");
    assert!(errors.contains("memory ram3 of 1 GiB: "), "{errors}");

    let asked = asked("512M,512M,1G,1G", 8);
    assert_linux_shows(&lab.found_machine("sysfs.json"), &asked);
    assert_eq!(lab.found_machine("sysfs.json").packages().len(), 4);
    let mut in_tables = asked;
    in_tables.nodes[0].memory_bytes -= VIDEO_BYTES;
    assert_tables_say(&lab.found_machine("acpi.json"), &in_tables);
    assert_eq!(signatures(&lab.found("tables.json")), ["SRAT", "SLIT", "APIC"]);
}

/// Regression: the translator's processors are AMD's without the leaf from which Linux 6.1 reads
/// threads, and a guest with two threads a core had as many cores, in silence.
#[test]
fn threads_of_cores_are_threads_in_the_guest_and_plans_keep_to_the_allowed_ones() {
    let lab = Lab::open();
    let file = lab.text("lstopo.txt");
    fs::write(&file, "Package:2 [NUMANode(memory=536870912)] Core:2 PU:2\n").expect("written");
    let source = format!("lstopo:{file}");
    let look = "cat /sys/devices/system/cpu/cpu*/topology/thread_siblings_list | sort -u\n\
                taskset -c 1,5,7 numalab topology --format slurm 2> /dev/null | grep -o map_cpu:.*";
    let arguments = ["guest", "run", "--source", &source, "--", "sh", "-c", look];
    let Some(output) = lab.boots(&arguments, 0) else { return };
    assert_eq!(stdout(&output), "0-1\n2-3\n4-5\n6-7\nmap_cpu:1,5,7\n");
}

#[test]
fn a_thread_far_from_its_memory_is_found_in_a_guest_of_four_nodes() {
    let lab = Lab::open();
    let results = lab.text("results");
    let file = lab.text("machine.toml");
    let machine = Machine { devices: devices(), ..asked("512M,512M,512M,512M", 8) };
    fs::write(&file, machine_toml::write(&machine).expect("TOML")).expect("written");
    let start = ["guest", "run", "--timeout", "400s", "--topology", &file];
    let start = [&start[..], &["--module", "virtio_net"]].concat();
    let end = ["-o", &results, "--collect", "/root/out", "--", "sh", "-c", EXPLORE];
    if lab.boots(&[&start[..], &end].concat(), 7).is_none() {
        return;
    }
    let text = fs::read_to_string(lab.path("results/root/out/process.txt")).expect("brought back");
    // Its lines are wrapped.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("on node 3; ") && words.contains("is on node 0"), "{text}");
    let process = lab.found("process.json");
    // The process may be seen while it still fills its first 64 MiB.
    assert!(process["own_bytes_by_node"]["0"].as_u64() >= Some(32 << 20), "{process}");
    let remedy = process["findings"][0]["remedy"].as_str().expect("a command");
    // The choice depends on where the process's other thread was seen.
    let commands = ["numactl", "migratepages", "taskset"];
    assert!(commands.iter().any(|command| remedy.contains(command)), "{remedy}");
    let nodes = lab.found("nodes.json");
    assert_eq!(nodes["nodes"].as_array().map(Vec::len), Some(4));
    assert!(nodes["nodes"][3]["rates"]["hit"].is_number(), "{nodes}");
    devices_are_near_their_nodes(&lab);
}

/// Returns devices near three nodes; the fourth has none.
fn devices() -> Vec<Device> {
    let near = [(DeviceKind::Storage, 0), (DeviceKind::Gpu, 1), (DeviceKind::Network, 2)];
    let device = |(kind, node): (DeviceKind, u32)| Device {
        address: format!("0000:{node:02x}:00.0"),
        kind,
        id: None,
        driver: None,
        node: Some(NodeId(node)),
        names: Vec::new(),
    };
    near.map(device).into()
}

/// Checks that Linux has each device on the requested node, that programs start near them, and that
/// a program far from its open device is reported.
fn devices_are_near_their_nodes(lab: &Lab) {
    let text =
        |name: &str| fs::read_to_string(lab.path("results/root/out").join(name)).expect(name);
    let found = lab.found_machine("sysfs.json");
    let near = found.devices.iter().filter(|device| device.node.is_some());
    let near: Vec<_> = near.map(|device| (device.kind, device.node.map_or(0, |n| n.0))).collect();
    let asked: Vec<_> = devices().iter().map(|d| (d.kind, d.node.map_or(0, |n| n.0))).collect();
    assert_eq!(near, asked);
    assert!(text("topology.txt").contains("network  eth0"), "{}", text("topology.txt"));

    let beside = text("near.txt");
    assert!(beside.contains("Cpus_allowed_list:\t4-5\n"), "{beside}");
    assert!(beside.lines().any(|line| line.contains(" bind:2 ")), "{beside}");
    let home = text("home.txt");
    assert!(home.contains("Cpus_allowed_list:\t2-3\n"), "{home}");
    assert!(home.lines().any(|line| line.contains(" bind:1 ")), "{home}");
    let said = text("said.txt");
    assert!(said.contains("eth0 (network, 0000:"), "{said}");
    assert!(said.contains("is near node 2: cpus 4,5\n"), "{said}");
    assert!(said.contains("numactl --cpunodebind=2 --membind=2 true"), "{said}");
    let refused = text("refused.txt");
    assert!(refused.contains("--near eth7: no such device; expected one of eth0,"), "{refused}");
    assert!(refused.contains("the firmware names no node for 0000:00:1f.2 (storage)"), "{refused}");

    let words = text("device.txt").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("is near node 1, but its threads run on node 3"), "{words}");
    let document = lab.found("device.json");
    assert_eq!(document["devices"][0]["kind"], "gpu", "{document}");
    let problem = document["findings"].as_array().expect("findings").iter();
    let problem = problem.filter(|finding| finding["kind"] == "device-remote");
    let remedy: Vec<_> = problem.map(|finding| finding["remedy"].to_string()).collect();
    assert!(remedy.len() == 1 && remedy[0].contains("numalab bind --near 0000:"), "{remedy:?}");
}

/// Returns three nodes with cpus and a fourth with memory only behind a cache, with all access
/// costs.
fn machine_with_latencies() -> Machine {
    let mut machine = asked("1G:2,1G:2,1G:2,1G:0", 6);
    let latency_ns = [[80, 110, 190, 330], [110, 80, 200, 210], [190, 200, 80, 320]];
    for (initiator, row) in (0..).zip(latency_ns) {
        for (target, ns) in (0..).zip(row) {
            machine.access.push(AccessAttributes {
                initiator: NodeId(initiator),
                target: NodeId(target),
                class: AccessClass::Any,
                read_latency_ps: Some(ns * 1000),
                write_latency_ps: Some((ns + 5) * 1000),
                read_bandwidth_mb_per_s: Some(40_000 - 100 * ns),
                write_bandwidth_mb_per_s: Some(20_000 - 50 * ns),
            });
        }
    }
    let cache =
        MemorySideCache { level: 1, size_bytes: 64 << 20, line_bytes: Some(64), ways: Some(1) };
    machine.nodes[3].memory_side_caches = vec![cache];
    machine
}

/// Returns the attributes that Linux shows: only those of each target's best initiator.
fn best_accesses(machine: &Machine, class: AccessClass) -> Vec<AccessAttributes> {
    let best = [(0, 0), (1, 1), (2, 2), (1, 3)].map(|(from, to)| (NodeId(from), NodeId(to)));
    let of = |(initiator, target)| {
        let mut all = machine.access.iter();
        let found = all.find(|access| (access.initiator, access.target) == (initiator, target));
        AccessAttributes { class, ..found.expect("asked for").clone() }
    };
    best.map(of).to_vec()
}

#[test]
fn linux_shows_exactly_the_machine_of_tables_that_we_built() {
    let lab = Lab::open();
    let asked = machine_with_latencies();
    let (file, tables) = (lab.text("machine.toml"), lab.text("tables"));
    fs::write(&file, machine_toml::write(&asked).expect("TOML")).expect("written");
    let built = lab.run(&["machine", "acpi", "build", "--topology", &file, "-o", &tables]);
    assert!(built.status.success(), "{}", stderr(&built));
    for name in ["SRAT", "SLIT", "HMAT", "APIC"] {
        iasl_reads(&lab.path("tables").join(format!("{name}.bin")));
    }
    let results = lab.text("results");
    let start = ["guest", "run", "--topology", &file, "--tables", &tables];
    let shown = lab.run(&[&start[..], &["--dry-run", "--accel", "tcg"]].concat());
    assert!(stdout(&shown).contains("-acpitable"), "{}", stderr(&shown));
    assert!(!stdout(&shown).contains("-numa"), "QEMU must not make tables: {}", stdout(&shown));

    let end = ["-o", &results, "--collect", "/root/out", "--", "sh", "-c", LOOK];
    if lab.boots(&[&start[..], &end].concat(), 7).is_none() {
        return;
    }
    let linux = lab.found_machine("sysfs.json");
    assert_linux_shows(&linux, &asked);
    let classes = [AccessClass::Any, AccessClass::Cpu];
    for class in classes {
        let found: Vec<_> = linux.access.iter().filter(|a| a.class == class).cloned().collect();
        assert_eq!(found, best_accesses(&asked, class), "{class:?}");
    }
    assert_eq!(linux.nodes[3].memory_side_caches, asked.nodes[3].memory_side_caches);

    let firmware = lab.found_machine("acpi.json");
    assert_tables_say(&firmware, &asked);
    assert_eq!(firmware.access, asked.access);
    assert_eq!(firmware.ranges, asked.ranges);
    assert_eq!(firmware.nodes[3].memory_side_caches, asked.nodes[3].memory_side_caches);
    assert_eq!(signatures(&lab.found("tables.json")), ["SRAT", "SLIT", "HMAT", "APIC"]);
}

/// Checks that Intel's ACPI compiler disassembles the table without complaint.
fn iasl_reads(table: &Path) {
    let output = Command::new("timeout").args(["20", "iasl", "-d"]).arg(table).output();
    let output = output.expect("timeout is part of coreutils");
    if output.status.code() == Some(127) {
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
        assert!(!required, "iasl is not here; apt-get install acpica-tools");
        eprintln!("NOT RUN: iasl is not here; apt-get install acpica-tools");
        return;
    }
    let said = stdout(&output) + &stderr(&output);
    assert!(output.status.success(), "{}: {said}", table.display());
    let text = fs::read_to_string(table.with_extension("dsl")).expect("disassembled");
    for complaint in ["Error", "Warning", "Invalid", "Unknown"] {
        assert!(!said.contains(complaint) && !text.contains(complaint), "{said}\n{text}");
    }
}

#[test]
fn a_running_guest_is_listed_pinned_and_ended_by_an_interrupt() {
    let lab = Lab::open();
    let script = "echo up; exec sleep 1000";
    let mut running = lab.numalab(&["guest", "run", "-q", "--cpus", "2", "--", "sh", "-c", script]);
    let mut running =
        running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let mut line = String::new();
    let output = running.stdout.take().expect("piped");
    BufReader::new(output).read_line(&mut line).expect("readable");
    if line.is_empty() {
        let ended = running.wait_with_output().expect("it ends");
        assert_eq!(ended.status.code(), Some(125), "{}", stderr(&ended));
        // Prints a notice if guests cannot be booted here.
        assert!(lab.boots(&["guest", "run", "--", "true"], 0).is_none());
        return;
    }
    let listed = stdout(&lab.run(&["guest", "list"]));
    assert!(listed.contains("1 nodes, 2 cpus, 1 GiB: sh -c echo up"), "{listed}");
    let socket = listed.split_ascii_whitespace().last().expect("a socket");
    let pin = ["guest", "pin", "--qmp", socket, "--map", "0", "--vcpus", "1"];
    let pinned = lab.run(&[&pin[..], &["--helpers", "1"]].concat());
    assert!(stdout(&pinned).contains("vCPU 0 of node 0: thread "), "{}", stderr(&pinned));
    assert!(stdout(&pinned).contains(" on cpus 0"), "{}", stdout(&pinned));
    assert!(stdout(&pinned).contains(" on cpus 1\n"), "{}", stdout(&pinned));
    let shown = lab.run(&["guest", "pin", "--qmp", socket, "--map", "1=0", "--dry-run"]);
    assert!(stdout(&shown).contains(" would be on cpus 0\n"), "{}", stderr(&shown));
    let wrong = lab.run(&["guest", "pin", "--qmp", socket, "--map", "9=0"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
    let sent = Command::new("kill").args(["-INT", &running.id().to_string()]).status();
    assert!(sent.expect("kill starts").success());
    let ended = running.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(125));
    assert!(stderr(&ended).contains("the guest was stopped"), "{}", stderr(&ended));
    lab.nothing_is_left();
    assert_eq!(stdout(&lab.run(&["guest", "list"])), "no guest is running\n");
}

#[test]
fn a_command_that_takes_too_long_is_ended_and_its_output_is_kept() {
    let lab = Lab::open();
    let script = "numactl --hardware; exec sleep 1000";
    let start = ["guest", "run", "--emulate", "2", "--with", "numactl", "--timeout", "10s"];
    let end = ["--host-nodes", "0", "--", "sh", "-c", script];
    let Some(output) = lab.boots(&[&start[..], &end].concat(), 125) else { return };
    let text = stdout(&output);
    assert!(text.contains("available: 2 nodes (0-1)\nnode 0 cpus: 0\n"), "{text}");
    let errors = stderr(&output);
    assert!(errors.contains("did not finish its command within 10s"), "{errors}");
}

#[test]
fn a_reader_that_leaves_early_ends_the_guest_without_an_error() {
    let lab = Lab::open();
    if lab.boots(&["guest", "run", "-q", "--dry-run", "--accel", "tcg"], 0).is_none() {
        return;
    }
    let script = "\"$0\" guest run -q -- yes | head -n 1";
    let mut command = Command::new("bash");
    command.args(["-o", "pipefail", "-c", script]).arg(NUMALAB);
    let output = command.env("XDG_RUNTIME_DIR", lab.path("run")).output().expect("bash starts");
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "y\n"));
    lab.nothing_is_left();
}

#[test]
fn a_shell_has_the_persons_terminal_and_gives_its_exit_code() {
    let lab = Lab::open();
    if lab.boots(&["guest", "run", "-q", "--dry-run", "--accel", "tcg"], 0).is_none() {
        return;
    }
    let inner = format!("{NUMALAB} guest shell -q -- sh -c 'tty; exit 3'");
    let mut command = Command::new("script");
    command.args(["-qec", &inner, "/dev/null"]).stdin(Stdio::null());
    let output = command.env("XDG_RUNTIME_DIR", lab.path("run")).output();
    let output = output.expect("script is part of util-linux");
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    assert!(stdout(&output).contains("/dev/hvc0"), "{}", stdout(&output));
    lab.nothing_is_left();
}

#[test]
fn a_dry_run_prints_the_command_line_and_writes_nothing() {
    let lab = Lab::open();
    let shown = |memory: &str, prealloc: &[&str]| {
        let machine = ["guest", "run", "--emulate", "2", "--cpus", "4", "--memory", memory];
        let arguments = [&machine[..], &["--accel", "tcg", "--dry-run"], prealloc].concat();
        let output = lab.numalab(&arguments).env("NUMALAB_CACHE", lab.path("cache")).output();
        let output = output.expect("numalab starts");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let text = shown("2G", &["--prealloc"]);
    let words = [
        "-smp 4,sockets=2",
        "-numa node,nodeid=1,memdev=ram1",
        "-initrd INITRAMFS",
        ",prealloc=on",
    ];
    for words in words {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
    let meminfo = fs::read_to_string("/proc/meminfo").expect("Linux");
    let total = meminfo.split_whitespace().nth(1).expect("MemTotal: kB");
    let twice_gib = total.parse::<u64>().expect("a number").div_ceil(1 << 20) * 2;
    let text = shown(&format!("{twice_gib}G"), &[]);
    assert!(text.contains(",reserve=off"), "more memory than this machine has: {text}");
    let left = ["cache", "run"].map(|name| lab.path(name).exists());
    assert_eq!(left, [false, false]);
}

#[test]
fn bad_input_is_refused_with_the_expected_form_and_125_where_a_command_is_run() {
    let lab = Lab::open();
    let refuses = |arguments: &[&str], word: &str| {
        let output = lab.run(&[&["guest"], arguments].concat());
        let message = stderr(&output);
        let code = if arguments[0] == "run" { 125 } else { 2 };
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(message.contains(word), "{arguments:?}: no `{word}` in {message}");
    };
    refuses(&["run"], "expected one after --");
    refuses(&["run", "--pages", "4m", "--", "true"], "possible values: normal, 2m, 1g, memfd");
    refuses(&["run", "--pin", "0=", "--", "true"], "such as 0-3,8");
    refuses(&["run", "--kernel", "/no/such", "--", "true"], "expected linux, backports");
    refuses(&["run", "--tables", "/tmp/no-such", "--", "true"], "no SRAT.bin there");
    refuses(&["run", "--collect", "/root", "--", "true"], "--output");
    refuses(&["pin", "--qmp", "nowhere"], "expected the path of a socket");
}

#[test]
fn the_cache_is_shown_and_emptied() {
    let lab = Lab::open();
    let image = |argument: &[&str]| {
        let mut command = lab.numalab(&[&["guest", "image"], argument].concat());
        let output = command.env("NUMALAB_CACHE", lab.path("cache")).output().expect("starts");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let entry = lab.path("cache/image/abc");
    fs::create_dir_all(&entry).expect("made");
    fs::write(entry.join("initramfs.cpio"), vec![1; 8 << 20]).expect("written");
    let shown = image(&[]);
    assert!(shown.contains("image        8 MiB  abc"), "{shown}");
    assert!(image(&["--clean", "--dry-run"]).contains("would empty"));
    assert!(entry.exists());
    image(&["--clean"]);
    assert!(!entry.exists());
}

/// The rest of the self-test, on machines of several nodes, is tested in `emulated/self_test.rs`.
#[test]
fn a_self_test_boots_a_guest_with_its_nodes_on_those_of_this_machine() {
    let lab = Lab::open();
    let output =
        lab.run(&["machine", "selftest", "--real-nodes", "--size", "8M", "--format", "json"]);
    let found = schemas::document(&output.stdout);
    let checks = found["checks"].as_array().expect("checks");
    let guest = checks.iter().find(|checked| checked["check"] == "guest").expect("a guest");
    if guest["outcome"] == "not-checked" {
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
        assert!(!required, "no guest can be booted here: {guest}");
        eprintln!("NOT RUN: no guest can be booted here: {guest}");
        return;
    }
    assert_eq!(guest["outcome"], "passed", "{guest}");
    let node = &guest["found"]["nodes"][0];
    assert_eq!(
        (&node["there_bytes"], &node["elsewhere_bytes"]),
        (&(256_u64 << 20).into(), &0.into())
    );
    lab.nothing_is_left();
    let memory_nodes = host_nodes_with_memory();
    let expected = if memory_nodes > 1 { 0 } else { 3 };
    assert_eq!(output.status.code(), Some(expected), "{}", stderr(&output));
    if memory_nodes == 1 {
        let proof = checks.iter().find(|checked| checked["check"] == "proof").expect("a proof");
        assert_eq!(proof["outcome"], "not-checked");
        assert_eq!(proof["reason"], "it needs two nodes with memory");
        assert!(stderr(&output).contains("numalab guest run --emulate 4"), "{}", stderr(&output));
    }
}

fn host_nodes_with_memory() -> usize {
    let text = fs::read_to_string("/sys/devices/system/node/has_memory").unwrap_or_default();
    text.trim().parse::<numalab_topology::NodeSet>().map_or(1, |nodes| nodes.len().max(1))
}
