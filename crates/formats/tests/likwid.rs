//! The output of `likwid-topology`, as it is printed, pasted and cut.

use std::fmt::Write as _;

use numalab_formats::{Reading, likwid};
use numalab_topology::{CacheKind, Machine, NodeId};
use proptest::prelude::*;

/// A machine of equal sockets, cores and domains.
#[derive(Clone, Copy, Debug)]
struct Shape {
    sockets: u32,
    cores: u32,
    threads: u32,
    domains_per_socket: u32,
    /// The second threads of cores follow all first ones.
    threads_are_apart: bool,
}

impl Shape {
    fn all_cores(self) -> u32 {
        self.sockets * self.cores
    }

    fn cpu(self, core: u32, thread: u32) -> u32 {
        match self.threads_are_apart {
            true => core + thread * self.all_cores(),
            false => core * self.threads + thread,
        }
    }

    /// Returns the cpus of consecutive cores, in groups.
    fn groups(self, cores_per_group: u32) -> Vec<Vec<u32>> {
        let cpus = |core: u32| (0..self.threads).map(move |thread| self.cpu(core, thread));
        let of = |first: u32| (first..first + cores_per_group).flat_map(cpus).collect();
        (0..self.all_cores()).step_by(cores_per_group as usize).map(of).collect()
    }

    fn domains(self) -> Vec<Vec<u32>> {
        self.groups(self.cores / self.domains_per_socket)
    }

    /// Returns the output of version 5.
    fn text(self) -> String {
        let star = "*".repeat(80);
        let rule = "-".repeat(80);
        let list = |cpus: &Vec<u32>| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        let mut text = format!(
            "{rule}\nCPU name:\tSome CPU\nCPU type:\tSome architecture\nCPU stepping:\t1\n{star}\n\
             Hardware Thread Topology\n{star}\nSockets:\t\t{}\nCPU dies:\t\t{0}\n\
             Cores per socket:\t{}\nThreads per core:\t{}\n{rule}\n\
             HWThread        Thread        Core        Die        Socket        Available\n",
            self.sockets, self.cores, self.threads
        );
        let mut rows = Vec::new();
        for core in 0..self.all_cores() {
            let of = |thread| (self.cpu(core, thread), thread, core, core / self.cores);
            rows.extend((0..self.threads).map(of));
        }
        rows.sort_unstable();
        for (cpu, thread, core, socket) in rows {
            writeln!(text, "{cpu:<16}{thread:<14}{core:<12}{:<11}{socket:<14}*   ", 0).unwrap();
        }
        writeln!(text, "{rule}").unwrap();
        for (socket, cpus) in self.groups(self.cores).iter().enumerate() {
            writeln!(text, "Socket {socket}:\t\t( {} )", list(cpus)).unwrap();
        }
        writeln!(text, "{rule}\n{star}\nCache Topology\n{star}").unwrap();
        for (level, size, cores) in [(1, "32 kB", 1), (2, "1.25 MB", 1), (3, "24 MB", self.cores)] {
            let groups: Vec<String> =
                self.groups(cores).iter().map(|group| format!("( {} )", list(group))).collect();
            let groups = groups.join(" ");
            writeln!(
                text,
                "Level:\t\t\t{level}\nSize:\t\t\t{size}\nCache groups:\t\t{groups}\n{rule}"
            )
            .unwrap();
        }
        let domains = self.domains();
        writeln!(text, "{star}\nNUMA Topology\n{star}\nNUMA domains:\t\t{}\n{rule}", domains.len())
            .unwrap();
        for (id, cpus) in domains.iter().enumerate() {
            let far = (0..domains.len()).map(|to| if to == id { "10" } else { "21" });
            let far = far.collect::<Vec<_>>().join(" ");
            let cpus = list(cpus);
            writeln!(
                text,
                "Domain:\t\t\t{id}\nProcessors:\t\t( {cpus} )\nDistances:\t\t{far}\n\
                 Free memory:\t\t934.859 MB\nTotal memory:\t\t1.03159e+06 MB\n{rule}"
            )
            .unwrap();
        }
        text
    }
}

const TWO_SOCKETS: Shape =
    Shape { sockets: 2, cores: 4, threads: 2, domains_per_socket: 2, threads_are_apart: true };

/// As version 3 prints it.
const OLD: &str = "\
-------------------------------------------------------------
CPU type:\tAMD Shanghai processor
*************************************************************
Hardware Thread Topology
*************************************************************
Sockets:\t2
Cores per socket:\t2
Threads per core:\t1
-------------------------------------------------------------
HWThread\tThread\t\tCore\t\tSocket
0\t\t0\t\t0\t\t0
1\t\t0\t\t0\t\t1
2\t\t0\t\t1\t\t0
3\t\t0\t\t1\t\t1
-------------------------------------------------------------
Socket 0: ( 0 2 )
Socket 1: ( 1 3 )
-------------------------------------------------------------

*************************************************************
Cache Topology
*************************************************************
Level:\t1
Size:\t64 kB
Cache groups:\t( 0 ) ( 2 ) ( 1 ) ( 3 )
-------------------------------------------------------------
*************************************************************
NUMA Topology
*************************************************************
NUMA domains: 2
-------------------------------------------------------------
Domain 0:
Processors:  0 2
Relative distance to nodes:  10 20
Memory: 4106.93 MB free of total 8186.19 MB
-------------------------------------------------------------
Domain 1:
Processors:  1 3
Relative distance to nodes:  20 10
Memory: 6918.36 MB free of total 8192 MB
-------------------------------------------------------------
";

fn machine(text: &str) -> Machine {
    likwid::read(text).unwrap_or_else(|error| panic!("{error}:\n{text}")).value
}

fn refused(text: &str) -> String {
    match likwid::read(text) {
        Err(error) => error.to_string(),
        Ok(reading) => panic!("{:?}\n{text}", reading.value.nodes),
    }
}

fn nodes(machine: &Machine) -> Vec<(u32, String, u64)> {
    let of =
        |node: &numalab_topology::Node| (node.id.0, node.cpus.to_string(), node.memory_bytes >> 20);
    machine.nodes.iter().map(of).collect()
}

#[test]
fn sockets_cores_caches_and_domains_with_distances_and_memory_are_read() {
    let Reading { value: machine, findings } = likwid::read(&TWO_SOCKETS.text()).unwrap();
    let codes: Vec<_> = findings.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["sizes-rounded"]);
    let lists = ["0,1,8,9", "2,3,10,11", "4,5,12,13", "6,7,14,15"];
    let expected = (0..).zip(lists).map(|(id, list)| (id, list.to_owned(), 1_031_589));
    assert_eq!(nodes(&machine), expected.collect::<Vec<_>>());
    assert_eq!(machine.distance(NodeId(0), NodeId(3)), Some(21));
    assert_eq!(machine.nodes[0].free_bytes.map(|bytes| bytes >> 20), Some(934));
    let cpu = &machine.cpus[13];
    let place = (cpu.package, cpu.core, cpu.thread, cpu.l3_group);
    assert_eq!(place, (Some(1), Some(5), 1, Some(1)));
    assert_eq!(machine.caches.len(), 8 + 8 + 2);
    assert_eq!(machine.caches[0].kind, CacheKind::Data);
    assert_eq!(machine.caches[17].cpus.to_string(), "4-7,12-15");
    assert_eq!(machine.caches[8].size_bytes, Some((1 << 20) + (1 << 18)));
}

#[test]
fn version_3_and_the_table_of_dash_o_give_the_same_as_version_5() {
    let old = machine(OLD);
    let expected = [(0, "0,2".to_owned(), 8186), (1, "1,3".to_owned(), 8192)];
    assert_eq!(nodes(&old), expected);
    let cores: Vec<_> = old.cpus.iter().map(|cpu| cpu.core).collect();
    assert_eq!(cores, [Some(0), Some(1), Some(2), Some(3)], "numbered by socket and core");
    let commented: String = OLD.lines().map(|line| format!("# {line}\n")).collect();
    assert_eq!(machine(&commented), old);
    let whole = TWO_SOCKETS.text();
    let table = |line: &str| {
        let is_left_out = line.ends_with(" Topology") || line.starts_with(['-', '*']);
        let line = line.replace(" ) ( ", ",").replace("( ", "").replace(" )", "");
        let is_list = ["Processors", "Distances", "Socket "].iter().any(|of| line.starts_with(of));
        let line = if is_list { line.replace("\t", ",").replace(' ', ",") } else { line };
        // `Socket 0:` keeps its space, as only values have commas.
        let line = line.replacen("Socket,", "Socket ", 1).replace("\t", ",");
        (!is_left_out).then(|| format!("{line},,\n"))
    };
    let table: String = whole.lines().filter_map(table).collect();
    assert_eq!(machine(&format!("STRUCT,Info,3\n{table}")), machine(&whole), "{table}");
}

#[test]
fn a_mail_does_not_change_the_machine_that_likwid_shows() {
    let text = TWO_SOCKETS.text();
    let whole = machine(&text);
    let quoted: String = text.lines().map(|line| format!("> {line}\r\n")).collect();
    assert_eq!(machine(&format!("X wrote:\n{quoted}Regards: Y\n")), whole);
    let prompt = format!("```bash\nuser@host:~$ likwid-topology -g\n{text}```\nand it is slow\n");
    assert_eq!(machine(&prompt), whole);
    let drawn = format!("{text}\n****\nGraphical Topology\n****\nSocket 0:\n+---+\n| 0 |\n+---+\n");
    assert_eq!(machine(&drawn), whole);
    let gpu = format!("{text}****\nGPU Topology\n****\nGPU count:\t\t1\nSize:\t\tx\n");
    assert_eq!(machine(&gpu), whole);
    let wrapped = text.replace(" ( 4 12 )", "\n( 4 12 )").replace("( 4 5", "( 4\n5");
    assert_ne!(wrapped, text);
    assert_eq!(machine(&wrapped), whole);
    let said = refused(&format!("{text}{text}"));
    assert!(said.contains("expected the output of one machine"), "{said}");
    let said = refused(&text.replace("Cache Topology\n", "I looked at it\n"));
    assert!(said.contains("`I looked at it`"), "{said}");
}

#[test]
fn a_part_of_the_output_is_not_taken_for_a_smaller_machine() {
    for text in [TWO_SOCKETS.text(), OLD.to_owned()] {
        let last = text.rfind("MB").unwrap();
        for end in 0..last + 1 {
            assert!(likwid::read(&text[..end]).is_err(), "{}", &text[..end]);
        }
    }
    let text = TWO_SOCKETS.text();
    let without =
        |line: &str| text.lines().filter(|of| !of.contains(line)).collect::<Vec<_>>().join("\n");
    for line in ["13   ", "Socket 1", "NUMA domains", "Total memory", "Processors:\t\t( 2"] {
        assert!(likwid::read(&without(line)).is_err(), "without {line}");
    }
    let said = refused(&text.replace("\t10 21 21 21\n", "\t10 21 21\n"));
    assert!(said.contains("node 0 has 3 distances under 4 nodes"), "{said}");
}

/// `taskset -c 1 likwid-topology` lists processor 0 (version 5.2.2).
#[test]
fn wrong_processors_of_a_tool_that_may_not_use_all_are_refused_with_several_domains() {
    let part = OLD.replace("Processors:  0 2", "Processors:  0");
    let said = refused(&part);
    assert!(said.contains("expected its output from a shell that may use all"), "{said}");
    let one = Shape { sockets: 1, domains_per_socket: 1, ..TWO_SOCKETS };
    let part = one.text().replace("Processors:\t\t( 0 4 1 5 2 6 3 7 )", "Processors:\t\t( 0 )");
    assert_ne!(part, one.text());
    assert_eq!(nodes(&machine(&part))[0].1, "0-7");
}

#[test]
fn caches_of_cores_that_differ_are_left_out_with_a_warning() {
    let shape =
        Shape { sockets: 1, domains_per_socket: 1, threads_are_apart: false, ..TWO_SOCKETS };
    // The last two cores have one thread each, so the tool's pairs for level 1 cross cores.
    let row = |cpu: u32, thread: u32, core: u32| {
        format!("{cpu:<16}{thread:<14}{core:<12}{:<11}{:<14}*   \n", 0, 0)
    };
    let text = shape.text().replace(&row(7, 1, 3), &row(7, 0, 4));
    assert_ne!(text, shape.text());
    let reading = likwid::read(&text).unwrap();
    let unknown = reading.findings.iter().filter(|finding| finding.code == "caches-unknown");
    let places: Vec<_> = unknown.map(|finding| finding.place.as_str()).collect();
    assert_eq!(places, ["level 1", "level 2"]);
    assert_eq!(reading.value.caches.len(), 1);
}

#[test]
fn without_numa_the_machine_is_one_node_of_unknown_memory() {
    let text = TWO_SOCKETS.text();
    let end = text.find("NUMA domains").unwrap();
    let machine = machine(&format!("{}No NUMA\n", &text[..end]));
    assert_eq!(nodes(&machine), [(0, "0-15".to_owned(), 0)]);
    assert!(machine.nodes[0].memory_unknown);
}

proptest! {
    #[test]
    fn every_machine_that_is_printed_is_read_again(
        sockets in 1_u32..5,
        cores in 1_u32..5,
        threads in 1_u32..4,
        domains_per_socket in 1_u32..3,
        threads_are_apart: bool,
    ) {
        let cores = cores * domains_per_socket;
        let shape = Shape { sockets, cores, threads, domains_per_socket, threads_are_apart };
        let machine = machine(&shape.text());
        prop_assert_eq!(machine.cpus.len(), (shape.all_cores() * threads) as usize);
        for (node, cpus) in machine.nodes.iter().zip(shape.domains()) {
            let mut cpus = cpus;
            cpus.sort_unstable();
            prop_assert_eq!(node.cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>(), cpus);
        }
        let cores = machine.cpus.iter().filter_map(|cpu| cpu.core).max();
        prop_assert_eq!(cores, Some(shape.all_cores() - 1));
    }

    #[test]
    fn a_changed_text_is_read_or_refused(place in 0_usize..3000, with in "[0-9():,* \nA-z-]{0,3}") {
        let mut text = TWO_SOCKETS.text();
        let place = place.min(text.len());
        text.replace_range(place..(place + 1).min(text.len()), &with);
        if let Ok(reading) = likwid::read(&text) {
            prop_assert!(reading.value.cpus.iter().all(|cpu| cpu.node.is_some()));
        }
    }
}
