//! Trees of machines shaped by sandboxes, hypervisors and boot options.

mod tree;

use std::path::Path;

use numalab_host::{MachineReading, Root, read_machine};
use tempfile::TempDir;
use tree::write;

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";

/// Nodes with these cpus and rows of distances; a core for each cpu.
fn machine(nodes: &[(&str, &str)], cpus: u32) -> TempDir {
    let top = tempfile::tempdir().expect("made");
    for (node, (cpus, row)) in nodes.iter().enumerate() {
        let directory = format!("{NODE}/node{node}");
        write(top.path(), &format!("{directory}/cpulist"), cpus);
        write(top.path(), &format!("{directory}/distance"), row);
        let meminfo = format!("Node {node} MemTotal: 2048 kB\n");
        write(top.path(), &format!("{directory}/meminfo"), meminfo);
    }
    write(top.path(), "proc/meminfo", format!("MemTotal: {} kB\n", 2048 * nodes.len()));
    for cpu in 0..cpus {
        let topology = format!("{CPU}/cpu{cpu}/topology/core_cpus_list");
        write(top.path(), &topology, cpu.to_string());
    }
    top
}

fn read(top: &Path) -> MachineReading {
    read_machine(&Root::at(top)).expect("a machine")
}

fn said(reading: &MachineReading) -> Vec<String> {
    reading.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn an_l3_group_over_two_nodes_is_noted_once() {
    let top = machine(&[("0-1", "10 20"), ("2-3", "20 10")], 4);
    for cpu in 0..4 {
        let cache = format!("{CPU}/cpu{cpu}/cache/index3");
        for (file, value) in [("level", "3"), ("type", "Unified"), ("shared_cpu_list", "0-3")] {
            write(top.path(), &format!("{cache}/{file}"), value);
        }
    }
    let expected = "note: L3 group 0: its cpus 0-3 are on nodes 0,1, so its cache is shared across \
                    them [l3-group-spans-nodes]";
    assert_eq!(said(&read(top.path())), [expected]);
}

#[test]
fn a_mask_of_other_cpus_than_the_tree_has_is_ignored_with_a_warning() {
    let top = machine(&[("0-3", "10")], 4);
    let status = |mask: &str| format!("Cpus_allowed_list:\t{mask}\nMems_allowed_list:\t0\n");
    write(top.path(), "proc/self/status", status("40-43"));
    let reading = read(top.path());
    assert_eq!(reading.machine.usable_cpus().to_string(), "0-3");
    let expected = "warning: proc/self/status: none of the online cpus may be used: the mask is \
                    ignored [affinity-of-other-cpus]";
    assert_eq!(said(&reading), [expected]);
    write(top.path(), "proc/self/status", status("2"));
    assert_eq!(read(top.path()).machine.usable_cpus().to_string(), "2");
}

#[test]
fn a_list_of_other_nodes_than_the_tree_has_is_ignored_with_a_warning_and_an_empty_one_is_unknown() {
    let top = machine(&[("0-1", "10 20"), ("2-3", "20 10")], 4);
    let with = |nodes: &str| {
        let status = format!("Cpus_allowed_list:\t0-3\nMems_allowed_list:\t{nodes}\n");
        write(top.path(), "proc/self/status", &status);
        read(top.path())
    };
    let reading = with("5");
    assert_eq!(reading.machine.allowed, None);
    let expected = "warning: proc/self/status: memory of nodes 5 is allowed, but only nodes 0,1 have \
                    memory: the list is ignored [mems-of-other-nodes]";
    assert_eq!(said(&reading), [expected]);
    let reading = with("");
    assert_eq!((reading.machine.allowed.clone(), said(&reading)), (None, Vec::new()));
    assert_eq!(with("1").machine.usable_memory_nodes().to_string(), "1");
}

#[test]
fn packages_that_share_cores_are_taken_as_one() {
    let top = machine(&[("0-1,4-5", "10 20"), ("2-3,6-7", "20 10")], 8);
    for cpu in 0..8_u32 {
        let (first, package) = (cpu % 4, cpu / 2);
        let topology = format!("{CPU}/cpu{cpu}/topology");
        let write =
            |file: &str, value: String| write(top.path(), &format!("{topology}/{file}"), value);
        write("core_cpus_list", format!("{first},{}", first + 4));
        write("package_cpus_list", format!("{}-{}", 2 * package, 2 * package + 1));
        write("physical_package_id", package.to_string());
    }
    let reading = read(top.path());
    let packages = reading.machine.packages();
    let packages: Vec<String> = packages.iter().map(|of| of.cpus.to_string()).collect();
    assert_eq!(packages, ["0,1,4,5", "2,3,6,7"]);
    let said = said(&reading);
    assert!(said.len() == 1 && said[0].ends_with("[core-spans-packages]"), "{said:?}");
}

#[test]
fn without_sysfs_cpus_cores_and_packages_come_from_cpuinfo() {
    let top = tempfile::tempdir().expect("made");
    let entry = |cpu: u32| {
        let (package, core) = (cpu % 2, cpu / 2 % 2);
        format!("processor : {cpu}\nphysical id : {package}\ncore id : {core}\n\n")
    };
    write(top.path(), "proc/cpuinfo", (0..8).map(entry).collect::<String>());
    write(top.path(), "proc/meminfo", "MemTotal: 4096 kB\n");
    let reading = read(top.path());
    assert_eq!(
        said(&reading),
        [
            "warning: sys/devices/system/cpu: no cpu directories: cpus, cores and packages are \
             from proc/cpuinfo; caches and nodes are unknown [no-cpu-directories]",
            "note: sys/devices/system/node: no node directories: the machine is assumed to have one node \
             [no-nodes]"
        ]
    );
    let machine = reading.machine;
    assert_eq!((machine.cpus.len(), machine.packages().len(), machine.cores().len()), (8, 2, 4));
    assert_eq!(machine.cores()[0].cpus.to_string(), "0,4");
    assert_eq!(machine.nodes[0].cpus.to_string(), "0-7");
    assert_eq!(machine.nodes[0].memory_bytes, 4 << 20);
    // As on arm64 and POWER.
    write(top.path(), "proc/cpuinfo", "processor : 0\n\nprocessor : 1\n");
    let expected = "cpus are from proc/cpuinfo; cores, packages, caches and nodes are unknown";
    assert!(said(&read(top.path()))[0].contains(expected), "{:?}", said(&read(top.path())));
}

#[test]
fn what_a_bundle_without_sysfs_lacks_is_said() {
    let top = tempfile::tempdir().expect("made");
    let entry = |cpu: u32| {
        let (package, core) = (cpu / 4, cpu % 4);
        format!("processor : {cpu}\nphysical id : {package}\nsiblings : 4\ncore id : {core}\n\n")
    };
    write(top.path(), "proc/cpuinfo", (0..7).map(entry).collect::<String>());
    write(top.path(), "proc/meminfo", "MemTotal: 4096 kB\n");
    let list = "Node 0, zone      DMA      1      0\nNode 0, zone   Normal    216     55\n\
                Node 1, zone   Normal     10      5\n";
    write(top.path(), "proc/buddyinfo", list);
    let said = said(&read(top.path()));
    let [_, cut, nodes] = &said[..] else { panic!("{said:?}") };
    assert!(cut.contains("proc/cpuinfo: package 1 has 3 of its 4 cpus (`siblings`)"), "{cut}");
    assert!(
        nodes.starts_with("warning:") && nodes.contains("buddyinfo names nodes 0,1"),
        "{nodes}"
    );
}

#[test]
fn a_status_with_masks_alone_restricts_as_one_with_lists() {
    let top = machine(&[("0-1", "10 20"), ("2-3", "20 10")], 4);
    let masks = "Cpus_allowed:\t00000000,0000000a\nMems_allowed:\t00000002\n";
    write(top.path(), "proc/self/status", masks);
    let allowed = read(top.path()).machine.allowed.expect("a part");
    let found = [allowed.cpus.to_string(), allowed.memory_nodes.to_string()];
    assert_eq!(found, ["1,3", "1"]);
}

#[test]
fn nodes_whose_list_could_not_be_copied_are_online() {
    let top = tempfile::tempdir().expect("made");
    write(top.path(), "sys/devices/system/node/online", "");
    write(top.path(), "sys/devices/system/cpu/cpu0/topology/core_cpus_list", "0\n");
    write(top.path(), "sys/devices/system/node/node0/cpulist", "0\n");
    assert!(read(top.path()).machine.nodes[0].online);
}

#[test]
fn nodes_as_near_to_each_other_as_to_themselves_are_noted() {
    let top = tempfile::tempdir().expect("made");
    for node in 0..2 {
        let directory = format!("sys/devices/system/node/node{node}");
        write(top.path(), &format!("{directory}/cpulist"), format!("{node}\n"));
        write(top.path(), &format!("{directory}/distance"), "10 10\n");
        let core = format!("sys/devices/system/cpu/cpu{node}/topology/core_cpus_list");
        write(top.path(), &core, format!("{node}\n"));
    }
    write(top.path(), "proc/cmdline", "ro numa=fake=2\n");
    let expected = "note: sys/devices/system/node: nodes 0,1 are at distance 10 from each other, like \
                    parts of one node: the kernel option numa=fake created them [nodes-equally-near]";
    assert!(
        said(&read(top.path())).contains(&expected.to_owned()),
        "{:?}",
        said(&read(top.path()))
    );
}

#[test]
fn transparent_huge_pages_of_another_size_are_noted() {
    let top = machine(&[("0-1", "10")], 2);
    let file = "sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
    write(top.path(), file, "2097152\n");
    assert_eq!(said(&read(top.path())), Vec::<String>::new());
    write(top.path(), file, "536870912\n");
    let expected = "note: sys/kernel/mm/transparent_hugepage: transparent huge pages have 512m: a \
                    smaller buffer gets no huge page [page-sizes]";
    assert_eq!(said(&read(top.path())), [expected]);
    write(top.path(), "proc/self/smaps", "KernelPageSize:       64 kB\n");
    let found = said(&read(top.path()));
    assert!(found[0].contains("have 512m and base pages 64k: a smaller"), "{found:?}");
}

#[test]
fn isolated_cpus_of_a_tree_are_noted() {
    let top = machine(&[("0-3", "10")], 4);
    write(top.path(), &format!("{CPU}/isolated"), "2-3\n");
    let expected = "note: sys/devices/system/cpu/isolated: cpus 2,3 are isolated: only threads \
                    pinned to them run there [cpus-isolated]";
    assert_eq!(said(&read(top.path())), [expected]);
    write(top.path(), &format!("{CPU}/isolated"), "\n");
    assert_eq!(said(&read(top.path())), Vec::<String>::new());
}

#[test]
fn nodes_of_numa_fake_share_their_cpus_and_it_is_noted_once() {
    let rows = ["10 10 21", "10 10 21", "21 21 10"];
    let top = machine(&[("0-1", rows[0]), ("0-1", rows[1]), ("2", rows[2])], 3);
    write(top.path(), "proc/cmdline", "root=/dev/vda1 numa=fake=2U\n");
    let reading = read(top.path());
    let expected = "note: sys/devices/system/node: nodes 0,1 have the same cpus at distance 10 from each \
                    other, so these are local to each of them: the kernel option numa=fake created them \
                    [nodes-share-cpus]";
    assert_eq!(said(&reading), [expected]);
    let machine = reading.machine;
    let cpus: Vec<String> = machine.nodes.iter().map(|node| node.cpus.to_string()).collect();
    assert_eq!(cpus, ["0,1", "0,1", "2"]);
    assert_eq!(machine.cpu_nodes().to_string(), "0-2");
    let codes: Vec<String> = machine.validate().into_iter().map(|found| found.code).collect();
    assert_eq!(codes, ["distance-local-remote", "distance-local-remote"]);
}

#[test]
fn nodes_of_numa_fake_without_cpus_share_those_of_the_node_that_they_are_parts_of() {
    let rows = ["10 10 21 21", "10 10 21 21", "21 21 10 10", "21 21 10 10"];
    let top = machine(&[("0-1", rows[0]), ("", rows[1]), ("2", rows[2]), ("", rows[3])], 3);
    let cpus = || -> Vec<String> {
        read(top.path()).machine.nodes.iter().map(|node| node.cpus.to_string()).collect()
    };
    assert_eq!(cpus(), ["0,1", "", "2", ""], "without the option it may be memory of a device");
    write(top.path(), "proc/cmdline", "quiet numa=fake=4\n");
    assert_eq!(cpus(), ["0,1", "0,1", "2", "2"]);
    let reading = read(top.path());
    let notes = said(&reading);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[1].contains("nodes 2,3 have the same cpus at distance 10"), "{notes:?}");
}

#[test]
fn nodes_apart_that_list_the_same_cpus_do_not_share_them() {
    let top = machine(&[("0-1", "10 21"), ("0-1", "21 10")], 2);
    let reading = read(top.path());
    assert!(said(&reading)[0].ends_with("[cpu-in-two-nodes]"), "{:?}", said(&reading));
    assert!(reading.machine.nodes[1].cpus.is_empty());
}

#[test]
fn unreachable_nodes_are_noted_and_do_not_count_as_a_cost() {
    let rows = ["10 255 21", "255 10 21", "21 21 10"];
    let top = machine(&[("0", rows[0]), ("1", rows[1]), ("2", rows[2])], 3);
    let reading = read(top.path());
    let expected = "note: node 0 to 1: is 255, which means unreachable memory, not a \
                    distance; 1 other pair is like it [distance-unreachable]";
    assert_eq!(said(&reading), [expected]);
    let [zero, one, two] = [0, 1, 2].map(numalab_topology::NodeId);
    assert_eq!(reading.machine.distance(zero, one), Some(255));
    assert_eq!(reading.machine.cost_distance(zero, one), None);
    assert_eq!(reading.machine.cost_distance(zero, two), Some(21));
}

#[test]
fn a_tree_without_the_topology_of_its_cpus_says_that_cores_are_unknown() {
    let top = machine(&[("0-1", "10")], 2);
    for cpu in 0..2 {
        std::fs::remove_dir_all(top.path().join(format!("{CPU}/cpu{cpu}/topology"))).unwrap();
    }
    let expected = "note: sys/devices/system/cpu: no cpu lists the others of its core: cores \
                    and packages are unknown [cores-unknown]";
    assert_eq!(said(&read(top.path())), [expected]);
}

#[test]
fn a_node_whose_meminfo_was_copied_empty_has_unknown_memory_and_says_so() {
    let top = machine(&[("0-1", "10 20"), ("2-3", "20 10")], 4);
    write(top.path(), &format!("{NODE}/node1/meminfo"), "");
    let reading = read(top.path());
    assert!(reading.machine.nodes[1].memory_unknown);
    let expected = "note: sys/devices/system/node/node1/meminfo: no MemTotal: memory size unknown \
                    [no-meminfo]";
    assert_eq!(said(&reading), [expected]);
}

#[test]
fn latencies_in_another_unit_and_cores_on_two_nodes_are_reported() {
    let top = machine(&[("0-1", "10 20"), ("2-3", "20 10")], 4);
    let access = format!("{NODE}/node0/access0/initiators");
    // Picoseconds, in a table that declares nanoseconds.
    write(top.path(), &format!("{access}/read_latency"), "107000\n");
    write(top.path(), &format!("{access}/read_bandwidth"), "18446744073709551615\n");
    std::fs::create_dir_all(top.path().join(format!("{access}/node0"))).unwrap();
    for cpu in [1, 2] {
        write(top.path(), &format!("{CPU}/cpu{cpu}/topology/core_cpus_list"), "1-2\n");
    }
    let said = said(&read(top.path())).join("\n");
    let expected = "access0/initiators/read_latency: 107000 ns is not a latency of memory";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains("MB/s is not a bandwidth of memory"), "{said}");
    assert!(said.contains("its cpus 1,2 are on nodes 0,1, expected one node"), "{said}");
}

#[test]
fn figures_from_an_initiator_that_the_machine_lacks_are_from_the_nearest_node() {
    let top = machine(&[("0-1", "10 20"), ("", "20 10")], 2);
    let access = format!("{NODE}/node1/access0/initiators");
    write(top.path(), &format!("{access}/read_latency"), "270\n");
    std::fs::create_dir_all(top.path().join(format!("{access}/node7"))).unwrap();
    let reading = read(top.path());
    let initiators: Vec<u32> = reading.machine.access.iter().map(|of| of.initiator.0).collect();
    assert_eq!(initiators, [0]);
    let said = said(&reading).join("\n");
    assert!(said.contains("nodes 7 are linked") && said.contains("name no initiator"), "{said}");
}

#[test]
fn a_core_of_which_two_cpus_list_different_cpus_is_reported() {
    let top = machine(&[("0-3", "10")], 4);
    write(top.path(), &format!("{CPU}/cpu0/topology/core_cpus_list"), "0-1");
    let said = said(&read(top.path()));
    assert!(said.iter().any(|of| of.contains("cpu 1 lists `1` as its core")), "{said:?}");
    write(top.path(), &format!("{CPU}/cpu1/topology/core_cpus_list"), "0-1");
    assert_eq!(self::said(&read(top.path())), [""; 0]);
}

/// Origin: Intel's processors with cores of three kinds (util-linux/util-linux#4595), and Arm's.
#[test]
fn kinds_of_cores_are_noted_with_their_cpus() {
    let top = machine(&[("0-5", "10")], 6);
    for (unit, cpus) in [("cpu_core", "0-1"), ("cpu_atom", "2-3"), ("cpu_lowpower", "4-5")] {
        write(top.path(), &format!("sys/devices/{unit}/cpus"), cpus);
    }
    let expected = "cores are of 3 kinds: cpus 0,1 (cpu_core), cpus 2,3 (cpu_atom), cpus 4,5 \
                    (cpu_lowpower); ";
    assert!(said(&read(top.path()))[0].contains(expected), "{:?}", said(&read(top.path())));
    let capacities = |of: [u32; 4]| {
        let top = machine(&[("0-3", "10")], 4);
        for (cpu, capacity) in of.iter().enumerate() {
            write(top.path(), &format!("{CPU}/cpu{cpu}/cpu_capacity"), capacity.to_string());
        }
        said(&read(top.path())).join("\n")
    };
    let of_two = capacities([446, 446, 1024, 1024]);
    assert!(of_two.contains("cpus 2,3 (capacity 1024), cpus 0,1 (capacity 446)"), "{of_two}");
    assert_eq!(capacities([1024; 4]), "");
}

#[test]
fn huge_pages_without_room_and_more_free_ones_than_there_are_are_reported() {
    let noted = |total: &str, free: &str| {
        let top = machine(&[("0-1", "10")], 2);
        let pool = format!("{NODE}/node0/hugepages/hugepages-2048kB");
        write(top.path(), &format!("{pool}/nr_hugepages"), total);
        write(top.path(), &format!("{pool}/free_hugepages"), free);
        said(&read(top.path())).iter().any(|of| of.ends_with("[pool-exceeds-memory]"))
    };
    assert!(noted("2", "0") && noted("0", "1"));
    assert!(!noted("1", "1"));
}

/// Origin: lxcfs in an LXC container with a limit, where nodes are those of the host.
#[test]
fn a_limit_of_memory_that_lxcfs_shows_is_noted() {
    let top = machine(&[("0-1", "10 20"), ("2-3", "20 10")], 4);
    write(top.path(), "proc/meminfo", "MemTotal: 1024 kB\n");
    let reading = read(top.path());
    assert_eq!(reading.machine.memory_bytes(), 4 << 20);
    let said = said(&reading);
    assert!(said.len() == 1 && said[0].ends_with("[memory-limited]"), "{said:?}");
}

/// Origin: vNUMA of clouds, where eight nodes are all at distance 20 (SAP/arp142-hana#385).
#[test]
fn equal_distances_of_many_nodes_of_a_guest_are_noted() {
    let noted = |nodes: usize, cpuinfo: &str| {
        let row = |of: usize| {
            let values = (0..nodes).map(|to| if to == of { "10" } else { "20" });
            values.collect::<Vec<_>>().join(" ")
        };
        let rows: Vec<(String, String)> = (0..nodes).map(|of| (of.to_string(), row(of))).collect();
        let rows: Vec<(&str, &str)> = rows.iter().map(|(of, row)| (&of[..], &row[..])).collect();
        let top = machine(&rows, u32::try_from(nodes).unwrap());
        write(top.path(), "proc/cpuinfo", cpuinfo);
        said(&read(top.path())).iter().any(|of| of.ends_with("[guest-distances]"))
    };
    let guest = "processor : 0\nflags : fpu hypervisor\n";
    assert!(noted(8, guest));
    assert!(!noted(4, guest), "four packages can be");
    assert!(!noted(8, "processor : 0\nflags : fpu\n"));
}

/// Origin: a virtual machine with the cpus of nodes numbered across its packages (open-mpi/hwloc#712),
/// and guests with an L3 of each vCPU.
#[test]
fn packages_across_nodes_and_an_l3_of_each_core_are_noted_in_a_tree() {
    let top = machine(&[("0-1,4-5", "10 20"), ("2-3,6-7", "20 10")], 8);
    for cpu in 0..8 {
        let package = if cpu < 4 { "0-3" } else { "4-7" };
        write(top.path(), &format!("{CPU}/cpu{cpu}/topology/package_cpus_list"), package);
        let cache = format!("{CPU}/cpu{cpu}/cache/index3");
        let list = cpu.to_string();
        for (file, value) in [("level", "3"), ("type", "Unified"), ("shared_cpu_list", &list)] {
            write(top.path(), &format!("{cache}/{file}"), value);
        }
    }
    let said = said(&read(top.path()));
    for code in ["[l3-per-core]", "[packages-cross-nodes]"] {
        assert!(said.iter().any(|of| of.ends_with(code)), "{said:?}");
    }
}

#[test]
fn nodes_that_are_listed_without_a_directory_are_one_finding() {
    let top = machine(&[("0-1", "10")], 2);
    write(top.path(), &format!("{NODE}/online"), "0-35");
    let said = said(&read(top.path()));
    assert!(said[0].contains("nodes `1-35` are listed"), "{said:?}");
}
