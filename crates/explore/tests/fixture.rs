//! A recorded machine of four nodes: processes, nodes and a guest of QEMU.

use std::fs;
use std::path::Path;
use std::time::Duration;

use numalab_explore::ranks::VariableLookup;
use numalab_explore::{ExploreError, read_guests, read_nodes, read_process, read_ranks};
use numalab_host::{Classed, ErrorClass, Root};
use numalab_page::{Lead, Style};
use numalab_record::explore::{MappingKind, Unseen, View};
use numalab_results::Report;
use numalab_results::explore::Explored;
use numalab_topology::{NodeId, NodeSet};
use tempfile::TempDir;

/// Four nodes of two cpus and 4 GiB each.
struct Tree {
    directory: TempDir,
}

impl Tree {
    fn new() -> Self {
        let tree = Self { directory: tempfile::tempdir().unwrap() };
        let list = "0-3\n";
        for name in ["online", "possible", "has_cpu", "has_memory", "has_normal_memory"] {
            tree.write(&format!("sys/devices/system/node/{name}"), list);
        }
        for name in ["online", "possible", "present"] {
            tree.write(&format!("sys/devices/system/cpu/{name}"), "0-7\n");
        }
        for node in 0..4_u32 {
            let directory = format!("sys/devices/system/node/node{node}");
            let cpus = (2 * node, 2 * node + 1);
            tree.write(&format!("{directory}/cpulist"), &format!("{}-{}\n", cpus.0, cpus.1));
            let distances: Vec<String> =
                (0..4).map(|to| if to == node { "10" } else { "20" }.to_owned()).collect();
            tree.write(&format!("{directory}/distance"), &distances.join(" "));
            let free = if node == 0 { 65_536 } else { 3 << 20 };
            tree.write(
                &format!("{directory}/meminfo"),
                &format!("Node {node} MemTotal:  4194304 kB\nNode {node} MemFree:  {free} kB\nNode {node} FilePages:  1024 kB\n"),
            );
            tree.write(&format!("{directory}/numastat"), "numa_hit 10\nnuma_foreign 0\n");
            for cpu in [cpus.0, cpus.1] {
                let directory = format!("sys/devices/system/cpu/cpu{cpu}");
                tree.write(&format!("{directory}/topology/core_id"), &cpu.to_string());
                tree.write(&format!("{directory}/topology/physical_package_id"), &node.to_string());
                fs::create_dir_all(tree.path().join(format!("{directory}/node{node}"))).unwrap();
            }
        }
        tree.write("proc/buddyinfo", "Node 0, zone Normal 100 100 0 0 0 0 0 0 0 0 1\nNode 3, zone Normal 200000 0 0 0 0 0 0 0 0 1 0\n");
        tree.write("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
        tree.write("proc/self/smaps", "KernelPageSize: 4 kB\n");
        tree
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn root(&self) -> Root {
        Root::at(self.path())
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Adds a process with its threads (id, name, cpu, cpus, numa_faults lines).
    fn process(&self, pid: u32, command: &[&str], numa_maps: &str, threads: &[Thread<'_>]) {
        let directory = format!("proc/{pid}");
        self.write(&format!("{directory}/cmdline"), &(command.join("\0") + "\0"));
        self.write(&format!("{directory}/numa_maps"), numa_maps);
        let maps = numa_maps.lines().map(|line| {
            let start = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
            format!("{start:x}-{:x} rw-p 00000000 00:00 0 \n", start + (64 << 20))
        });
        self.write(&format!("{directory}/maps"), &maps.collect::<String>());
        for thread in threads {
            let directory = format!("{directory}/task/{}", thread.number);
            // Fields 3 to 52 of proc(5): state, time in user and system mode, processor.
            let value = |field: u32| match field {
                3 => "R".to_owned(),
                14 => "900".to_owned(),
                15 => "100".to_owned(),
                39 => thread.cpu.to_string(),
                _ => "0".to_owned(),
            };
            let fields: Vec<String> = (3..=52).map(value).collect();
            let stat = format!("{} ({}) {}", thread.number, thread.name, fields.join(" "));
            self.write(&format!("{directory}/stat"), &stat);
            self.write(
                &format!("{directory}/status"),
                &format!("Cpus_allowed_list:\t{}\n", thread.allowed),
            );
            self.write(&format!("{directory}/sched"), thread.faults);
        }
    }
}

struct Thread<'a> {
    number: u32,
    name: &'a str,
    cpu: u32,
    allowed: &'a str,
    faults: &'a str,
}

/// Returns the leading part of the report: each finding with its command.
fn found(view: View) -> Vec<String> {
    let lead = Explored::of(view).page().lead;
    let text =
        |lead: &Lead| format!("{} | {}", lead.sentence, lead.command.as_deref().unwrap_or("-"));
    lead.iter().filter(|lead| lead.name != "Not visible").map(text).collect()
}

/// 96 MiB on node 0 and 4 MiB on node 3.
const ON_NODE_0: &str = "\
7f0000000000 default anon=25600 dirty=25600 N0=24576 N3=1024 kernelpagesize_kB=4
7f1000000000 default file=/lib/libc.so mapped=90000 N1=90000 kernelpagesize_kB=4
";

#[test]
fn a_copy_without_the_pages_of_a_process_is_refused() {
    let tree = Tree::new();
    tree.process(7, &["./solver"], ON_NODE_0, &[]);
    fs::remove_file(tree.path().join("proc/7/numa_maps")).unwrap();
    let error = read_process(&tree.root(), 7).unwrap_err();
    assert!(
        error.to_string().contains("no page in proc/7/numa_maps, so it is unknown where"),
        "{error}"
    );
    assert_eq!(error.class(), ErrorClass::BadInput);
    // A user's copy of another user's process.
    tree.write("proc/7/numa_maps", "");
    assert_eq!(read_process(&tree.root(), 7).unwrap_err().to_string(), error.to_string());
    tree.write("proc/7/maps", "");
    assert_eq!(read_process(&tree.root(), 7).unwrap_err().to_string(), error.to_string());
    tree.write("proc/7/cmdline", "");
    tree.write("proc/7/comm", "kswapd0\n");
    assert_eq!(read_process(&tree.root(), 7).unwrap().mappings.len(), 0);
}

/// Origin: numa_maps from a terminal of 80 columns, which has cut the nodes of a long line.
#[test]
fn a_copy_with_cut_lines_is_refused_with_the_address() {
    let tree = Tree::new();
    let cut = ON_NODE_0.replace(" N3=1024 kernelpagesize_kB=4\n7f1", "\n7f1");
    tree.process(7, &["./solver"], &cut, &[]);
    let error = read_process(&tree.root(), 7).unwrap_err();
    assert!(error.to_string().contains("at 7f0000000000 than pages on nodes"), "{error}");
    assert_eq!(error.class(), ErrorClass::BadInput);
}

#[test]
fn nodes_without_figures_of_their_memory_are_named_as_not_visible() {
    let tree = Tree::new();
    tree.write("sys/devices/system/node/node1/meminfo", "");
    tree.write("sys/devices/system/node/node2/meminfo", "Node 2 MemTotal: 0 kB\n");
    let view = read_nodes(&tree.root(), Duration::ZERO).unwrap();
    let nodes = NodeSet::from_iter([NodeId(1)]);
    assert_eq!(view.unseen, [Unseen::NodeMemory { nodes }]);
    let page = Explored::of(View::Nodes(view)).page();
    let said = &page.lead.iter().find(|lead| lead.name == "Not visible").unwrap().sentence;
    assert!(said.contains("memory of node 1: its file meminfo has no MemTotal"), "{said}");
}

#[test]
fn a_rank_is_known_by_its_process_and_without_the_number_of_all() {
    let tree = Tree::new();
    let environment = |process: u32, text: &str| {
        tree.process(process, &["./solver"], ON_NODE_0, &[]);
        tree.write(&format!("proc/{process}/environ"), text);
    };
    environment(7, "RANK=3\0");
    environment(8, "RANK=4\0");
    environment(9, "HOME=/\0");
    let which = |process: u32, look: VariableLookup<'_>| {
        let rank = look("RANK")?.parse().ok()?;
        Some((rank, (process == 8).then_some(16)))
    };
    let view = read_ranks(&tree.root(), &which, None).unwrap();
    let found: Vec<(usize, Option<usize>, u32)> =
        view.ranks.iter().map(|rank| (rank.rank, rank.size, rank.process)).collect();
    assert_eq!(found, [(3, None, 7), (4, Some(16), 8)]);
}

#[test]
fn a_thread_pinned_away_from_its_memory_is_reported_with_a_command() {
    let tree = Tree::new();
    let tied = Thread { number: 12, name: "solver", cpu: 6, allowed: "6-7", faults: "" };
    tree.process(12, &["./solver", "-n"], ON_NODE_0, &[tied]);
    let view = read_process(&tree.root(), 12).unwrap();
    assert_eq!(view.own_bytes_by_node[&NodeId(0)], 96 << 20);
    assert_eq!(view.remote_share, Some(0.96));
    assert_eq!(
        found(View::Process(view)),
        [
            "Thread 12 runs on node 3; 96 % of the memory it touched is on node 0. | migratepages 12 0 3"
        ]
    );
}

#[test]
fn a_thread_that_may_run_near_its_memory_gets_a_command_to_move_it() {
    let tree = Tree::new();
    let free = Thread { number: 12, name: "solver", cpu: 6, allowed: "0-7", faults: "" };
    tree.process(12, &["./solver"], ON_NODE_0, &[free]);
    let view = read_process(&tree.root(), 12).unwrap();
    let found = found(View::Process(view));
    assert!(found[0].ends_with("| taskset -acp 0,1 12"), "{found:?}");
}

#[test]
fn memory_that_a_thread_touched_counts_more_than_that_of_the_process() {
    let tree = Tree::new();
    let faults =
        "numa_faults node=2 task_private=30 task_shared=2 group_private=0 group_shared=0\n";
    let near = Thread { number: 20, name: "a", cpu: 4, allowed: "0-7", faults };
    let far = Thread { number: 21, name: "b", cpu: 3, allowed: "0-7", faults };
    tree.process(20, &["./two"], ON_NODE_0, &[near, far]);
    let view = read_process(&tree.root(), 20).unwrap();
    assert_eq!(view.threads[0].remote_share, Some(0.0));
    assert_eq!(view.threads[1].remote_share, Some(1.0));
    let found = found(View::Process(view));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with(
            "Thread 21 runs on node 1; 100 % of the memory touched from there is on node 2"
        ),
        "{found:?}"
    );
    assert!(
        found[0]
            .contains("| numactl --interleave=1,2 -- ./two\nsrun -n1 numactl --interleave=1,2 "),
        "{found:?}"
    );
}

#[test]
fn a_shared_segment_that_fills_its_node_is_to_be_spread_and_its_processes_are_not_moved() {
    let tree = Tree::new();
    let maps = "\
7f0000000000 default file=/SYSV00000000\\040(deleted) dirty=786432 mapmax=400 N0=786432 kernelpagesize_kB=4
7f4000000000 default anon=16384 dirty=16384 N3=16384 kernelpagesize_kB=4
";
    let thread = Thread { number: 12, name: "postgres", cpu: 6, allowed: "0-7", faults: "" };
    tree.process(12, &["postgres"], maps, &[thread]);
    let found = found(View::Process(read_process(&tree.root(), 12).unwrap()));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].ends_with(
            "; no remedy: most of it is shared memory /SYSV00000000 (deleted), which other \
             processes may use too. | -"
        ),
        "{found:?}"
    );
    let call = "numa_interleave_memory(p, bytes, numa_parse_nodestring(\"0-3\"))";
    assert!(found[1].starts_with("Shared memory /SYSV00000000 (deleted) of 3 GiB is on node 0"));
    assert!(found[1].contains(&format!("| {call}")) && found[1].ends_with("768 MiB on each node"));
}

#[test]
fn masks_of_cpus_are_read_where_a_status_has_no_lists() {
    let tree = Tree::new();
    let thread = Thread { number: 12, name: "solver", cpu: 6, allowed: "6-7", faults: "" };
    tree.process(12, &["./solver"], ON_NODE_0, &[thread]);
    tree.write("proc/12/task/12/status", "Cpus_allowed:\tc0\n");
    let view = read_process(&tree.root(), 12).unwrap();
    assert_eq!(view.threads[0].allowed.to_string(), "6,7");
}

#[test]
fn samples_of_the_small_part_of_memory_without_a_policy_are_not_generalised() {
    let tree = Tree::new();
    let maps = "\
7f0000000000 bind:0 anon=25600 dirty=25600 N0=25600 kernelpagesize_kB=4
7f1000000000 default stack anon=300 dirty=300 N3=300 kernelpagesize_kB=4
";
    let faults =
        "numa_faults node=3 task_private=30 task_shared=2 group_private=0 group_shared=0\n";
    let thread = Thread { number: 12, name: "x", cpu: 6, allowed: "6-7", faults };
    tree.process(12, &["./x"], maps, &[thread]);
    let view = read_process(&tree.root(), 12).unwrap();
    assert!(view.threads[0].touched_pages.is_empty());
    assert!(view.threads[0].remote_share.unwrap() > 0.98, "{:?}", view.threads);
    assert!(view.unseen.contains(&Unseen::TouchedByThread), "{:?}", view.unseen);
}

#[test]
fn memory_bound_to_a_node_without_threads_is_reported() {
    let tree = Tree::new();
    let maps = "7f0000000000 bind:2 anon=25600 dirty=25600 N2=25600 kernelpagesize_kB=4\n";
    let thread = Thread { number: 12, name: "x", cpu: 0, allowed: "0-1", faults: "" };
    tree.process(12, &["./x"], maps, &[thread]);
    let found = found(View::Process(read_process(&tree.root(), 12).unwrap()));
    assert!(
        found[1].starts_with("100 MiB is bound to node 2 by the program's own policy"),
        "{found:?}"
    );
}

#[test]
fn a_process_with_local_memory_has_no_findings() {
    let tree = Tree::new();
    let thread = Thread { number: 12, name: "x", cpu: 1, allowed: "0-1", faults: "" };
    tree.process(12, &["./x"], ON_NODE_0, &[thread]);
    let view = read_process(&tree.root(), 12).unwrap();
    let explored = Explored::of(View::Process(view.clone()));
    assert_eq!(explored.findings, []);
    let text = explored.terminal(Style::Plain);
    assert!(text.contains("None found."), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(view.mappings[1].kind, MappingKind::File);
}

#[test]
fn a_missing_process_is_bad_input() {
    let error = read_process(&Tree::new().root(), 99).unwrap_err();
    assert!(matches!(error, ExploreError::NoProcess { process: 99 }));
    assert_eq!(error.class(), ErrorClass::BadInput);
}

#[test]
fn a_process_with_more_mappings_than_are_read_is_refused_and_not_shown_in_part() {
    let tree = Tree::new();
    tree.process(7, &["worker"], "", &[]);
    let maps = fs::File::create(tree.path().join("proc/7/numa_maps")).unwrap();
    maps.set_len((64 << 20) + 1).unwrap();
    let error = read_process(&tree.root(), 7).unwrap_err().to_string();
    let path = tree.path().join("proc/7/numa_maps");
    let expected = format!("{}: has more than 67108864 bytes", path.display());
    assert_eq!(error, expected);
}

#[test]
fn full_and_fragmented_nodes_are_reported() {
    let tree = Tree::new();
    let view = read_nodes(&tree.root(), Duration::ZERO).unwrap();
    assert_eq!(view.nodes.len(), 4);
    assert_eq!((view.huge_order, view.nodes[0].free_bytes), (Some(9), Some(64 << 20)));
    let explored = Explored::of(View::Nodes(view));
    let text = explored.terminal(Style::Plain);
    let found = found(explored.view);
    assert!(found[0].starts_with("Node 0 has 1.6 % of its 4 GiB left"), "{found:?}");
    assert!(
        found[1].contains("Node 3 has 3 GiB free, but over 99 % of it is in pieces"),
        "{found:?}"
    );
    assert!(text.contains("since boot"), "{text}");
    assert!(
        text.lines().filter(|l| !l.contains("migratepages")).all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn nodes_show_their_tier_and_their_promotions_and_demotions() {
    let tree = Tree::new();
    for (tier, nodes) in [("4", "0-1"), ("13", "2-3")] {
        tree.write(
            &format!("sys/devices/virtual/memory_tiering/memory_tier{tier}/nodelist"),
            nodes,
        );
    }
    let vmstat = "pgpromote_success 962\npgpromote_candidate 990\npgdemote_kswapd 30\n";
    tree.write("sys/devices/system/node/node0/vmstat", vmstat);
    tree.write(
        "proc/vmstat",
        "numa_pages_migrated 970\npgmigrate_success 1010\npgmigrate_fail 5\n",
    );
    let view = read_nodes(&tree.root(), Duration::ZERO).unwrap();
    let tiers: Vec<Option<u32>> = view.nodes.iter().map(|node| node.tier).collect();
    assert_eq!(tiers, [Some(4), Some(4), Some(13), Some(13)]);
    let moves = view.nodes[0].moves_since_boot.unwrap();
    assert_eq!((moves.promoted, moves.candidates, moves.demoted), (962.0, 990.0, 30.0));
    assert_eq!(view.migrations_since_boot.unwrap().failed, 5.0);
    let text = Explored::of(View::Nodes(view)).terminal(Style::Plain);
    let expected = "All nodes: 1010 moved for any reason, 970 of them by NUMA balancing; 5";
    assert!(text.contains("Moved between tiers") && text.contains(expected), "{text}");
}

#[test]
fn a_guest_of_qemu_with_a_vcpu_apart_from_its_memory_is_reported() {
    let tree = Tree::new();
    let maps = "\
7f0000000000 default anon=16384 dirty=16384 N1=16384 kernelpagesize_kB=4
7f2000000000 default heap anon=90000 dirty=90000 N3=90000 kernelpagesize_kB=4
";
    let vcpu = |number, name, cpu| Thread { number, name, cpu, allowed: "0-7", faults: "" };
    let threads = [vcpu(50, "qemu", 6), vcpu(51, "CPU 0/KVM", 2), vcpu(52, "CPU 1/KVM", 7)];
    let command = ["/usr/bin/qemu-system-x86_64", "-name", "guest=web,debug-threads=on"];
    tree.process(50, &command, maps, &threads);
    tree.process(60, &["sleep", "qemu-system-x86_64"], maps, &[vcpu(60, "sleep", 0)]);
    let view = read_guests(&tree.root()).unwrap();
    assert_eq!(view.guests.len(), 1);
    let guest = &view.guests[0];
    assert_eq!((guest.name.as_str(), guest.vcpus.len(), guest.remote_share), ("web", 2, Some(0.5)));
    assert_eq!(guest.bytes_by_node[&NodeId(1)], 64 << 20);
    assert_eq!(
        found(View::Guests(view)),
        [
            "Guest web: vCPU 1 runs on node 3; 100 % of the guest's memory is on node 1. | taskset -cp 2,3 52"
        ]
    );
}
