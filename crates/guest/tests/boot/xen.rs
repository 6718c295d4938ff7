//! Xen boots, its domains run jobs together, and where their memory lies is proven,
//! whether the hypervisor knows of nodes or not.

use std::collections::BTreeMap;
use std::time::Duration;

use numalab_guest::xen::{
    DomainJob, DomainPlan, LostPhase, Pinning, XenError, XenFiles, XenFilesError, XenMachine,
    XenPlan, XenReport, run,
};
use numalab_guest::{Cache, Contents, GuestError, Qemu, QemuNeeds, Runtime};
use numalab_topology::{Distances, Machine};

use crate::lab::{cpu, init, node, one_at_a_time, unavailable};

/// 2 nodes of 2 cpus and 1 GiB.
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

fn boot(numa: &str, domains: Vec<DomainPlan>, jobs: &[&str]) -> Option<XenReport> {
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
        arguments: [numa, "dom0_mem=640M", "dom0_max_vcpus=1"].map(ToOwned::to_owned).to_vec(),
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

fn domain(name: &str, home: u32, pinning: Pinning) -> DomainPlan {
    DomainPlan {
        name: name.to_owned(),
        memory_mib: 96,
        vcpus: 1,
        home: Some(home),
        cpus: format!("{}-{}", 2 * home, 2 * home + 1),
        pinning,
        ..DomainPlan::default()
    }
}

const FRAMES: u64 = 96 << 8;

#[test]
fn with_numa_on_memory_is_where_the_cpus_are_and_lost_domains_have_reasons() {
    let mut two_cpus = domain("second", 1, Pinning::CpusAndMemory);
    two_cpus.vcpus = 2;
    let mut too_big = domain("too-big", 0, Pinning::CpusAndMemory);
    too_big.memory_mib = 4000;
    let domains = vec![
        domain("first", 0, Pinning::CpusAndMemory),
        two_cpus,
        domain("as-string", 1, Pinning::CpusAsString),
        too_big,
    ];
    let jobs =
        ["grep -c processor /proc/cpuinfo", "[ $(nproc) = 1 ] || echo c > /proc/sysrq-trigger"];
    let Some(report) = boot("numa=on", domains, &jobs) else { return };

    let frames = |name: &str| report.places[name].frames.clone();
    assert_eq!(frames("first"), BTreeMap::from([(0, FRAMES)]));
    assert_eq!(frames("second"), BTreeMap::from([(1, FRAMES)]));
    for name in ["first", "second"] {
        let place = &report.places[name];
        let counted = place.hypervisor.iter().filter(|(_, frames)| **frames > 0);
        let counted: BTreeMap<u32, u64> = counted.map(|(node, count)| (*node, *count)).collect();
        assert_eq!(counted, place.frames, "both ways of counting agree");
        assert_eq!(place.unknown, Vec::<String>::new());
    }
    assert_eq!(report.places["second"].vcpus.len(), 2);
    assert!(report.places["second"].vcpus.iter().all(|vcpu| vcpu.hard == "2,3"));
    // The fault of libxl: pinned to node 1, with memory from another node.
    let fault = &report.places["as-string"];
    assert_eq!(fault.vcpus[0].hard, "2,3");
    assert_eq!(fault.frames, BTreeMap::from([(0, FRAMES)]), "{fault:?}");

    assert_eq!(report.info.cpu_nodes, BTreeMap::from([(0, 0), (1, 0), (2, 1), (3, 1)]));
    assert_eq!(report.info.nodes[&1].1, [20, 10]);
    let answer = |name: &str, job| {
        let found = report.answers.iter().find(|answer| answer.domain == name && answer.job == job);
        found.map(|answer| (answer.exit, answer.output.as_str()))
    };
    assert_eq!(answer("first", 0), Some((0, "1\n")));
    assert_eq!(answer("second", 0), Some((0, "2\n")));
    assert_eq!(answer("first", 1), Some((0, "")));
    assert_eq!(answer("second", 1), None);
    let (phase, reason) = &report.lost["second"];
    assert_eq!(*phase, LostPhase::Job);
    assert!(reason.starts_with("the domain ") && reason.contains("Kernel panic"), "{reason}");
    let (phase, reason) = &report.lost["too-big"];
    assert_eq!(*phase, LostPhase::Create);
    assert!(reason.contains("memory"), "{reason}");
    assert_eq!(report.lost.len(), 2);
}

#[test]
fn with_numa_off_memory_is_found_though_the_hypervisor_does_not_know() {
    let domains = vec![
        domain("first", 0, Pinning::CpusAndMemory),
        domain("second", 1, Pinning::CpusAndMemory),
    ];
    let Some(report) = boot("numa=off", domains, &["echo done"]) else { return };
    assert_eq!(report.lost, BTreeMap::new());
    assert_eq!(report.info.nodes.len(), 1, "the hypervisor takes all for one node");
    for name in ["first", "second"] {
        let place = &report.places[name];
        assert_eq!(place.hypervisor, BTreeMap::from([(0, FRAMES)]));
        // The hypervisor's heap gives from its end, which is the second node's.
        assert_eq!(place.frames, BTreeMap::from([(1, FRAMES)]));
    }
    assert_eq!(report.places["first"].share_on(0), Some(0.0));
    let outputs: Vec<&str> = report.answers.iter().map(|answer| answer.output.as_str()).collect();
    assert_eq!(outputs, ["done\n", "done\n"]);
}
