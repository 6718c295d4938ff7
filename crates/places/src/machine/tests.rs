use numalab_topology::{CpuId, UniformMachine};

use super::*;

fn request(emulate: Option<&str>, cpus: Option<u32>) -> MachineRequest {
    MachineRequest { emulate: emulate.map(str::to_owned), cpus, ..MachineRequest::default() }
}

fn like(name: &str, cpus: Option<u32>) -> MachineRequest {
    MachineRequest { like: Some(name.to_owned()), ..request(None, cpus) }
}

fn size(described: Result<Described, MachineError>) -> (usize, usize, u64) {
    let machine = described.unwrap().machine;
    (machine.nodes.len(), machine.cpus.len(), machine.memory_bytes() >> 20)
}

#[test]
fn a_guest_is_small_unless_its_size_is_given() {
    assert_eq!(size(request(None, None).describe_guest()), (1, 2, 1024));
    assert_eq!(size(request(Some("4"), None).describe_guest()), (4, 4, 4096));
    assert_eq!(size(like("x460", None).describe_guest()), (4, 8, 2048));
    assert_eq!(size(request(Some("2"), Some(8)).describe_guest()), (2, 8, 2048));
}

#[test]
fn a_program_gets_all_the_memory_of_a_known_machine() {
    let whole = size(like("x460", None).describe());
    assert_eq!(size(like("x460", None).describe_for_program()), whole);
    assert!(whole.2 > 2048, "{whole:?}");
}

#[test]
fn an_option_that_describes_no_machine_is_named_with_its_value() {
    let refused = |request: MachineRequest| request.describe().unwrap_err().to_string();
    let uneven = "--cpus 6: expected a multiple of 4, the nodes with cpus";
    assert_eq!(refused(like("x460", Some(6))), uneven);
    let lone = MachineRequest { memory: Some(1 << 30), ..request(None, None) };
    assert!(refused(lone).contains("expected --cpus as well"));
    let other = "--cpus 8: expected 4, the number in --emulate 1G:4,2G:0";
    assert_eq!(refused(request(Some("1G:4,2G:0"), Some(8))), other);
    assert!(request(Some("1G:4,2G:0"), Some(4)).describe().is_ok());
    assert!(refused(request(Some("1Q"), Some(2))).starts_with("--emulate 1Q: "));
    let large = refused(request(Some("1G:9999,2G:0"), None));
    assert!(large.starts_with("--emulate 1G:9999,2G:0: the nodes need 9999 cpus"), "{large}");
    assert!(large.ends_with("; expected a part of it, or --cpus N for a machine apart from it"));
    let source =
        |text: &str| MachineRequest { source: Some(text.to_owned()), ..request(None, None) };
    assert!(refused(source("dmi")).contains("`dmi`: expected sysfs, sysfs:DIR"));
    assert!(refused(like("cray-1", None)).contains("expected a file, or one of epyc-"));
}

#[test]
fn settings_of_a_study_name_a_made_machine_and_no_other() {
    let spec = request(Some("2"), Some(4)).guest_spec(GivenCosts::default(), &[]).unwrap();
    assert_eq!(
        (spec.settings["emulate"].as_str(), spec.settings["cpus"].as_u64()),
        (Some("2"), Some(4))
    );
    let here = request(None, None).guest_spec(GivenCosts::default(), &[]).unwrap_err();
    assert!(here.to_string().starts_with("--try-on guest for this machine: expected --emulate"));
}

#[test]
fn a_program_on_nodes_without_a_known_distance_is_emulated_with_a_note() {
    let with = |distances: &str| MachineRequest {
        distances: Some(distances.to_owned()),
        ..request(Some("2"), Some(2))
    };
    let notes = |request: MachineRequest| request.describe_for_program().unwrap().findings;
    assert_eq!(notes(with("10,20;20,10")), []);
    let unreachable = notes(with("10,255;255,10"));
    assert_eq!(unreachable.len(), 1, "{unreachable:?}");
    assert_eq!(unreachable[0].place, "node 0 to 1");
    assert!(unreachable[0].message.contains("(as for 1 more)"), "{unreachable:?}");
}

#[test]
fn a_machine_file_written_by_hand_is_read_with_its_contradictions() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("machine.toml");
    let read = |text: &str| {
        std::fs::write(&file, text).unwrap();
        MachineRequest { topology: Some(file.clone()), ..request(None, None) }.describe()
    };
    let text = "distances = [[20, 10], [10, 20]]\n[cpus]\nonline = \"0-3\"\n\
                [[node]]\nid = 0\ncpus = \"0,1\"\nmemory = \"1G\"\nfree = \"2G\"\n\
                [[node]]\nid = 1\ncpus = \"2\"\nmemory = \"1G\"\n";
    let codes: Vec<String> =
        read(text).unwrap().findings.into_iter().map(|finding| finding.code).collect();
    for expected in ["cpu-without-node", "distance-diagonal", "free-exceeds-memory"] {
        assert!(codes.iter().any(|code| code == expected), "{expected}: {codes:?}");
    }
    assert_eq!(read("[[node]]\nid = 0\ncpus = \"0\"\nmemory = \"1G\"\n").unwrap().findings, []);
    assert!(read("").unwrap_err().to_string().contains("expected a [[node]]"));
}

#[test]
fn a_machine_is_this_one_with_the_same_nodes_and_cpus() {
    let machine = |cpus| {
        let uniform = UniformMachine::of_packages(1, cpus, 1 << 30);
        uniform.build().expect("a machine")
    };
    assert!(is_like(&machine(4), &machine(4)) && !is_like(&machine(4), &machine(2)));
    let mut offline = machine(4);
    offline.cpus[3].online = false;
    assert_eq!(offline.cpus[3].id, CpuId(3));
    assert!(!is_like(&offline, &machine(4)));
}
