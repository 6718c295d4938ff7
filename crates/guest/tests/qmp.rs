//! Pinning and proof on a real QEMU that was not started by numalab.
#![forbid(unsafe_code)]

use numalab_host::Classed;
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use numalab_guest::qmp::{PinError, QmpAddress, QmpClient, apply, io_threads, prove_memory, vcpus};
use numalab_guest::{PinPlan, Qemu, QemuNeeds};
use numalab_image::Cache;
use numalab_topology::{CpuSet, Machine, NodeId};

/// A QEMU with four vCPUs on two nodes, stopped, its memory touched.
struct Foreign {
    process: Child,
    address: QmpAddress,
}

impl Foreign {
    fn start() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path()).unwrap();
        let qemu = match Qemu::find(&cache, &QemuNeeds::default()) {
            Ok(qemu) => qemu,
            Err(error) => {
                let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
                assert!(!required, "{error}; {:?}", error.remedy());
                eprintln!("NOT RUN: {error}; {:?}", error.remedy());
                return None;
            }
        };
        // The port is unused only until another process takes it.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = qemu.command();
        command.args(["-nodefaults", "-display", "none", "-S", "-accel", "tcg", "-machine", "q35"]);
        command.args(["-smp", "4,sockets=2,cores=2", "-m", "64M", "-object", "iothread,id=disks"]);
        for node in 0..2 {
            let (first, last) = (2 * node, 2 * node + 1);
            let memory = format!(
                "memory-backend-ram,id=m{node},size=32M,prealloc=on,host-nodes=0,policy=bind"
            );
            let numa = format!("node,nodeid={node},memdev=m{node},cpus={first}-{last}");
            command.args(["-object", &memory, "-numa", &numa]);
        }
        command.args(["-qmp", &format!("tcp:127.0.0.1:{port},server=on,wait=off")]);
        let process = command.stdin(Stdio::null()).spawn().unwrap();
        let address = format!("127.0.0.1:{port}").parse().unwrap();
        Some(Self { process, address })
    }

    fn connect(&self) -> QmpClient {
        let start = Instant::now();
        loop {
            match QmpClient::connect(&self.address, Duration::from_secs(20)) {
                Ok(client) => return client,
                Err(error) if start.elapsed() > Duration::from_secs(30) => panic!("{error}"),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

#[test]
fn a_foreign_qemu_is_pinned_and_its_memory_proven() {
    let Some(foreign) = Foreign::start() else {
        return;
    };
    let mut qmp = foreign.connect();
    let found = vcpus(&mut qmp).unwrap();
    let nodes: Vec<_> = found.iter().map(|vcpu| vcpu.node).collect();
    assert_eq!(nodes, [Some(0), Some(0), Some(1), Some(1)]);
    assert_eq!(io_threads(&mut qmp).unwrap()[0].name, "disks");

    let last = CpuSet::from_iter(allowed().iter().last());
    let plan = PinPlan::NodeLists { vcpus: Some(3), lists: vec![set("0"), last.clone()] };
    let report = apply(&mut qmp, &plan, Some(&last), &Machine::default()).unwrap();
    assert_eq!(report.process, foreign.process.id());
    let affinities: Vec<String> = report.vcpus.iter().map(|v| v.affinity.to_string()).collect();
    assert_eq!(affinities, ["0".to_owned(), "0".to_owned(), last.to_string()]);
    let disks = report.helpers.iter().find(|helper| helper.name == "disks").unwrap();
    assert_eq!(disks.affinity, last);
    let untouched = found[3].thread;
    assert!(report.helpers.iter().all(|helper| helper.thread != untouched));
    let again = report.clone().observed().unwrap();
    assert_eq!(again.vcpus[2].affinity, last);

    let memory = prove_memory(&mut qmp, report.process).unwrap();
    assert_eq!(memory.len(), 2, "{memory:?}");
    for proof in &memory {
        assert_eq!(proof.policies, ["bind:0"]);
        assert_eq!(proof.bytes_by_node[&NodeId(0)], 32 << 20, "all of it was touched");
    }
}

#[test]
fn cpus_that_this_machine_lacks_are_refused_with_the_thread() {
    let Some(foreign) = Foreign::start() else {
        return;
    };
    let mut qmp = foreign.connect();
    let plan = PinPlan::Map(vec![(1, set("1000"))]);
    let error = apply(&mut qmp, &plan, None, &Machine::default()).unwrap_err();
    let thread = vcpus(&mut qmp).unwrap()[1].thread;
    assert!(matches!(&error, PinError::Refused { thread: t, .. } if *t == thread), "{error}");
    let error = qmp.execute("no-such-command", &serde_json::Value::Null).unwrap_err();
    assert!(error.to_string().contains("CommandNotFound"), "{error}");
}

/// Returns the host cpus that this process may use.
fn allowed() -> CpuSet {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    set(line.unwrap().trim())
}
