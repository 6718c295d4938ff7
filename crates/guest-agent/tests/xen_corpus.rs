//! The output of Xen's tools on machines that were booted for this purpose (`corpus/xen`), read in
//! place (`NUMALAB_CORPUS`).
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use numalab_guest_agent::xen::text::{XenDump, read_list, read_vcpus, srat_ranges, xen_info};
use numalab_topology::NodeId;

/// Returns a log of the corpus with lines separated by `\n`, or `None`, with a message on stderr,
/// if it is absent.
fn log(name: &str) -> Option<String> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let corpus = std::env::var_os("NUMALAB_CORPUS").map_or_else(|| default.into(), PathBuf::from);
    let path = corpus.join("xen/samples").join(name);
    let Ok(bytes) = fs::read(&path) else {
        eprintln!("NOT RUN: no {}; NUMALAB_CORPUS names the corpus", path.display());
        return None;
    };
    Some(String::from_utf8_lossy(&bytes).replace('\r', ""))
}

#[test]
fn a_dump_of_sixteen_domains_has_every_frame_on_its_node() {
    let Some(text) = log("d16-list-on.log") else { return };
    // Before the domains were destroyed again.
    let end = text.find("##### go").unwrap();
    let dump = XenDump::read(&text[..end]);
    assert_eq!(dump.domains.len(), 17);
    for id in 1..=16 {
        let home = NodeId((id - 1) % 4);
        let frames = dump.pages_of(id).unwrap();
        let elsewhere: u64 =
            frames.iter().filter(|(node, _)| **node != home).map(|(_, count)| count).sum();
        assert_eq!((frames[&home], elsewhere), (32_768, 0), "domain {id}");
    }
}

#[test]
fn every_total_of_every_dump_is_the_sum_of_its_nodes() {
    for name in ["d4-list-on.log", "d8-list-on.log", "d8-list-off.log", "place.log", "pvh.log"] {
        let Some(text) = log(name) else { return };
        let dump = XenDump::read(&text);
        assert!(!dump.domains.is_empty(), "{name}: no dump");
        let last = &text[text.rfind("dumping numa info").unwrap()..];
        for domain in &dump.domains {
            let sum: u64 = domain.pages_by_node.values().sum();
            let id = domain.domain;
            assert!(last.contains(&format!("Domain {id} (total: {sum})")), "{name}: domain {id}");
        }
    }
}

#[test]
fn the_topology_that_a_hypervisor_exports_is_read() {
    let Some(text) = log("info-numa-on.log") else { return };
    let info = xen_info(&text);
    let expected: BTreeMap<u32, u32> = (0..8).map(|cpu| (cpu, cpu / 2)).collect();
    assert_eq!(info.cpu_nodes, expected);
    assert_eq!(info.nodes[&2], (1024, vec![20, 22, 10, 12]));
    assert_eq!(info.version, "4.17.7");
    let lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    let ranges = srat_ranges(&lines);
    assert!(ranges.iter().any(|range| (range.node, range.end) == (3, 0x1_8000_0000)));
}

#[test]
fn domains_and_their_virtual_cpus_are_listed() {
    let Some(text) = log("d8-list-on.log") else { return };
    let start = text.find("##### xl list -n").unwrap();
    let middle = text.find("##### xl vcpu-list").unwrap();
    let end = text.find("##### debug-keys u").unwrap();
    let domains = read_list(&text[start..middle]);
    assert_eq!(domains.len(), 9);
    assert_eq!(domains[4].name, "d4");
    assert_eq!(domains[4].nodes.as_ref().unwrap().to_string(), "3");
    let cpus = read_vcpus(&text[middle..end]);
    assert_eq!(cpus.len(), 10);
    let on_6_and_7 = "6-7".parse().unwrap();
    assert!(cpus.iter().any(|vcpu| vcpu.domain == 8 && vcpu.hard.as_ref() == Some(&on_6_and_7)));
}
