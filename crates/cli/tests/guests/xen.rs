//! Xen boots with the command in its first domain: domains run jobs together with proven placement,
//! `numalab explore --guests` sees them, and lost domains have reasons. (`crates/guest` boots a
//! hypervisor that knows no nodes, with the same proof.)

use numalab_host::Classed;
use std::collections::BTreeMap;
use std::time::Duration;

use numalab_formats::described::uniform;
use numalab_guest::xen::{
    DomainJob, DomainPlan, FIRST_DOMAIN, LostPhase, Pinning, XenFiles, XenMachine, XenPlan,
    XenReport, run,
};
use numalab_guest::{Qemu, QemuNeeds, Runtime};
use numalab_image::{Cache, Contents};
use numalab_topology::{EmulatedNodes, EmulationSpec, Machine};

use crate::schemas;

/// Memory that a domain needs to unpack the command, in MiB.
const MEMORY_MIB: u64 = 256;
const FRAMES: u64 = MEMORY_MIB << 8;

/// Returns 2 nodes of 2 cpus and 1280 MiB.
fn two_nodes() -> Machine {
    let spec = EmulationSpec::new(EmulatedNodes::Equal(2));
    uniform(Some(&spec), 4, Some(2560 << 20)).expect("a machine")
}

fn job(words: &[&str]) -> DomainJob {
    DomainJob {
        name: words.join(" "),
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        limit_s: 600,
        marks_itself: false,
    }
}

fn domain(name: &str, home: u32, pinning: Pinning) -> DomainPlan {
    DomainPlan {
        name: name.to_owned(),
        memory_mib: MEMORY_MIB,
        vcpus: 1,
        home: Some(home),
        cpus: format!("{}-{}", 2 * home, 2 * home + 1),
        pinning,
        ..DomainPlan::default()
    }
}

/// Boots Xen; `None`, after printing why, if nothing can be booted.
fn boot(plan: &XenPlan) -> Option<XenReport> {
    let directory = tempfile::Builder::new().prefix("nl").tempdir_in("/tmp").expect("a directory");
    let cache = Cache::open().expect("a cache");
    let contents = Contents::new(env!("CARGO_BIN_EXE_numalab"));
    let files = XenFiles::ensure(&cache, &contents, &mut |text| eprintln!("{text}"));
    let files = files.map_err(|error| format!("{error}; {:?}", error.remedy()));
    let qemu = Qemu::find(&cache, &QemuNeeds::default()).map_err(|error| error.to_string());
    let (files, qemu) = match files.and_then(|files| Ok((files, qemu?))) {
        Ok(found) => found,
        Err(error) => {
            let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|set| set == "1");
            assert!(!required, "Xen cannot be booted here: {error}");
            eprintln!("NOT RUN: Xen cannot be booted here: {error}");
            return None;
        }
    };
    let machine = XenMachine {
        machine: two_nodes(),
        arguments: ["numa=on", "dom0_mem=768M", "dom0_max_vcpus=1"].map(ToOwned::to_owned).to_vec(),
        boot_limit: Some(Duration::from_secs(1200)),
        ..XenMachine::default()
    };
    let launch = machine.launch(&files, qemu).expect("a machine of QEMU");
    let runtime = Runtime::at(directory.path().join("run")).expect("a runtime directory");
    let mut watch = |event: &_| eprintln!("{event:?}");
    let report = run(&launch, &runtime, &machine.fitted(plan), &mut watch, &|| false);
    Some(report.expect("the plan is carried out"))
}

#[test]
fn with_numa_on_memory_is_where_the_cpus_are_and_lost_domains_have_reasons() {
    let mut two_cpus = domain("second", 1, Pinning::CpusAndMemory);
    two_cpus.vcpus = 2;
    let mut too_big = domain("too-big", 0, Pinning::CpusAndMemory);
    too_big.memory_mib = 4000;
    let first = domain("first", 0, Pinning::CpusAndMemory);
    let plan = XenPlan {
        domains: vec![first, two_cpus, domain("as-string", 1, Pinning::CpusAsString), too_big],
        own_jobs: vec![job(&["numalab", "explore", "--guests", "--format", "json"])],
        jobs: vec![
            job(&["grep", "-c", "processor", "/proc/cpuinfo"]),
            job(&["sh", "-c", "[ $(nproc) = 1 ] || echo c > /proc/sysrq-trigger"]),
        ],
        // Guests of the first one's size are restored, the others booted.
        restores: true,
        ..XenPlan::default()
    };
    let Some(report) = boot(&plan) else { return };
    memory_is_where_the_cpus_are(&report);
    the_explorer_sees_it_too(&report);
    lost_domains_have_reasons(&report);
}

fn memory_is_where_the_cpus_are(report: &XenReport) {
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
    // The bug of libxl: pinned to node 1, but with memory from another node.
    let fault = &report.places["as-string"];
    assert_eq!(fault.vcpus[0].hard, "2,3");
    assert_eq!(fault.frames, BTreeMap::from([(0, FRAMES)]), "{fault:?}");
    assert_eq!(report.info.cpu_nodes, BTreeMap::from([(0, 0), (1, 0), (2, 1), (3, 1)]));
    assert_eq!(report.info.nodes[&1].1, [20, 10]);
}

/// Runs `numalab explore --guests` in the first domain.
fn the_explorer_sees_it_too(report: &XenReport) {
    let said = report.answers.iter().find(|answer| answer.domain == FIRST_DOMAIN);
    let said = said.expect("an answer of the first domain");
    assert_eq!(said.exit, 0, "{}", said.output);
    let seen = schemas::document(&said.output);
    let guests = seen["guests"].as_array().expect("guests");
    let guest = |name: &str| {
        let found = guests.iter().find(|guest| guest["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {}", said.output))
    };
    for (name, node) in [("first", 0), ("second", 1)] {
        let guest = guest(name);
        assert_eq!(guest["bytes_by_node"][node.to_string()], MEMORY_MIB << 20, "{guest}");
        let vcpus = guest["vcpus"].as_array().expect("vcpus");
        assert!(vcpus.iter().all(|vcpu| vcpu["node"] == node), "{guest}");
        assert_eq!(guest["remote_share"], 0.0, "{guest}");
    }
    assert_eq!(guest("as-string")["remote_share"], 1.0);
    let findings = seen["findings"].to_string();
    assert!(findings.contains("guest as-string: vCPU 0 runs on node 1"), "{findings}");
    assert!(findings.contains("cpus given as a string"), "{findings}");
}

fn lost_domains_have_reasons(report: &XenReport) {
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
