//! Boots Xen without NUMA: its domains run jobs together, and the placement of their memory is
//! proven although the hypervisor does not know it. (The test of Xen with NUMA is in `crates/cli`.)

use numalab_host::Classed;
use std::collections::BTreeMap;
use std::time::Duration;

use numalab_guest::xen::{
    DomainJob, DomainPlan, Pinning, XenError, XenFiles, XenFilesError, XenMachine, XenPlan,
    XenReport, run,
};
use numalab_guest::{GuestError, Qemu, QemuNeeds, Runtime};
use numalab_image::{Cache, Contents};
use numalab_topology::{Distances, Machine};

use crate::lab::{cpu, init, node, one_at_a_time, unavailable};

/// Returns 2 nodes of 2 cpus and 1 GiB.
fn two_nodes() -> Machine {
    Machine {
        nodes: vec![node(0, "0-1", 1024), node(1, "2-3", 1024)],
        cpus: (0..4).map(|id| cpu(id, id / 2)).collect(),
        distances: Distances::uniform(2, 20),
        ..Machine::default()
    }
}

fn files(cache: &Cache) -> Result<XenFiles, XenFilesError> {
    XenFiles::ensure(cache, &Contents::new(init()), &mut |text| eprintln!("{text}"))
}

fn boot(domains: Vec<DomainPlan>, jobs: &[&str]) -> Option<XenReport> {
    let _turn = one_at_a_time();
    let cache = Cache::open().unwrap();
    let files = match files(&cache) {
        Ok(files) => files,
        Err(error) => return unavailable(&error, error.remedy()),
    };
    let qemu = match Qemu::find(&cache, &QemuNeeds::default()) {
        Ok(qemu) => qemu,
        Err(error) => return unavailable(&error, error.remedy()),
    };
    let machine = XenMachine {
        machine: two_nodes(),
        arguments: ["numa=off", "dom0_mem=640M", "dom0_max_vcpus=1"]
            .map(ToOwned::to_owned)
            .to_vec(),
        boot_limit: Some(Duration::from_secs(1200)),
        ..XenMachine::default()
    };
    let job = |script: &&str| DomainJob {
        name: (*script).to_owned(),
        command: ["sh", "-c", script].map(ToOwned::to_owned).to_vec(),
        limit_s: 600,
        marks_itself: false,
    };
    let plan = XenPlan { domains, jobs: jobs.iter().map(job).collect(), ..XenPlan::default() };
    let plan = machine.fitted(&plan);
    let directory = tempfile::Builder::new().prefix("nl").tempdir_in("/tmp").unwrap();
    let runtime = Runtime::at(directory.path().join("run")).unwrap();
    let launch = machine.launch(&files, qemu).unwrap();
    let mut watch = |event: &_| eprintln!("{event:?}");
    let report = run(&launch, &runtime, &plan, &mut watch, &|| false);
    assert_eq!(crate::lab::qemus_of(directory.path()), Vec::<u32>::new());
    match report {
        Ok(report) => Some(report),
        Err(XenError::Guest(error @ GuestError::Refused { .. })) => unavailable(&error, None),
        Err(error) => panic!("{error}"),
    }
}

fn domain(name: &str, home: u32) -> DomainPlan {
    DomainPlan {
        name: name.to_owned(),
        memory_mib: 96,
        vcpus: 1,
        home: Some(home),
        cpus: format!("{}-{}", 2 * home, 2 * home + 1),
        pinning: Pinning::CpusAndMemory,
        ..DomainPlan::default()
    }
}

const FRAMES: u64 = 96 << 8;

#[test]
fn with_numa_off_memory_is_found_though_the_hypervisor_sees_one_node() {
    let domains = vec![domain("first", 0), domain("second", 1)];
    let Some(report) = boot(domains, &["echo done"]) else { return };
    assert_eq!(report.lost, BTreeMap::new());
    assert_eq!(report.info.nodes.len(), 1, "the hypervisor takes all for one node");
    for name in ["first", "second"] {
        let place = &report.places[name];
        assert_eq!(place.hypervisor, BTreeMap::from([(0, FRAMES)]));
        // The hypervisor allocates from the end of its heap, which is on the second node.
        assert_eq!(place.frames, BTreeMap::from([(1, FRAMES)]));
    }
    assert_eq!(report.places["first"].share_on(0), Some(0.0));
    let outputs: Vec<&str> = report.answers.iter().map(|answer| answer.output.as_str()).collect();
    assert_eq!(outputs, ["done\n", "done\n"]);
}
