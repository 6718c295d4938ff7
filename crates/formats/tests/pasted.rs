//! Texts of other tools as they arrive: cut, wrapped, quoted, logged, from two machines.

use numalab_formats::{Reading, hwloc, lscpu, numactl};
use numalab_topology::{CpuId, Finding};

const TWO_NODES: &str = "\
available: 2 nodes (0-1)
node 0 cpus: 0 1 2 3 8 9 10 11
node 0 size: 1000 MB
node 0 free: 900 MB
node 1 cpus: 4 5 6 7 12 13 14 15
node 1 size: 2000 MB
node 1 free: 1900 MB
node distances:
node   0   1
  0:  10  21
  1:  21  10
";

const LSCPU: &str = "\
Architecture:        x86_64
CPU(s):              8
On-line CPU(s) list: 0-7
Thread(s) per core:  2
Core(s) per socket:  2
Socket(s):           2
NUMA node(s):        2
L2 cache:            1024K
NUMA node0 CPU(s):   0,1,4,5
NUMA node1 CPU(s):   2,3,6,7
";

fn codes(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.code.as_str()).collect()
}

fn numactl_of(text: &str) -> Reading {
    numactl::read(text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

fn refused(text: &str) -> String {
    match numactl::read(text) {
        Err(error) => error.to_string(),
        Ok(reading) => panic!("{:?}\n{text}", reading.value.nodes),
    }
}

fn each_line(text: &str, change: impl Fn(usize, &str) -> String) -> String {
    text.lines().enumerate().map(|(index, line)| change(index, line) + "\n").collect()
}

#[test]
fn mails_logs_and_terminals_do_not_change_the_machine_that_numactl_shows() {
    let whole = numactl_of(TWO_NODES).value;
    for text in [
        // A reply below the quotation, which the mail program wrapped within a list.
        format!(
            "On Monday X wrote:\n{}Fine.\n-- \nY\n",
            each_line(TWO_NODES, |_, l| format!("> {l}"))
        ),
        each_line(TWO_NODES, |_, l| format!("> {l}")).replace("2 3 8 9", "2 3\n8 9"),
        each_line(TWO_NODES, |index, l| format!("{} {l}", if index == 0 { ">" } else { ">>" })),
        TWO_NODES.replace("10 11\n", "1=\n0 11\n"),
        TWO_NODES.replace(" 8 9 10", " \\\n8 9 10"),
        TWO_NODES.replace("node 0 free", "--More--(30%)\nnode 0 free"),
        format!("{TWO_NODES}(END)\n"),
        each_line(TWO_NODES, |index, l| format!("2026-05-01T12:00:{index:02}.5Z {l}")),
        each_line(TWO_NODES, |_, l| format!("\u{1b}[32m{l}\u{1b}(B\u{1b}[m\r")),
        each_line(TWO_NODES, |_, l| format!("2026-05-01 12:00:01,123 INFO {l}")),
        each_line(TWO_NODES, |_, l| format!("2026-05-01T12:00:01Z stdout F {l}")),
        each_line(TWO_NODES, |_, l| format!("# {l}")),
        format!("```\n{TWO_NODES}```\n"),
        // A string of JSON, and a chat that folds lines.
        TWO_NODES.replace('\n', "\\n"),
        TWO_NODES.replace('\n', " "),
        format!("Here: {}", TWO_NODES.replace('\n', " ")),
    ] {
        assert_eq!(numactl_of(&text).value, whole, "{text}");
    }
}

#[test]
fn a_part_of_the_text_of_numactl_is_not_taken_for_a_machine() {
    for (lost, expected) in [
        ("node 1 cpus: 4 5 6 7 12 13 14 15\n", "cpus of nodes: 0,1 announced, only 0 described"),
        (
            "available: 2 nodes (0-1)\nnode 0 cpus: 0 1 2 3 8 9 10 11\n",
            "cpus of nodes: 0,1 announced",
        ),
        ("node 1 size: 2000 MB\n", "sizes of nodes: 0,1 announced, only 0 described"),
        ("  1:  21  10\n", "rows of node distances: 0,1 announced, only 0 described"),
    ] {
        let said = refused(&TWO_NODES.replace(lost, ""));
        assert!(said.contains(expected), "{said}");
    }
    let (_, without_first_node) = TWO_NODES.split_once("node 0 free: 900 MB\n").unwrap();
    assert!(refused(without_first_node).contains("nodes: 0,1 announced, only 1 described"));
    let broken = TWO_NODES.replace("13 14 15", "13 14 1");
    assert!(refused(&broken).contains("each cpu once and in order"), "{}", refused(&broken));
    let twice = refused(&format!("{TWO_NODES}\n{TWO_NODES}"));
    assert!(twice.contains("the output of one machine only"), "{twice}");
}

#[test]
fn the_texts_of_two_machines_are_refused_with_the_line() {
    // As `pdsh`, `clush` and `srun --label` print them, in any order.
    let label = |name: &str, text: &str| each_line(text, |_, line| format!("{name}: {line}"));
    let alternating: String = TWO_NODES.lines().map(|l| format!("n1: {l}\nn2: {l}\n")).collect();
    for (text, line) in [(label("n1", TWO_NODES) + &label("n2", TWO_NODES), 12), (alternating, 2)] {
        let said = refused(&text);
        let expected = format!("line {line}: `n2:` after `n1:` at the beginning of a line");
        assert!(said.contains(&expected) && said.contains("`grep '^n1:' FILE`"), "{said}");
    }
    assert_eq!(numactl_of(&label("n1", TWO_NODES)).value, numactl_of(TWO_NODES).value);
    let of_two = label("n1", LSCPU) + &label("n2", LSCPU);
    let said = lscpu::read(&of_two).unwrap_err().to_string();
    assert!(said.contains("line 11: `n2:` after `n1:`"), "{said}");
    // Below headings, as `ansible` and shell loops print them.
    let other = LSCPU.replace("1024K", "2048K");
    let said = lscpu::read(&format!("n1:\n{LSCPU}n2:\n{other}")).unwrap_err().to_string();
    let expected = "line 13: found `Architecture: x86_64`, expected one line of it";
    assert!(said.contains(expected) && said.contains("the output of one machine"), "{said}");
}

#[test]
fn a_container_without_numa_denies_its_nodes() {
    let said = refused("available: 0 nodes ()\nlibnuma: Warning: no sysfs\n");
    assert!(said.contains("the text says `available: 0 nodes ()`"), "{said}");
}

#[test]
fn sizes_of_caches_have_decimal_commas_in_some_languages_and_none_is_lost_silently() {
    let of = |l1: &str, l2: &str| {
        let caches = format!("L1d cache: {l1}\nL2 cache: {l2}\n");
        let reading = lscpu::read(&LSCPU.replace("L2 cache:            1024K\n", &caches)).unwrap();
        let sizes = reading.value.caches.iter().map(|cache| cache.size_bytes.unwrap() >> 10);
        let said: Vec<String> = reading.findings.iter().map(ToString::to_string).collect();
        let mut sizes: Vec<u64> = sizes.collect();
        sizes.dedup();
        (sizes, said.join("\n"))
    };
    let (sizes, said) = of("192,0 KiB (4 instances)", "5,0 MiB (4 instances)");
    assert_eq!((sizes, said.as_str()), (vec![48, 1280], ""));
    let (sizes, said) = of("0K", "1.234,5 KiB (4 instances)");
    assert_eq!(sizes, [0; 0]);
    assert!(said.contains("L1d cache: `0K` is not the size of a cache"), "{said}");
    assert!(said.contains("L2 cache: `1.234,5 KiB (4 instances)` is not"), "{said}");
}

#[test]
fn what_a_cut_text_may_have_lost_is_reported() {
    let (nodes, _) = TWO_NODES.split_once("node distances").unwrap();
    let reading = numactl_of(nodes);
    assert_eq!(codes(&reading.findings), ["distances-missing"]);
    // Below a whole output without distances it is other text, but not below a part of one.
    let signed = numactl_of(&format!("{nodes}```\nThanks,\n"));
    assert_eq!(signed.value, reading.value);
    assert!(refused(&format!("{nodes}node dist\n")).contains("found `node dist`"));
    let (part, _) = nodes.split_once("node 1 free").unwrap();
    assert!(refused(&format!("{part}Thanks,\n")).contains("found `Thanks,`"));
    assert!(reading.value.distances.is_empty());
    // `less -S` and narrow windows cut every line at the same column.
    let list =
        |cpus: std::ops::Range<u32>| cpus.map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(" ");
    let large = TWO_NODES
        .replace("0 1 2 3 8 9 10 11", &list(0..40))
        .replace("4 5 6 7 12 13 14 15", &list(40..80));
    numactl_of(&large);
    let cut = each_line(&large, |_, line| line.chars().take(72).collect());
    let said = refused(&cut);
    assert!(said.contains("no node lists cpus 23-39") && said.contains("column 72"), "{said}");
    assert!(said.contains("`numactl -H > FILE`"), "{said}");
    // No window is so narrow.
    let narrow = each_line(TWO_NODES, |_, line| line.chars().take(24).collect());
    assert_eq!(codes(&numactl_of(&narrow).findings), ["cpus-missing"]);
    let offline = TWO_NODES.replace(" 10 11\n", "\n");
    assert_eq!(codes(&numactl_of(&offline).findings), [""; 0], "lines of different lengths");
    // With every second thread offline, lines can have the same length.
    let threads = TWO_NODES
        .replace("0 1 2 3 8 9 10 11", "10 12 14 16 18 20")
        .replace("4 5 6 7 12 13 14 15", "30 32 34 36 38 40");
    let reading = numactl_of(&threads);
    assert_eq!(codes(&reading.findings), ["cpus-missing"]);
    let message = &reading.findings[0].message;
    assert!(message.contains("they are offline, or lines were cut at column 30"), "{message}");
    // Lists that include their number of cpus are complete.
    let counted = TWO_NODES
        .replace("0 1 2 3 8 9 10 11", "0-3, 8-9 (6)")
        .replace("4 5 6 7 12 13 14 15", "4-7, 12-13 (6)");
    assert_eq!(codes(&numactl_of(&counted).findings), [""; 0]);
}

#[test]
fn local_distances_other_than_10_and_those_that_differ_by_direction_are_reported_once() {
    let of = |rows: &str| {
        let (head, _) = TWO_NODES.split_once("  0:  10").unwrap();
        let findings = numactl_of(&format!("{head}{rows}")).findings;
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(of("  0:  10  21\n  1:  21  10\n"), "");
    let found = of("  0:  10  21\n  1:  21  20\n");
    assert!(found.contains("node 1 to 1") && found.contains("is 20, expected 10"), "{found}");
    let found = of("  0:  10  21\n  1:  31  10\n");
    assert!(found.contains("node 0 to 1: is 21, but 31 in the opposite direction"), "{found}");
}

#[test]
fn masks_of_lscpu_are_read_like_lists() {
    let masks = LSCPU
        .replace("On-line CPU(s) list: 0-7", "On-line CPU(s) mask: 0xff")
        .replace("0,1,4,5", "0x33")
        .replace("2,3,6,7", "0xcc");
    assert_eq!(lscpu::read(&masks).unwrap().value, lscpu::read(LSCPU).unwrap().value);
    let said = lscpu::read(&masks.replace("0x33", "0x3g")).unwrap_err().to_string();
    assert!(said.contains("found `0x3g`, expected a list of cpus"), "{said}");
}

#[test]
fn what_lscpu_does_not_say_is_unknown() {
    let whole = lscpu::read(LSCPU).unwrap();
    assert_eq!((whole.value.cores().len(), whole.value.packages().len()), (4, 2));
    let reading = lscpu::read(&LSCPU.replace("Thread(s) per core:  2\n", "")).unwrap();
    assert_eq!(codes(&reading.findings), ["cores-unknown", "caches-unknown"]);
    let core = reading.value.cpu(CpuId(0)).unwrap().core;
    assert_eq!((core, reading.value.caches.len()), (None, 0));
    // lxcfs lists other cpus as online than the directories of cpus have.
    let hidden = LSCPU.replace("Thread(s) per core:  2", "Thread(s) per core:  0");
    let reading = lscpu::read(&hidden).unwrap();
    assert!(reading.findings[0].message.starts_with("is 0, as in a container that hides cpus"));
    let (head, _) = LSCPU.split_once("NUMA node0").unwrap();
    let said = lscpu::read(head).unwrap_err().to_string();
    assert!(said.contains("nodes: 2 announced, only 0 described"), "{said}");
    let said = lscpu::read("CPU NODE ONLINE\n0 0 ja\n").unwrap_err().to_string();
    assert!(said.contains("found `ja`, expected yes or no") && said.contains("LC_ALL=C"), "{said}");
}

#[test]
fn cpus_that_could_exist_but_do_not_are_left_out_with_a_note() {
    let of = |online: &str, count: u32| {
        let text = format!(
            "Architecture: s390x\nCPU(s): {count}\nOn-line CPU(s) list: {online}\n\
             Off-line CPU(s) list: 6,7\nThread(s) per core: 2\nNUMA node0 CPU(s): 0-255\n"
        );
        let reading = lscpu::read(&text).unwrap();
        (reading.value.cpus.len(), codes(&reading.findings).join(" "))
    };
    assert_eq!(of("0-5", 8), (8, "cpus-absent".to_owned()));
    // If a container hides cpus only in the list, the nodes still have them.
    assert_eq!(of("0", 256).0, 256);
}

#[test]
fn cpus_that_share_a_core_are_assumed_only_with_a_note() {
    let text = |nodes: &[&str]| {
        let lists: String = (0..)
            .zip(nodes)
            .map(|(node, list)| format!("NUMA node{node} CPU(s): {list}\n"))
            .collect();
        format!("CPU(s): 8\nOn-line CPU(s) list: 0-7\nThread(s) per core: 2\n{lists}")
    };
    let read = |nodes: &[&str]| {
        let reading = lscpu::read(&text(nodes)).unwrap();
        let first = reading.value.cpus.iter().filter(|cpu| cpu.core == Some(0)).map(|cpu| cpu.id.0);
        let noted = reading.findings.iter().any(|finding| finding.code == "cores-assumed");
        (first.collect::<Vec<u32>>(), noted)
    };
    assert_eq!(read(&["0,1,4,5", "2,3,6,7"]), (vec![0, 4], false), "the lists show it");
    assert_eq!(read(&["0-7"]), (vec![0, 4], true));
    assert_eq!(read(&["0-3", "4-7"]), (vec![0, 1], true), "as in virtual machines");
    let single = text(&["0-7"]).replace("per core: 2", "per core: 1");
    assert!(lscpu::read(&single).unwrap().findings.is_empty());
}

#[test]
fn more_free_memory_than_memory_and_nodes_without_any_cpu_are_reported() {
    let codes = |text: &str| {
        let findings = numactl::read(text).unwrap().findings;
        findings.into_iter().map(|finding| finding.code).collect::<Vec<_>>()
    };
    assert_eq!(codes(TWO_NODES), [""; 0]);
    let free = TWO_NODES.replace("free: 900 MB", "free: 9000 MB");
    assert_eq!(codes(&free), ["free-exceeds-memory"]);
    let without: String = TWO_NODES
        .lines()
        .map(|line| {
            line.split_once("cpus:").map_or(line.to_owned(), |(node, _)| node.to_owned() + "cpus:")
        })
        .map(|line| line + "\n")
        .collect();
    assert_eq!(codes(&without), ["cpus-missing"]);
}

#[test]
fn objects_of_xml_that_are_there_twice_are_refused_and_cpus_in_no_node_reported() {
    let cpus = r#"<object type="PU" os_index="0" cpuset="0x1"/><object type="PU" os_index="1" cpuset="0x2"/>"#;
    let node = |index: u32, set: &str| {
        format!(r#"<object type="NUMANode" os_index="{index}" cpuset="{set}" local_memory="9"/>"#)
    };
    let xml =
        |inner: &str| format!(r#"<topology><object type="Machine">{inner}</object></topology>"#);
    let whole = hwloc::read_xml(&xml(&(node(0, "0x1") + &node(1, "0x2") + cpus))).unwrap();
    assert_eq!((whole.value.nodes.len(), whole.findings.len()), (2, 0));
    let twice = hwloc::read_xml(&xml(&(node(0, "0x1") + &node(0, "0x2") + cpus))).unwrap_err();
    assert!(twice.to_string().contains("found `0`, expected each NUMANode once"), "{twice}");
    let twice = hwloc::read_xml(&xml(&(node(0, "0x1") + cpus + cpus))).unwrap_err();
    assert!(twice.to_string().contains("found `0`, expected each PU once"), "{twice}");
    let homeless = hwloc::read_xml(&xml(&(node(0, "0x1") + cpus))).unwrap();
    assert_eq!(homeless.findings[0].code, "cpu-without-node");
}

#[test]
fn caches_that_may_differ_are_left_out_and_not_divided_evenly() {
    let text = |vendor: &str, cpus: u32, caches: &str| {
        format!(
            "Architecture: x86_64\nCPU(s): {cpus}\nOn-line CPU(s) list: 0-{}\nVendor ID: {vendor}\n\
             Thread(s) per core: 1\nCore(s) per socket: {cpus}\nSocket(s): 1\n{caches}\
             NUMA node(s): 1\nNUMA node0 CPU(s): 0-{}\n",
            cpus - 1,
            cpus - 1
        )
    };
    let read = |vendor: &str, cpus: u32, caches: &str| {
        let reading = lscpu::read(&text(vendor, cpus, caches)).unwrap();
        let machine = reading.value;
        let groups = machine.cpus.iter().filter_map(|cpu| cpu.l3_group).max().map(|last| last + 1);
        let sizes =
            machine.caches.iter().map(|cache| (cache.level, cache.size_bytes.unwrap() >> 10));
        let mut sizes: Vec<(u8, u64)> = sizes.collect();
        sizes.dedup();
        let unknown = reading.findings.iter().filter(|finding| finding.code == "caches-unknown");
        (sizes, groups, unknown.count())
    };
    let amd = |sum: &str| read("AuthenticAMD", 12, &format!("L3 cache: {sum} (2 instances)\n"));
    assert_eq!(amd("24 MiB"), (vec![], None, 1), "16 and 8 MiB, over 4 and 8 cores");
    assert_eq!(amd("128 MiB"), (vec![], None, 1), "96 and 32 MiB");
    assert_eq!(amd("64 MiB"), (vec![(3, 32 << 10)], Some(2), 0));
    assert_eq!(amd("96 MiB"), (vec![(3, 48 << 10)], Some(2), 0));
    let intel = read("GenuineIntel", 12, "L3 cache: 24 MiB (2 instances)\n");
    assert_eq!(intel, (vec![(3, 12 << 10)], Some(2), 0), "12 MiB is usual there");
    // Four fast cores and eight slow ones, which share L2 by four.
    let hybrid = "L1d cache: 448 KiB (12 instances)\nL2 cache: 9 MiB (6 instances)\n\
                  L3 cache: 18 MiB (1 instance)\n";
    assert_eq!(read("GenuineIntel", 12, hybrid), (vec![(3, 18 << 10)], Some(1), 2));
    let equal_parts = "L1d cache: 320 KiB (8 instances)\n";
    assert_eq!(read("GenuineIntel", 8, equal_parts), (vec![], None, 1), "48 and 32 KiB, not 40");
    let usual = "L1d cache: 384 KiB (8 instances)\nL2 cache: 10 MiB (8 instances)\n";
    assert_eq!(read("GenuineIntel", 8, usual).0, [(1, 48), (2, 1280)]);
    let fewer = text("GenuineIntel", 8, usual).replace("per socket: 8", "per socket: 6");
    let fewer = lscpu::read(&fewer).unwrap();
    assert!(fewer.findings.iter().any(|finding| finding.code == "cores-unknown"), "6 cores of 1");
    assert!(fewer.value.cpus.iter().all(|cpu| cpu.core.is_none()));
}

#[test]
fn the_nodes_of_a_translated_lscpu_are_read_and_the_rest_is_reported() {
    for text in [
        "CPU(s): 4\nListe der Online-CPU(s): 0-3\nThread(s) pro Kern: 2\nNUMA-Knoten: 2\n\
         NUMA-Knoten0 CPU(s): 0,2\nNUMA-Knoten1 CPU(s): 1,3\n",
        "CPU(s): 8\nListe der Online-CPU(s): 0-3\nListe der Offline-CPU(s): 4-7\n\
         NUMA-Knoten: 2\nNUMA-Knoten0 CPU(s): 0,2\nNUMA-Knoten1 CPU(s): 1,3\n",
        "Processeur(s) :\u{a0}4\nThread(s) par cœur : 2\nNœud NUMA 0 de processeur(s) : 0,2\n\
         Nœud NUMA 1 de processeur(s) : 1,3\n",
        "架构：   x86_64\nCPU:     4\n在线 CPU 列表：   0-3\n每个核的线程数：  2\nNUMA 节点：   2\n\
         NUMA 节点0 CPU：   0,2\nNUMA 节点1 CPU：   1,3\n",
    ] {
        let reading = lscpu::read(text).unwrap();
        assert_eq!(reading.value.nodes[1].cpus.to_string(), "1,3", "{text}");
        assert_eq!(codes(&reading.findings), ["headings-translated", "cores-unknown"], "{text}");
    }
    for (lost, expected) in [
        ("CPU(s): 4\nNUMA-Knoten0 CPU(s): 0,2\n", "cpus: 4 announced, only 2 described"),
        ("Nœud(s) NUMA : 2\nNœud NUMA 0 de processeur(s) : 0,2\n", "nodes: 2 announced, only 1"),
    ] {
        let said = lscpu::read(lost).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
    let wrapped = lscpu::read("Nœud NUMA 0 de processeur(s) : 0,2,\n  4-6\n").unwrap().value;
    assert_eq!(wrapped.nodes[0].cpus.to_string(), "0,2,4-6");
    let said = lscpu::read("Liste der Online-CPU(s): 0-3\n").unwrap_err().to_string();
    assert!(said.contains("as `LC_ALL=C lscpu` prints them"), "{said}");
}

#[test]
fn a_synthetic_description_ends_with_its_cpus() {
    let text = "Package:2 [NUMANode(memory=8GB)] Core:4 PU:2";
    let whole = hwloc::read_synthetic(text).unwrap().value;
    for pasted in [
        format!("> {text}\n"),
        format!("$ lstopo --of synthetic\n{text}\n"),
        text.replace(" Core", "\r\n  Core"),
        format!("\u{1b}[1m{text}\u{1b}[0m (END)").replace(" (END)", "\n(END)"),
    ] {
        assert!(hwloc::is_synthetic(&pasted), "{pasted}");
        assert_eq!(hwloc::read_synthetic(&pasted).unwrap().value, whole, "{pasted}");
    }
    let refused = |text: &str| hwloc::read_synthetic(text).unwrap_err().to_string();
    let said = refused(&format!("{text}\nPackage:1 Core:2 PU:1\n"));
    assert!(said.contains("found `Package:1`, expected the end of the description"), "{said}");
    let cut = "Package:2 [NUMANode(memory=8GB)] Core:4";
    assert!(hwloc::is_synthetic(cut) && refused(cut).contains("last level such as `pu:2`"));
    assert!(hwloc::is_synthetic("2 4 2") && refused("2 4 2").contains("a level such as pack:2"));
    assert!(!hwloc::is_synthetic("<topology>\n  <object type=\"PU\" l2:3/>\n</topology>"));
}

#[test]
fn quoted_xml_is_read_and_sizes_that_it_lacks_are_unknown() {
    let node =
        |size: &str| format!("<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\"{size}/>");
    let xml = |size: &str| {
        format!(
            "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n<object type=\"Machine\" \
             os_index=\"0\" cpuset=\"0x1\">\n{}\n<object type=\"PU\" os_index=\"0\" \
             cpuset=\"0x1\"/>\n</object>\n</topology>\n",
            node(size)
        )
    };
    let whole = hwloc::read_xml(&xml(" local_memory=\"4096\"")).unwrap().value;
    assert_eq!((whole.nodes[0].memory_bytes, whole.nodes[0].memory_unknown), (4096, false));
    let quoted = each_line(&xml(" local_memory=\"4096\""), |_, line| format!("> {line}"));
    assert_eq!(hwloc::read_xml(&quoted).unwrap().value, whole);
    let xml_of_4k = xml(" local_memory=\"4096\"");
    for text in [
        format!("$ lstopo --of xml\n{xml_of_4k}$ \n"),
        format!("Here:\n```xml\n{xml_of_4k}```\nThanks,\n"),
        format!("<pre>{}</pre>\n", xml_of_4k.trim()),
        each_line(&xml_of_4k, |_, line| format!("    {line}")),
    ] {
        assert_eq!(hwloc::read_xml(&text).unwrap().value, whole, "{text}");
    }
    assert!(hwloc::read_xml(&format!("{xml_of_4k}{xml_of_4k}")).is_err(), "two machines");
    let unsaid = hwloc::read_xml(&xml("")).unwrap().value;
    assert!(unsaid.nodes[0].memory_unknown);
}

#[test]
fn cpus_without_a_listing_node_are_on_the_only_one_or_on_that_of_their_own_sets() {
    let topology = |nodes: &str, cpus: [&str; 2]| {
        let [first, second] = cpus;
        format!(
            "$ lstopo --of xml\nhere it is:\n<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n\
             <object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\">\n{nodes}\n<object type=\"PU\" \
             os_index=\"0\" cpuset=\"0x1\" nodeset=\"{first}\"/>\n<object type=\"PU\" \
             os_index=\"1\" cpuset=\"0x2\" nodeset=\"{second}\"/>\n</object>\n</topology>\n"
        )
    };
    let node = |id: u32| {
        format!(
            "<object type=\"NUMANode\" os_index=\"{id}\" cpuset=\"0x0\" local_memory=\"4096\"/>"
        )
    };
    let places = |text: &str| {
        let reading = hwloc::read_xml(text).unwrap();
        let cpus = reading.value.nodes.iter().map(|node| node.cpus.to_string()).collect();
        (cpus, codes(&reading.findings).into_iter().map(str::to_owned).collect())
    };
    let expected = |cpus: &[&str], codes: &[&str]| -> (Vec<String>, Vec<String>) {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        (owned(cpus), owned(codes))
    };
    assert_eq!(places(&topology(&node(0), ["0x0"; 2])), expected(&["0,1"], &["line-unread"]));
    let two = node(0) + &node(1);
    let found = places(&topology(&two, ["0x1", "0x2"]));
    assert_eq!(found, expected(&["0", "1"], &["line-unread"]));
    let found = places(&topology(&two, ["0x1", "0x0"]));
    assert_eq!(found, expected(&["0", ""], &["line-unread", "cpu-without-node"]));
    let found = places(&topology("", ["0x0"; 2]));
    assert_eq!(found, expected(&[], &["line-unread", "nodes-missing"]));
}

/// Origin: `numactl -H` of two machines one below the other, without the line `available`.
#[test]
fn two_tables_of_distances_are_of_two_machines() {
    let of = |node: u32| {
        format!(
            "node {node} cpus: 0 1\nnode {node} size: 100 MB\nnode {node} free: 50 MB\nnode \
             distances:\nnode   {node}\n  {node}:  10\n"
        )
    };
    assert_eq!(numactl_of(&of(0)).value.nodes.len(), 1);
    let said = refused(&(of(0) + &of(1)));
    assert!(said.contains("line 11: found `node   1`, expected one table of distances"), "{said}");
}

/// Origin: the results of a playbook for two hosts, as JSON.
#[test]
fn records_of_two_hosts_are_refused_and_the_tags_of_mpirun_are_left_out() {
    let other = TWO_NODES.replace("  0:  10  21", "  0:  10  31");
    let record = |of: &str| format!("{{\"stdout\": {}}}", serde_json::to_string(of).unwrap());
    assert_eq!(numactl_of(&record(TWO_NODES)).value.nodes.len(), 2);
    let said = refused(&format!("[{}, {}]", record(TWO_NODES), record(&other)));
    assert!(said.contains("expected the output of one machine only"), "{said}");
    let tagged = each_line(TWO_NODES, |_, line| format!("[1,0]<stdout>:{line}"));
    assert_eq!(codes(&numactl_of(&tagged).findings), ["log-prefix"]);
    let ranks =
        each_line(TWO_NODES, |_, line| format!("[1,0]<stdout>:{line}\n[1,1]<stdout>:{line}"));
    assert!(refused(&ranks).contains("`[1,1]<stdout>:` after `[1,0]<stdout>:`"));
}

/// Origin: lscpu of a GB10, with two kinds of cores and L3 caches of 8 and 16 MiB.
#[test]
fn l3_caches_of_two_kinds_of_cores_are_not_taken_for_equal() {
    let kind = |name: &str| {
        format!("Model name: {name}\nThread(s) per core: 1\nCore(s) per socket: 2\nSocket(s): 1\n")
    };
    let of = |l3: &str| {
        let text = format!(
            "Architecture: aarch64\nCPU(s): 4\nOn-line CPU(s) list: 0-3\n{}{}L3: {l3}\nNUMA \
             node0 CPU(s): 0-3\n",
            kind("Cortex-X925"),
            kind("Cortex-A725")
        );
        let machine = lscpu::read(&text).expect("read").value;
        (machine.caches.len(), machine.l3_groups().len())
    };
    assert_eq!(of("24 MiB (2 instances)"), (0, 0));
    assert_eq!(of("24 MiB (1 instance)"), (1, 1));
}
