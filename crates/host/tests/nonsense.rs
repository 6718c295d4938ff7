//! Damaged and made-up sysfs trees.

mod tree;

use std::fs;

use numalab_host::{
    Classed, ErrorClass, MachineReading, MemoryLimit, Root, read_environment,
    read_machine_and_devices,
};
use numalab_topology::{Distances, Finding, NodeId, Severity};
use proptest::prelude::*;
use tempfile::TempDir;
use tree::write;

/// Returns a tree with these files.
fn tree(files: &[(&str, &[u8])]) -> TempDir {
    let top = tempfile::tempdir().unwrap();
    for (path, bytes) in files {
        write(top.path(), path, bytes);
    }
    top
}

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";

/// Returns four cpus in two cores on two nodes, with one L2 cache per core.
fn machine_files() -> Vec<(String, Vec<u8>)> {
    let mut files = vec![
        (format!("{CPU}/online"), b"0-3\n".to_vec()),
        (format!("{NODE}/online"), b"0-1\n".to_vec()),
        (format!("{NODE}/node0/distance"), b"10 21\n".to_vec()),
        (format!("{NODE}/node1/distance"), b"21 10\n".to_vec()),
        ("sys/devices/system/memory/block_size_bytes".to_owned(), b"8000000\n".to_vec()),
        ("proc/meminfo".to_owned(), b"MemTotal: 2048 kB\nMemAvailable: 1024 kB\n".to_vec()),
    ];
    for node in 0..2 {
        let first = 2 * node;
        let pair = format!("{first}-{}\n", first + 1);
        let directory = format!("{NODE}/node{node}");
        files.push((format!("{directory}/cpulist"), pair.clone().into()));
        let meminfo = format!("Node {node} MemTotal: 1024 kB\nNode {node} MemFree: 512 kB\n");
        files.push((format!("{directory}/meminfo"), meminfo.into()));
        files.push((format!("{directory}/memory{node}/state"), b"online\n".to_vec()));
        // Only a node with memory has pages in a pool, and some tests remove the memory of node 1.
        let pool = format!("{directory}/hugepages/hugepages-64kB");
        let (total, free) = if node == 0 { ("4", "3") } else { ("0", "0") };
        files.push((format!("{pool}/nr_hugepages"), total.as_bytes().to_vec()));
        files.push((format!("{pool}/free_hugepages"), free.as_bytes().to_vec()));
        for cpu in first..first + 2 {
            let topology = format!("{CPU}/cpu{cpu}/topology");
            let package = format!("{node}\n");
            files.push((format!("{topology}/physical_package_id"), package.into()));
            files.push((format!("{topology}/core_cpus_list"), pair.clone().into()));
            files.push((format!("{topology}/package_cpus_list"), pair.clone().into()));
            let cache = format!("{CPU}/cpu{cpu}/cache/index2");
            files.push((format!("{cache}/level"), b"2\n".to_vec()));
            files.push((format!("{cache}/type"), b"Unified\n".to_vec()));
            files.push((format!("{cache}/size"), b"512K\n".to_vec()));
            files.push((format!("{cache}/shared_cpu_list"), pair.clone().into()));
        }
    }
    files
}

fn machine_tree() -> TempDir {
    let top = tempfile::tempdir().unwrap();
    for (path, bytes) in machine_files() {
        write(top.path(), &path, &bytes);
    }
    top
}

fn read(top: &TempDir) -> MachineReading {
    read_machine_and_devices(&Root::at(top.path())).unwrap()
}

fn codes(reading: &MachineReading) -> Vec<&str> {
    reading.findings.iter().map(|f| f.code.as_str()).collect()
}

#[test]
fn a_sound_tree_is_read_without_findings() {
    let reading = read(&machine_tree());
    assert_eq!(codes(&reading), Vec::<&str>::new());
    let machine = reading.machine;
    assert_eq!(machine.cores().len(), 2);
    assert_eq!(machine.packages().len(), 2);
    assert_eq!(machine.caches.len(), 2);
    assert_eq!(machine.ranges.len(), 2);
    assert_eq!(machine.distance(NodeId(0), NodeId(1)), Some(21));
    let node = machine.node(NodeId(1)).unwrap();
    assert_eq!((node.memory_bytes, node.free_bytes), (1 << 20, Some(1 << 19)));
    let pool = &machine.nodes[0].huge_pages[0];
    assert_eq!((pool.total, pool.free), (4, 3));
    assert_eq!(machine.allowed, None);
}

#[test]
fn a_directory_that_is_not_a_machine_is_bad_input() {
    let top = tree(&[("something", b"else")]);
    let error = read_machine_and_devices(&Root::at(top.path())).unwrap_err();
    assert_eq!(error.class(), ErrorClass::BadInput);
    assert!(error.to_string().contains("expected a directory that holds sys/ and proc/"));
    let error = read_machine_and_devices(&Root::at(top.path().join("none"))).unwrap_err();
    assert_eq!(error.class(), ErrorClass::BadInput);
    assert!(error.to_string().ends_with("/none: no such directory"), "{error}");
    let error = read_machine_and_devices(&Root::at(top.path().join("something"))).unwrap_err();
    assert!(error.to_string().contains("not a directory: unpack it (tar xf FILE)"), "{error}");
}

#[test]
fn a_part_of_a_tree_or_the_directory_around_it_is_refused_with_the_tree() {
    let top = tree(&[("host/sys/devices/system/cpu/cpu0/online", b"1\n")]);
    let host = top.path().join("host");
    for wrong in [top.path().to_owned(), host.join("sys"), host.join("sys/devices/system")] {
        let said = read_machine_and_devices(&Root::at(wrong)).unwrap_err().to_string();
        assert!(said.ends_with(&format!(", such as {}", host.display())), "{said}");
    }
}

#[test]
fn nonsense_is_reported_with_file_and_value() {
    let top = machine_tree();
    write(top.path(), &format!("{NODE}/node1/cpulist"), b"2-x\n");
    write(top.path(), &format!("{NODE}/node0/distance"), b"10 0\n");
    write(top.path(), &format!("{CPU}/cpu0/cache/index2/size"), b"huge\n");
    let reading = read(&top);
    let texts: Vec<String> = reading.findings.iter().map(ToString::to_string).collect();
    for expected in [
        "warning: sys/devices/system/node/node1/cpulist: `2-x`: expected a cpu list such as 0-3,8 [not-a-list]",
        "warning: sys/devices/system/node/node0/distance: `0`: expected a distance from 10 to 255 [distance-value]",
        "warning: sys/devices/system/cpu/cpu0/cache/index2/size: `huge`: expected a size such as 32K [cache-size]",
    ] {
        assert!(texts.iter().any(|text| text == expected), "{texts:#?}");
    }
    assert_eq!(reading.machine.distance(NodeId(0), NodeId(1)), None);
}

#[test]
fn nul_bytes_at_the_end_of_a_list_are_ignored() {
    let top = machine_tree();
    write(top.path(), &format!("{NODE}/node1/cpulist"), b"2-3\n\0\0\0");
    write(top.path(), &format!("{NODE}/online"), b"0-1\0");
    assert_eq!(codes(&read(&top)), Vec::<&str>::new());
}

#[test]
fn a_short_row_covers_the_online_nodes() {
    let top = machine_tree();
    write(top.path(), &format!("{NODE}/online"), b"1\n");
    write(top.path(), &format!("{NODE}/node1/distance"), b"10\n");
    let reading = read(&top);
    assert_eq!(codes(&reading), Vec::<&str>::new());
    assert_eq!(reading.machine.distance(NodeId(1), NodeId(1)), Some(10));
    assert_eq!(reading.machine.distance(NodeId(1), NodeId(0)), None);
    assert!(!reading.machine.nodes[0].online);
}

#[test]
fn memory_that_one_node_does_not_report_is_unknown_and_not_given_to_another() {
    let top = machine_tree();
    let known = read(&top).machine.nodes[0].memory_bytes;
    fs::remove_file(top.path().join(format!("{NODE}/node1/meminfo"))).unwrap();
    let reading = read(&top);
    assert_eq!(codes(&reading), ["no-meminfo"]);
    let nodes: Vec<_> =
        reading.machine.nodes.iter().map(|node| (node.memory_bytes, node.memory_unknown)).collect();
    assert_eq!(nodes, [(known, false), (0, true)]);
}

#[test]
fn online_cpus_of_no_node_are_noted() {
    let top = machine_tree();
    write(top.path(), &format!("{NODE}/node1/cpulist"), b"2\n");
    let reading = read(&top);
    assert_eq!(codes(&reading), ["cpu-without-node"]);
    assert_eq!(reading.machine.cpus[3].node, None);
}

#[test]
fn rows_too_short_or_too_long_are_findings() {
    for row in ["10", "21 10 30"] {
        let top = machine_tree();
        write(top.path(), &format!("{NODE}/node1/distance"), row.as_bytes());
        assert!(codes(&read(&top)).contains(&"distance-row-length"), "{row}");
    }
}

#[test]
fn a_cpu_that_two_nodes_claim_belongs_to_the_first() {
    let top = machine_tree();
    write(top.path(), &format!("{NODE}/node1/cpulist"), b"1-3\n");
    let reading = read(&top);
    assert_eq!(codes(&reading), ["cpu-in-two-nodes"]);
    assert_eq!(reading.machine.cpus[1].node, Some(NodeId(0)));
    assert_eq!(reading.machine.nodes[1].cpus.to_string(), "2,3");
}

#[test]
fn siblings_that_contradict_each_other_are_findings() {
    let top = machine_tree();
    let path = format!("{CPU}/cpu2/topology/core_cpus_list");
    write(top.path(), &path, b"0,2\n");
    let reading = read(&top);
    assert!(codes(&reading).contains(&"siblings-contradict"));
    assert_eq!(reading.machine.cores().len(), 3);
}

#[test]
fn caches_with_unknown_sharing_are_one_finding_per_level() {
    let top = machine_tree();
    for cpu in 0..4 {
        let cache = format!("{CPU}/cpu{cpu}/cache/index2");
        fs::remove_file(top.path().join(format!("{cache}/shared_cpu_list"))).unwrap();
    }
    let reading = read(&top);
    assert_eq!(codes(&reading), ["cache-sharing-unknown"]);
    let said = &reading.findings[0].message;
    assert!(
        said.contains("level 2 caches of cpus 0-3: assumed to be the cpus of each core"),
        "{said}"
    );
}

#[test]
fn a_copied_tree_has_the_restrictions_of_the_process_that_it_shows() {
    let top = machine_tree();
    let status = b"Cpus_allowed_list:\t1,3,9\nMems_allowed_list:\t0\n";
    write(top.path(), "proc/self/status", status);
    write(top.path(), &format!("{CPU}/isolated"), b"2-3\n");
    let machine = read(&top).machine;
    assert_eq!(machine.usable_cpus().to_string(), "1,3");
    assert_eq!(machine.usable_memory_nodes().to_string(), "0");
    assert_eq!(machine.allowed.unwrap().isolated.to_string(), "2");
    let all = b"Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0-3\n";
    write(top.path(), "proc/self/status", all);
    assert_eq!(read(&top).machine.allowed, None, "nothing is restricted");
}

#[test]
fn cpus_that_a_container_hides_are_on_their_nodes_and_not_usable() {
    let top = machine_tree();
    for cpu in [2, 3] {
        fs::remove_dir_all(top.path().join(format!("{CPU}/cpu{cpu}"))).unwrap();
    }
    write(top.path(), &format!("{CPU}/online"), b"0-1\n");
    write(top.path(), "proc/self/status", b"Cpus_allowed_list:\t0-1\n");
    let reading = read(&top);
    assert!(codes(&reading).contains(&"cpus-hidden"), "{:?}", reading.findings);
    assert!(!codes(&reading).contains(&"cpu-without-directory"), "{:?}", reading.findings);
    assert_eq!(reading.machine.nodes[1].cpus.to_string(), "2,3");
    assert_eq!(reading.machine.usable_cpus().to_string(), "0,1");
    // A process that may use them would see them, so the tree is incomplete.
    write(top.path(), "proc/self/status", b"Cpus_allowed_list:\t0-3\n");
    let reading = read(&top);
    assert!(codes(&reading).contains(&"cpu-without-directory"), "{:?}", reading.findings);
    assert!(reading.machine.nodes[1].cpus.is_empty());
}

#[test]
fn nodes_without_distances_are_a_note() {
    let top = machine_tree();
    fs::remove_file(top.path().join(format!("{NODE}/node1/distance"))).unwrap();
    let reading = read(&top);
    assert_eq!(codes(&reading), ["distances-missing"]);
    assert!(reading.findings[0].message.contains("`distance`: 1;"), "{:?}", reading.findings);
    assert_eq!(reading.machine.distance(NodeId(0), NodeId(1)), Some(21));
    fs::remove_file(top.path().join(format!("{NODE}/node0/distance"))).unwrap();
    let reading = read(&top);
    assert_eq!(codes(&reading), ["distances-missing"]);
    assert_eq!(reading.machine.distances, Distances::default());
}

#[test]
fn cpus_with_topology_are_online_whatever_a_stale_list_says() {
    let top = machine_tree();
    write(top.path(), &format!("{CPU}/online"), b"0\n");
    write(top.path(), "proc/self/status", b"Cpus_allowed_list:\t0-3\n");
    let reading = read(&top);
    assert_eq!(codes(&reading), ["online-contradicts-affinity"]);
    assert_eq!(reading.machine.online_cpus().to_string(), "0-3");
    // The kernel removes the topology of offline cpus, and a mask that includes them proves nothing.
    for cpu in 1..4 {
        fs::remove_dir_all(top.path().join(format!("{CPU}/cpu{cpu}/topology"))).unwrap();
    }
    let reading = read(&top);
    assert!(!codes(&reading).contains(&"online-contradicts-affinity"), "{:?}", reading.findings);
    assert_eq!(reading.machine.online_cpus().to_string(), "0");
}

#[test]
fn a_tree_of_nodes_alone_has_the_cpus_that_they_list() {
    let top = machine_tree();
    fs::remove_dir_all(top.path().join(CPU)).unwrap();
    let reading = read(&top);
    assert_eq!(codes(&reading), ["no-cpu-directories"]);
    assert_eq!(reading.machine.nodes[1].cpus.to_string(), "2,3");
    assert_eq!((reading.machine.cpus.len(), reading.machine.cores().len()), (4, 0));
}

#[test]
fn a_node_with_blocks_and_no_memory_has_all_of_it_offline() {
    let top = machine_tree();
    write(top.path(), &format!("{NODE}/node1/meminfo"), b"Node 1 MemTotal: 0 kB\n");
    write(top.path(), &format!("{NODE}/node1/memory1/state"), b"offline\n");
    let findings = read(&top).findings;
    let found = findings.iter().find(|finding| finding.code == "memory-offline");
    assert!(found.is_some_and(|of| of.message.starts_with("128 MiB are offline")), "{findings:?}");
}

#[test]
fn a_distance_below_that_of_a_node_to_itself_is_unknown() {
    let top = machine_tree();
    write(top.path(), &format!("{NODE}/node0/distance"), b"10 9\n");
    let reading = read(&top);
    assert_eq!(reading.machine.distance(NodeId(0), NodeId(1)), None);
    assert_eq!(codes(&reading), ["distance-value"]);
}

#[test]
fn a_virtual_machine_with_one_node_gets_a_note_that_its_host_may_have_more() {
    let top = machine_tree();
    let flags = |words: &str| format!("processor\t: 0\nflags\t\t: fpu{words} sse\n").into_bytes();
    write(top.path(), "proc/cpuinfo", flags(" hypervisor"));
    assert_eq!(codes(&read(&top)), [""; 0], "it has two nodes");
    fs::remove_dir_all(top.path().join(NODE)).unwrap();
    assert!(codes(&read(&top)).contains(&"guest-of-one-node"));
    write(top.path(), "proc/cpuinfo", flags(""));
    assert!(!codes(&read(&top)).contains(&"guest-of-one-node"));
    write(top.path(), "sys/class/dmi/id/sys_vendor", b"QEMU\n");
    assert!(codes(&read(&top)).contains(&"guest-of-one-node"), "ARM has no flag");
}

#[test]
fn packages_with_one_node_are_a_note_with_the_cause() {
    let top = machine_tree();
    assert!(!codes(&read(&top)).contains(&"packages-of-one-node"), "it has two nodes");
    fs::remove_dir_all(top.path().join(format!("{NODE}/node1"))).unwrap();
    write(top.path(), &format!("{NODE}/node0/cpulist"), b"0-3\n");
    let said = |top: &TempDir| {
        let findings = read(top).findings;
        let found = findings.into_iter().find(|finding| finding.code == "packages-of-one-node");
        found.map_or_else(String::new, |finding| finding.message)
    };
    assert!(said(&top).starts_with("2 packages have one node: their memory"), "{}", said(&top));
    write(top.path(), "proc/cmdline", b"quiet numa=off\n");
    assert!(said(&top).contains("numa=off hides the others"), "{}", said(&top));
}

#[test]
fn a_cache_mask_of_zeros_does_not_count_the_cache_twice() {
    let top = machine_tree();
    for cpu in 0..4 {
        let cache = format!("{CPU}/cpu{cpu}/cache/index2");
        fs::remove_file(top.path().join(format!("{cache}/shared_cpu_list"))).unwrap();
        write(top.path(), &format!("{cache}/shared_cpu_map"), b"00000000\n");
    }
    let reading = read(&top);
    let shared: Vec<String> =
        reading.machine.caches.iter().map(|cache| cache.cpus.to_string()).collect();
    assert_eq!(shared, ["0,1", "2,3"]);
    assert!(codes(&reading).contains(&"cache-sharing-unknown"));
}

#[test]
fn the_cpus_of_a_node_that_is_gone_are_not_given_to_another() {
    let top = machine_tree();
    // Node 0 with its cpus is offline, and its directory gone.
    fs::remove_dir_all(top.path().join(format!("{NODE}/node0"))).unwrap();
    write(top.path(), &format!("{NODE}/online"), b"1\n");
    write(top.path(), &format!("{NODE}/possible"), b"0-1\n");
    write(top.path(), &format!("{CPU}/online"), b"2-3\n");
    let machine = read(&top).machine;
    assert_eq!(machine.nodes[0].cpus.to_string(), "2,3");
    assert_eq!(machine.cpus[0].node, None);
}

#[test]
fn a_list_and_a_mask_that_disagree_are_a_finding_and_the_list_counts() {
    let top = machine_tree();
    write(top.path(), &format!("{NODE}/node0/cpumap"), b"0000000f\n");
    let reading = read(&top);
    assert_eq!(reading.machine.nodes[0].cpus.to_string(), "0,1");
    let found = reading.findings.iter().find(|finding| finding.code == "cpu-sets-contradict");
    assert!(found.unwrap().message.contains("`0-3`, but cpulist says `0,1`"), "{found:?}");
}

#[test]
fn similar_findings_are_counted() {
    let top = machine_tree();
    for cpu in 4..204 {
        write(top.path(), &format!("{CPU}/cpu{cpu}/online"), b"maybe\n");
    }
    let findings = read(&top).findings;
    let alike: Vec<_> = findings.iter().filter(|finding| finding.code == "not-a-number").collect();
    assert_eq!(alike.len(), 9);
    assert_eq!(alike[8].message, "192 more like it");
}

#[test]
fn an_offline_cpu_is_kept_with_its_node() {
    let top = machine_tree();
    write(top.path(), &format!("{CPU}/online"), b"0-2\n");
    write(top.path(), &format!("{CPU}/cpu3/online"), b"0\n");
    write(top.path(), &format!("{NODE}/node1/cpulist"), b"2\n");
    for name in ["core_cpus_list", "package_cpus_list"] {
        let path = format!("{CPU}/cpu2/topology/{name}");
        write(top.path(), &path, b"2\n");
    }
    fs::create_dir(top.path().join(format!("{NODE}/node1/cpu3"))).unwrap();
    fs::remove_dir_all(top.path().join(format!("{CPU}/cpu3/topology"))).unwrap();
    let machine = read(&top).machine;
    assert!(!machine.cpus[3].online);
    assert_eq!(machine.cpus[3].node, Some(NodeId(1)));
    assert_eq!(machine.cpus[3].core, None);
    assert_eq!(machine.online_cpus().to_string(), "0-2");
}

#[test]
fn a_machine_without_node_directories_is_one_node() {
    let top = machine_tree();
    fs::remove_dir_all(top.path().join(NODE)).unwrap();
    let reading = read(&top);
    assert_eq!(codes(&reading), ["no-nodes"]);
    assert_eq!(reading.machine.nodes.len(), 1);
    assert_eq!(reading.machine.nodes[0].cpus.to_string(), "0-3");
    assert_eq!(reading.machine.nodes[0].memory_bytes, 2 << 20);
    assert_eq!(reading.machine.distance(NodeId(0), NodeId(0)), Some(10));
}

/// Returns the memory of each node in MiB on a kernel that counts memory on first use, and the
/// severity of the finding.
fn lazily_counted(top: &TempDir, machine_mib: u64) -> (Severity, Vec<u64>) {
    let text = format!("MemTotal: {} kB\nMemFree: 1024 kB\n", machine_mib << 10);
    write(top.path(), "proc/meminfo", text.as_bytes());
    let reading = read(top);
    assert_eq!(codes(&reading), ["node-memory-understated"]);
    let memory = reading.machine.nodes.iter().map(|node| node.memory_bytes >> 20);
    (reading.findings[0].severity, memory.collect())
}

#[test]
fn nodes_that_omit_memory_get_their_share_of_the_machines_and_it_is_reported() {
    let top = machine_tree();
    write(top.path(), &format!("{NODE}/node1/memory2/state"), b"online\n");
    let (severity, memory) = lazily_counted(&top, 300);
    assert_eq!(memory, [100, 200], "as three blocks are shared");
    assert_eq!(severity, Severity::Note, "commands do not warn of what they know");
    let (severity, memory) = lazily_counted(&top, 3_000);
    assert_eq!(memory, [1, 1], "more than blocks hold: unknown");
    assert_eq!(severity, Severity::Warning);
}

#[test]
fn the_only_node_with_memory_has_all_of_it() {
    let top = machine_tree();
    write(top.path(), &format!("{NODE}/node1/meminfo"), b"Node 1 MemTotal: 0 kB\n");
    assert_eq!(lazily_counted(&top, 3_000), (Severity::Note, vec![3_000, 0]));
    assert_eq!(read(&top).machine.nodes[0].free_bytes, Some(1 << 20));
}

#[test]
fn a_list_of_online_cpus_without_the_processs_is_ignored() {
    let top = machine_tree();
    write(top.path(), &format!("{CPU}/online"), b"0\n");
    write(top.path(), "proc/self/status", b"Cpus_allowed_list:\t3\nMems_allowed_list:\t0-1\n");
    let reading = read(&top);
    assert_eq!(reading.machine.online_cpus().to_string(), "0-3");
    assert!(codes(&reading).contains(&"online-contradicts-affinity"), "{:?}", reading.findings);
}

#[test]
fn memory_of_a_node_without_a_directory_is_not_given_to_another_one() {
    let top = machine_tree();
    fs::remove_dir_all(top.path().join(NODE).join("node0")).unwrap();
    write(top.path(), "proc/meminfo", b"MemTotal: 3072000 kB\nMemFree: 1024 kB\n");
    let reading = read(&top);
    let memory: Vec<u64> =
        reading.machine.nodes.iter().map(|node| node.memory_bytes >> 20).collect();
    assert_eq!(memory, [1], "{:?}", reading.findings);
    assert!(codes(&reading).contains(&"node-memory-understated"), "{:?}", reading.findings);
}

#[test]
fn huge_ids_are_ignored() {
    let top = machine_tree();
    for path in [
        format!("{CPU}/cpu4294967295/online"),
        format!("{CPU}/cpu99999999999999999999/online"),
        format!("{NODE}/node4294967295/cpulist"),
        format!("{NODE}/node0/memory4294967295/state"),
    ] {
        write(top.path(), &path, b"1\n");
    }
    let machine = read(&top).machine;
    assert_eq!((machine.cpus.len(), machine.nodes.len()), (4, 2));
}

#[test]
fn pipes_and_devices_are_findings_and_do_not_block() {
    let top = machine_tree();
    let path = top.path().join(format!("{NODE}/node1/cpulist"));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(codes(&read(&top)).contains(&"file-unreadable"));
}

#[test]
fn endless_files_are_read_to_a_bound() {
    let top = machine_tree();
    let digits = "1,".repeat(8 << 20);
    write(top.path(), &format!("{NODE}/node1/cpulist"), digits.as_bytes());
    write(top.path(), &format!("{NODE}/node0/distance"), digits.as_bytes());
    let reading = read(&top);
    assert!(!reading.findings.is_empty());
    assert!(reading.findings.iter().all(|f| f.message.len() < 300));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Cuts or replaces one file of a sound tree; the rest is still read.
    #[test]
    fn any_damage_to_one_file_is_survived(
        file in any::<prop::sample::Index>(),
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..80),
            "[0-9a-fx,.:kKmB\\- \n\0]{0,60}".prop_map(String::into_bytes),
            Just(b"18446744073709551615".to_vec()),
            Just(b"0-4294967295".to_vec()),
            Just(b"ffffffff,".repeat(5000)),
        ],
    ) {
        let top = machine_tree();
        let files = machine_files();
        let (path, _) = file.get(&files);
        write(top.path(), path, &bytes);
        let root = Root::at(top.path());
        let reading = read_machine_and_devices(&root).unwrap();
        prop_assert_eq!(reading.machine.cpus.len(), 4);
        prop_assert_eq!(reading.machine.nodes.len(), 2);
        let _ = MemoryLimit::read(&root);
        let _ = read_environment(&root);
    }

    /// Cuts every file of a sound tree after the same number of bytes.
    #[test]
    fn a_tree_cut_short_everywhere_is_survived(length in 0_usize..40) {
        let top = tempfile::tempdir().unwrap();
        for (path, bytes) in machine_files() {
            write(top.path(), &path, &bytes[..length.min(bytes.len())]);
        }
        prop_assert_eq!(read(&top).machine.cpus.len(), 4);
    }
}

#[test]
fn a_file_that_is_read_twice_is_reported_once() {
    let node = |number: u32| format!("{NODE}/node{number}/cpulist");
    let top = tree(&[(&node(0), b"0-3,foo"), (&node(1), b"4-7")]);
    let is_list = |finding: &&Finding| finding.code == "not-a-list";
    assert_eq!(read(&top).findings.iter().filter(is_list).count(), 1);
}
