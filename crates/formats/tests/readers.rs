//! The results of each reader for input of our own.

use numalab_formats::{ReadError, Reading, architecture, hwloc, lscpu, machine_toml, numactl};
use numalab_topology::{CacheKind, CpuId, Machine, NodeId};

const LUMI_C: &str = include_str!("../architectures/lumi_partc");
const LUMI_G: &str = include_str!("../architectures/lumi_partg");

fn lists(groups: Vec<numalab_topology::CpuGroup>) -> Vec<String> {
    groups.iter().map(|group| group.cpus.to_string()).collect()
}

fn codes(findings: &[numalab_topology::Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.code.as_str()).collect()
}

#[test]
fn an_architecture_file_gives_names_nodes_and_l3_groups() {
    let reading = architecture::read(LUMI_C).unwrap();
    assert_eq!(reading.findings, []);
    let architecture = reading.value;
    assert_eq!((architecture.system.as_str(), architecture.partition.as_str()), ("LUMI", "PART-C"));
    assert_eq!(architecture.ccds_per_numa, 2);
    assert!(architecture.skip_cores.is_empty());
    let machine = architecture.machine;
    assert_eq!(machine.nodes.len(), 8);
    assert_eq!(machine.nodes[3].cpus.to_string(), "48-63,176-191");
    assert_eq!(lists(machine.l3_groups())[..2], ["0-7,128-135", "8-15,136-143"]);
    assert_eq!(lists(machine.packages()), ["0-63,128-191", "64-127,192-255"]);
    assert_eq!(lists(machine.cores())[17], "17,145");
    assert_eq!(machine.cpu(CpuId(145)).unwrap().thread, 1);
    assert_eq!(machine.validate().len(), 1, "only the distances are not known");
}

#[test]
fn every_known_architecture_is_read_without_findings() {
    for (name, text) in architecture::KNOWN {
        let reading = architecture::read(text).unwrap();
        assert_eq!(reading.findings, [], "{name}");
        assert_eq!(architecture::known(name), Some(text));
    }
    assert_eq!(architecture::known("lumi"), None);
}

#[test]
fn cache_sizes_are_those_of_one_instance() {
    let machine = architecture::read(LUMI_C).unwrap().value.machine;
    let caches: Vec<(u8, CacheKind, Option<u64>)> = machine
        .data_caches_of(CpuId(200))
        .iter()
        .map(|cache| (cache.level, cache.kind, cache.size_bytes))
        .collect();
    assert_eq!(
        caches,
        [
            (1, CacheKind::Data, Some(32 << 10)),
            (2, CacheKind::Unified, Some(512 << 10)),
            (3, CacheKind::Unified, Some(32 << 20)),
        ]
    );
}

#[test]
fn reserved_cores_and_the_newer_indented_layout_are_read() {
    let architecture = architecture::read(LUMI_G).unwrap().value;
    assert_eq!(architecture.skip_cores.to_string(), "0,8,16,24,32,40,48,56");
    assert_eq!(architecture.partition, "PART-G");
    assert_eq!(architecture.machine.l3_groups().len(), 8);
    assert_eq!(architecture.machine.packages().len(), 1);
}

#[test]
fn an_architecture_file_with_missing_parts_is_refused() {
    let without = |line: &str| {
        let kept: Vec<&str> =
            LUMI_G.lines().filter(|text| !text.trim_start().starts_with(line)).collect();
        architecture::read(&kept.join("\n")).unwrap_err().to_string()
    };
    assert_eq!(without("SYSTEM_NAME"), "architecture file: no SYSTEM_NAME= line");
    assert_eq!(without("CCDS_PER_NUMA"), "architecture file: no CCDS_PER_NUMA= line");
    assert_eq!(without("NUMA node"), "architecture file: no `NUMA node0 CPU(s):` line");
    let bad = LUMI_G.replace("0,8,16,24", "0,x");
    assert_eq!(
        architecture::read(&bad).unwrap_err().to_string(),
        "architecture file, line 5: found `0,x,32,40,48,56`, expected a list of cpus such as 0,8,16"
    );
    let many = LUMI_G.replace("CCDS_PER_NUMA=2", "CCDS_PER_NUMA=many");
    assert!(matches!(architecture::read(&many), Err(ReadError::Syntax { line: 4, .. })));
}

#[test]
fn l3_groups_that_disagree_are_a_finding_and_the_given_number_wins() {
    let reading =
        architecture::read(&LUMI_G.replace("CCDS_PER_NUMA=2", "CCDS_PER_NUMA=4")).unwrap();
    assert_eq!(codes(&reading.findings), ["l3-groups-differ"]);
    assert_eq!(reading.value.machine.l3_groups().len(), 16);
}

#[test]
fn lscpu_without_nodes_still_has_cpus() {
    let text = "On-line CPU(s) list: 0,1\nOff-line CPU(s) list: 2\nThread(s) per core: 1\n\
                Socket(s): 1\nL1d cache: 32K\n";
    let reading = lscpu::read(text).unwrap();
    assert_eq!(codes(&reading.findings), ["nodes-missing"]);
    assert_eq!(reading.value.online_cpus().to_string(), "0,1");
    assert_eq!(reading.value.cpus.len(), 3);
    assert_eq!(reading.value.caches.len(), 2);
    assert!(matches!(lscpu::read("nothing"), Err(ReadError::Absent { .. })));
}

#[test]
fn lscpu_text_from_a_mail_gives_all_cpus_or_an_error() {
    let text = "> CPU(s): 96\n> On-line CPU(s) list: 0-23,\n> 24-95\n> NUMA node(s): 2\n\
                > NUMA node0 CPU(s): 0-23,48-71\n> NUMA node1 CPU(s): 24-47,\n> 72-95\n";
    let reading = lscpu::read(text).unwrap();
    assert_eq!(codes(&reading.findings)[0], "quoted-text");
    assert_eq!(reading.value.nodes[1].cpus.to_string(), "24-47,72-95");
    let without = |line: &str| lscpu::read(&text.replace(line, "")).unwrap_err().to_string();
    assert_eq!(
        without("> NUMA node1 CPU(s): 24-47,\n> 72-95\n"),
        "lscpu output: nodes: 2 announced, only 1 described; expected the whole text"
    );
    assert_eq!(
        without(",\n> 72-95"),
        "lscpu output: cpus of nodes: 0-95 announced, only 0-71 described; expected the whole text"
    );
    let half = "CPU(s): 96\nOn-line CPU(s) list: 0-47\n";
    assert!(
        lscpu::read(half)
            .unwrap_err()
            .to_string()
            .contains("cpus: 96 announced, only 48 described")
    );
}

/// A Raspberry Pi with `numa=fake=2`.
#[test]
fn cores_and_caches_of_fake_nodes_are_counted_once() {
    let text = "CPU(s): 4\nOn-line CPU(s) list: 0-3\nThread(s) per core: 1\n\
                L1d: 256 KiB (4 instances)\nNUMA node(s): 2\n\
                NUMA node0 CPU(s): 0-3\nNUMA node1 CPU(s): 0-3\n";
    let Reading { value: machine, findings } = lscpu::read(text).unwrap();
    assert_eq!(codes(&findings), ["nodes-share-cpus"]);
    assert_eq!(machine.cores().len(), 4);
    let of_each: Vec<_> = machine.caches.iter().map(|cache| cache.cpus.to_string()).collect();
    assert_eq!(of_each, ["0", "1", "2", "3"]);
}

#[test]
fn counts_of_two_machines_are_not_mixed() {
    let of =
        |nodes: usize, cpus: &str| format!("NUMA node(s): {nodes}\nNUMA node0 CPU(s): {cpus}\n");
    let both = of(1, "0-7") + &of(2, "0-7") + "NUMA node1 CPU(s): 8-15\n";
    let said = lscpu::read(&both).unwrap_err().to_string();
    assert_eq!(
        said,
        "lscpu output, line 3: found `2`, expected 1 again: the output of one machine"
    );
    assert!(lscpu::read(&(of(1, "0-7") + &of(1, "0-7"))).is_ok());
}

#[test]
fn nodes_that_numactl_does_not_announce_are_refused() {
    let of = |nodes: std::ops::Range<u32>| -> String {
        nodes.map(|node| format!("node {node} cpus: {node}\nnode {node} size: 9 MB\n")).collect()
    };
    let text = |announced: &str| announced.to_owned() + &of(0..3);
    let said = numactl::read(&text("available: 2 nodes (0-1)\n")).unwrap_err().to_string();
    assert_eq!(
        said,
        "numactl --hardware, line 6: found `node 2 cpus: 2`, expected one of nodes 0,1, which the \
         text announces"
    );
    assert!(numactl::read(&text("available: 3 nodes (0-2)\n")).is_ok());
    let late = of(2..4) + "available: 2 nodes (0-1)\n" + &of(0..2);
    assert!(numactl::read(&late).unwrap_err().to_string().contains("one machine only"));
}

#[test]
fn lscpu_counts_that_do_not_divide_are_findings() {
    let text = "NUMA node0 CPU(s): 0-2\nThread(s) per core: 2\nNUMA node(s): 0\nL3 cache: 9 MiB (2 instances)\nSocket(s): 2\n";
    let reading = lscpu::read(text).unwrap();
    let expected = ["nodes-announced", "cores-assumed", "cores-unknown", "caches-unknown"];
    assert_eq!(codes(&reading.findings), expected);
    let text = "NUMA node0 CPU(s): 0-2\nThread(s) per core: 1\nL3 cache: 8 MiB (2 instances)\n\
                Socket(s): 2\n";
    let reading = lscpu::read(text).unwrap();
    assert_eq!(
        codes(&reading.findings),
        ["packages-unknown", "l3-groups-unknown", "caches-unknown"]
    );
}

#[test]
fn numactl_output_is_read_with_gaps_and_without_distances() {
    let text = "available: 2 nodes (0,8)\nnode 0 cpus: 0 1\nnode 0 size: 100 MB\nnode 0 free: 50 MB\n\
                node 8 cpus:\nnode 8 size: 0 MB\nnode 8 free: 0 MB\n";
    let machine = numactl::read(text).unwrap().value;
    assert_eq!(machine.nodes[1].id, NodeId(8));
    assert_eq!(machine.nodes[0].memory_bytes, 100 << 20);
    assert_eq!(machine.nodes[0].free_bytes, Some(50 << 20));
    assert!(machine.distances.is_empty());
}

#[test]
fn compressed_lists_of_cpus_are_read() {
    let text =
        "available: 2 nodes (0-1)\nnode 0 cpus: 0-7, 16-23 (16)\nnode 1 cpus: 8-15, 24-31 (16)\n";
    let reading = numactl::read(text).unwrap();
    assert_eq!(codes(&reading.findings), ["distances-missing"]);
    assert_eq!(reading.value.nodes[0].cpus.to_string(), "0-7,16-23");
    assert_eq!(reading.value.nodes[1].cpus.len(), 16);
    assert!(numactl::write(&reading.value).starts_with("available: 2 nodes (0-1)\n"));
}

#[test]
fn more_nodes_than_linux_supports_are_refused_by_every_reader() {
    let numactl_of = |nodes: u32| -> String {
        (0..nodes).map(|node| format!("node {node} cpus: {node}\n")).collect()
    };
    assert_eq!(numactl::read(&numactl_of(1024)).unwrap().value.nodes.len(), 1024);
    let error = numactl::read(&numactl_of(1025)).unwrap_err().to_string();
    assert_eq!(error, "numactl --hardware: 1025 nodes, expected at most 1024");
    let toml: String = (0..1025).map(|node| format!("[[node]]\nid = {node}\n")).collect();
    let error = machine_toml::read(&toml).unwrap_err().to_string();
    assert!(error.contains("1025 nodes, expected at most 1024"), "{error}");
    let lscpu_text: String =
        (0..1025).map(|node| format!("NUMA node{node} CPU(s): {node}\n")).collect();
    let error = lscpu::read(&lscpu_text).unwrap_err().to_string();
    assert!(error.contains("1025 nodes, expected at most 1024"), "{error}");
    let objects: String =
        (0..1025).map(|node| format!("<object type=\"NUMANode\" os_index=\"{node}\"/>")).collect();
    let xml = format!(
        "<topology><object type=\"Machine\"><object type=\"PU\" os_index=\"0\"/>{objects}</object></topology>"
    );
    let error = hwloc::read_xml(&xml).unwrap_err().to_string();
    assert!(error.contains("1025 nodes, expected at most 1024"), "{error}");
}

#[test]
fn short_texts_that_repeat_many_cpus_are_read_quickly() {
    // Each of these inputs would be millions of cpus, one by one.
    let lscpu_text: String =
        (0..1000).map(|node| format!("NUMA node{node} CPU(s): 0-65535\n")).collect();
    assert_eq!(lscpu::read(&lscpu_text).unwrap().value.cpus.len(), 65_536);
    let caches = "\n[[cache]]\nlevel = 2\nkind = \"data\"\ncpus = [\"0-65535\"]".repeat(100);
    let error = machine_toml::read(&format!("[cpus]\nonline = \"0-65535\"\n{caches}"));
    assert!(error.unwrap_err().to_string().contains("cpus in caches, expected at most"));
    let empty_rows = format!("distances = [{}]", "[],".repeat(100_000));
    let error = machine_toml::read(&empty_rows).unwrap_err().to_string();
    assert!(error.contains("100000 rows of distances"), "{error}");
    let stride = machine_toml::read("[cpus]\nonline = \"0-65535:2\"").unwrap_err().to_string();
    assert!(stride.contains("without a stride"), "{stride}");
    let twice = machine_toml::read("[cpus]\nonline = \"0-3\"\n[cores]\n0 = \"0-1\"\n1 = \"1-2\"");
    assert!(twice.unwrap_err().to_string().contains("[cores] has cpu 1 in two sets"));
}

#[test]
fn numactl_oddities_are_findings() {
    let text = "hello,\n[me@box ~]$ numactl -H\navailable: 2 nodes (0-1)\nnode 0 cpus: 0 1\n\
                libnuma: Warning: /sys not mounted\nnode 1 cpus: 1 2\n\
                node distances:\nnode   0   1\n  0:  10  20\n  1:  20  10\n[me@box ~]$\nBye\n";
    let reading = numactl::read(text).unwrap();
    let expected = ["line-unread"; 5].into_iter().chain(["cpu-twice"]);
    let mut found = codes(&reading.findings);
    found.sort_unstable_by_key(|code| *code != "line-unread");
    assert_eq!(found, expected.collect::<Vec<_>>());
    assert_eq!(reading.value.cpu(CpuId(1)).unwrap().node, Some(NodeId(0)));
}

#[test]
fn nodes_of_numa_fake_share_their_cpus_in_every_format_that_says_so() {
    let text = |far: u32| {
        format!(
            "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 100 MB\nnode 0 free: 9 MB\n\
             node 1 cpus: 0 1\nnode 1 size: 100 MB\nnode 1 free: 9 MB\n\
             node distances:\nnode   0   1 \n  0:  10  {far} \n  1:  {far}  10 \n"
        )
    };
    let reading = numactl::read(&text(10)).unwrap();
    assert_eq!(codes(&reading.findings), ["nodes-share-cpus"]);
    let machine = reading.value;
    assert_eq!(machine.nodes[1].cpus.to_string(), "0,1");
    assert_eq!(machine.cpu(CpuId(1)).unwrap().node, Some(NodeId(0)));
    assert_eq!(numactl::write(&machine), text(10));
    assert_eq!(machine_toml::read(&machine_toml::write(&machine).unwrap()).unwrap(), machine);
    assert_eq!(machine_toml::scaled(&machine, 1, u64::MAX).nodes[1].cpus.to_string(), "0");
    let apart = numactl::read(&text(20)).unwrap();
    assert_eq!(codes(&apart.findings), ["cpu-twice"]);
    assert!(apart.value.nodes[1].cpus.is_empty());
    let lscpu = lscpu::read("CPU(s): 2\nNUMA node0 CPU(s): 0,1\nNUMA node1 CPU(s): 0,1\n").unwrap();
    assert!(codes(&lscpu.findings).contains(&"nodes-share-cpus"), "{:?}", lscpu.findings);
}

/// Two nodes of 24 cores with two threads, as wrapped by a mail program at 72 columns.
const WRAPPED: &str = "\
available: 2 nodes (0-1)
node 0 cpus: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22
23 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70
71
node 0 size: 193100 MB
node 0 free: 150000 MB
node 1 cpus: 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42
43 44 45 46 47 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90
91 92 93 94 95
node 1 size: 193500 MB
node 1 free: 150000 MB
node distances:
node   0
  1
  0:  10
  21
  1:  21  10
";

#[test]
fn wrapped_quoted_and_coloured_text_gives_the_whole_machine() {
    let machine = numactl::read(WRAPPED).unwrap();
    assert_eq!(machine.findings, []);
    let machine = machine.value;
    assert_eq!(machine.nodes[0].cpus.to_string(), "0-23,48-71");
    assert_eq!(machine.nodes[1].cpus.to_string(), "24-47,72-95");
    assert_eq!(machine.distances.get(0, 1), Some(21));
    let each_line = |start: &str, end: &str| -> String {
        WRAPPED.lines().map(|line| format!("{start}{line}{end}\n")).collect()
    };
    for text in [
        each_line("> ", ""),
        each_line(">> > ", ""),
        each_line("    ", "\r"),
        each_line("\u{1b}[32m", "\u{1b}[0m"),
        WRAPPED.replace(' ', "\u{a0}"),
        WRAPPED.replace(' ', "\t"),
        format!("root@box:~# numactl --hardware\n\n{WRAPPED}root@box:~#"),
    ] {
        assert_eq!(numactl::read(&text).unwrap().value, machine, "{text}");
    }
}

#[test]
fn text_that_has_lost_a_part_of_the_machine_is_refused() {
    let refuse = |text: &str| numactl::read(text).unwrap_err().to_string();
    let cut = &WRAPPED[..WRAPPED.find("node 1 cpus").unwrap()];
    assert_eq!(
        refuse(cut),
        "numactl --hardware: nodes: 0,1 announced, only 0 described; expected the whole text"
    );
    let strange = WRAPPED.replace("71\n", "71 and so on\n");
    assert!(refuse(&strange).contains("line 4: found `71 and so on`"), "{}", refuse(&strange));
    let apart = WRAPPED.replace("node 0 cpus:", "node 0 size: 5 MB\n");
    assert!(refuse(&apart).contains("expected a line with a label for its numbers"));
    assert_eq!(
        refuse("No NUMA support available on this system.\n"),
        "numactl --hardware: the text says `No NUMA support available on this system.`: it does not describe a machine"
    );
}

#[test]
fn memory_that_numactl_does_not_report_is_unknown_and_not_zero() {
    let text = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 32100 MB\n\
                node 0 free: 30000 MB\nnode 1 cpus:\nnode 1 size: <not available>\n\
                node 1 free: <not available>\nnode distances:\nnode 0 1\n 0: 10 20\n 1: 20 10\n";
    let reading = numactl::read(text).unwrap();
    assert_eq!(reading.findings, []);
    let machine = reading.value;
    let [known, unknown] = machine.nodes.as_slice() else { panic!("two nodes") };
    assert!(!known.memory_unknown && unknown.memory_unknown);
    assert_eq!((unknown.memory_bytes, unknown.free_bytes), (0, None));
    assert_eq!(machine.validate(), []);
    assert_eq!(machine.memory_nodes().to_string(), "0,1");
    let json = serde_json::to_value(unknown).unwrap();
    assert!(json["memory_bytes"].is_null() && known.memory_bytes == 32_100 << 20);
    assert_eq!(serde_json::from_value::<numalab_topology::Node>(json).unwrap(), *unknown);
    let toml = machine_toml::write(&machine).unwrap();
    assert_eq!(machine_toml::read(&toml).unwrap().nodes, machine.nodes);
    assert!(numactl::write(&machine).contains("node 1 size: <not available>"));
}

#[test]
fn distances_of_0_and_255_are_not_distances() {
    let text = |far: u32| {
        format!(
            "node 0 cpus: 0\nnode 0 size: 9 MB\nnode 1 cpus: 1\nnode 1 size: 9 MB\n\
             node distances:\nnode   0   1\n  0:  10  {far}\n  1:  {far}  10\n"
        )
    };
    for (far, code, known) in
        [(0, "distance-value", None), (255, "distance-unreachable", Some(255))]
    {
        let reading = numactl::read(&text(far)).unwrap();
        assert!(codes(&reading.findings).contains(&code), "{:?}", reading.findings);
        let [zero, one] = [0, 1].map(NodeId);
        assert_eq!(reading.value.distance(zero, one), known);
        assert_eq!(reading.value.cost_distance(zero, one), None);
    }
}

#[test]
fn damaged_numactl_lines_are_refused_with_their_number() {
    let refuse = |text: &str| numactl::read(text).unwrap_err().to_string();
    assert_eq!(
        refuse("node 0 cpus: 0 x"),
        "numactl --hardware, line 1: found `node 0 cpus: 0 x`, expected cpus such as `0 1 2` or `0-2, 8 (4)`"
    );
    assert_eq!(
        refuse("hello"),
        "numactl --hardware: no node in the text, such as `node 0 cpus: 0 1 2 3`"
    );
    assert!(refuse("node 0 size: 99999999999999999999 MB").contains("a size in MB"));
    assert!(refuse("node 0 cpus:\nnode 0\n 0: 300").contains("distances from 0 to 255"));
}

/// The output of `lstopo` 2.9 for two packages, shortened.
const XML: &str = r#"<?xml version="1.0"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x0000000f" complete_cpuset="0x0000001f" allowed_cpuset="0x00000007" nodeset="0x3" complete_nodeset="0x7" allowed_nodeset="0x3">
  <object type="NUMANode" os_index="2" cpuset="0xf" complete_cpuset="0x1f" local_memory="1024"/>
  <object type="Package" os_index="7" cpuset="0x3">
   <object type="MemCache" cache_size="4096" cache_associativity="1" cache_linesize="64">
    <object type="NUMANode" os_index="0" cpuset="0x3" local_memory="4096"/>
   </object>
   <object type="L3Cache" cpuset="0x3" cache_size="100" cache_linesize="64" cache_associativity="-1" cache_type="0">
    <object type="Core" os_index="0" cpuset="0x3">
     <object type="PU" os_index="0" cpuset="0x1"/><object type="PU" os_index="1" cpuset="0x2"/>
    </object>
   </object>
  </object>
  <object type="Package" os_index="9" cpuset="0xc">
   <object type="NUMANode" os_index="1" cpuset="0xc" local_memory="8192"/>
   <object type="PU" os_index="2" cpuset="0x4"/><object type="PU" os_index="3" cpuset="0x8"/>
  </object>
 </object>
 <distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os">
  <indexes length="4">1 0 </indexes><u64values length="12">10 21 22 10 </u64values>
 </distances2>
</topology>"#;

fn xml(change: impl Fn(&str) -> String) -> Result<Machine, ReadError> {
    hwloc::read_xml(&change(XML)).map(|reading| reading.value)
}

#[test]
fn lstopo_xml_is_read() {
    let reading = hwloc::read_xml(XML).unwrap();
    assert_eq!(codes(&reading.findings), ["distance-asymmetric", "cpus-hidden"]);
    let machine = reading.value;
    let nodes: Vec<(u32, String, u64)> = machine
        .nodes
        .iter()
        .map(|node| (node.id.0, node.cpus.to_string(), node.memory_bytes))
        .collect();
    assert_eq!(
        nodes,
        [(0, "0,1".to_owned(), 4096), (1, "2,3".to_owned(), 8192), (2, String::new(), 1024)]
    );
    assert_eq!(machine.packages()[0].number, 7);
    assert_eq!(lists(machine.cores()), ["0,1"]);
    assert_eq!(lists(machine.l3_groups()), ["0,1"]);
    assert_eq!(machine.cpu(CpuId(1)).unwrap().thread, 1);
    assert_eq!(machine.distance(NodeId(1), NodeId(0)), Some(21));
    assert_eq!(machine.distance(NodeId(0), NodeId(1)), Some(22));
    assert_eq!(machine.distance(NodeId(0), NodeId(2)), None);
    assert_eq!(machine.caches[0].ways, None);
    assert_eq!(machine.nodes[0].memory_side_caches[0].ways, Some(1));
    assert_eq!(machine.allowed.unwrap().cpus.to_string(), "0-2");
    assert!(!machine.cpus[4].online);
}

/// A Knights Landing in hybrid mode as hwloc shows it: high-bandwidth memory is both a cache of the
/// other memory and a node; its bandwidth is known, as one value, from sets of cpus and from
/// objects.
const HYBRID: &str = r#"<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0xf" gp_index="1">
  <object type="L3Cache" subtype="MemorySideCache" cpuset="0x3" gp_index="2" cache_size="2048" depth="3" cache_linesize="64" cache_associativity="1" cache_type="0">
   <object type="NUMANode" os_index="0" cpuset="0x3" gp_index="3" subtype="DRAM" local_memory="8192">
    <page_type size="4096" count="2"/><page_type size="2097152" count="0"/>
   </object>
   <object type="NUMANode" os_index="2" cpuset="0x3" gp_index="4" subtype="HBM" local_memory="4096"/>
   <object type="PU" os_index="0" cpuset="0x1"/><object type="PU" os_index="1" cpuset="0x2"/>
  </object>
  <object type="Group" cpuset="0xc" gp_index="5">
   <object type="NUMANode" os_index="1" cpuset="0xc" gp_index="6" local_memory="8192"/>
   <object type="PU" os_index="2" cpuset="0x4"/><object type="PU" os_index="3" cpuset="0x8"/>
  </object>
 </object>
 <memattr name="Bandwidth" flags="5">
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="3" value="22500" initiator_cpuset="0x3"/>
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="4" value="90000" initiator_cpuset="0xf"/>
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="3" value="9000" initiator_obj_type="Group" initiator_obj_gp_index="5"/>
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="77" value="1" initiator_cpuset="0x3"/>
 </memattr>
 <memattr name="ReadLatency" flags="6">
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="3" value="120" initiator_cpuset="0x1"/>
 </memattr>
 <memattr name="Latency" flags="6">
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="3" value="150" initiator_cpuset="0x3"/>
 </memattr>
 <memattr name="Colour" flags="1"/>
</topology>"#;

#[test]
fn memory_side_caches_are_those_of_the_memory_behind_them() {
    let machine = hwloc::read_xml(HYBRID).unwrap().value;
    let caches = |node: usize| machine.nodes[node].memory_side_caches.len();
    assert_eq!([caches(0), caches(1), caches(2)], [1, 0, 0]);
    assert_eq!(machine.nodes[0].memory_side_caches[0].size_bytes, 2048);
    assert!(machine.caches.is_empty() && machine.l3_groups().is_empty());
    let pools: Vec<u64> = machine.nodes[0].huge_pages.iter().map(|pool| pool.page_bytes).collect();
    assert_eq!(pools, [2 << 20]);
}

#[test]
fn memory_attributes_are_read_from_sets_of_cpus_and_from_objects() {
    let reading = hwloc::read_xml(HYBRID).unwrap();
    let access: Vec<_> = reading
        .value
        .access
        .iter()
        .map(|access| {
            assert_eq!(access.read_bandwidth_mb_per_s, access.write_bandwidth_mb_per_s);
            let latency = (access.read_latency_ps, access.write_latency_ps);
            (access.initiator.0, access.target.0, latency, access.read_bandwidth_mb_per_s)
        })
        .collect();
    let read = (Some(120_000), None);
    assert_eq!(
        access,
        [
            (0, 0, read, Some(22_500)),
            (0, 2, (None, None), Some(90_000)),
            (1, 0, (None, None), Some(9_000)),
            (1, 2, (None, None), Some(90_000)),
        ],
        "a value for reads takes precedence over the mean of both"
    );
    assert_eq!(codes(&reading.findings), ["memattr-unread", "memattr-value-unread"]);
}

#[test]
fn a_flood_of_memory_attributes_is_refused() {
    let nodes: String = (0..1024)
        .map(|node| format!("<object type=\"NUMANode\" os_index=\"{node}\" gp_index=\"{node}\" cpuset=\"0x{:08x}{}\"/>", 1u32 << (node % 32), ",0x0".repeat(node / 32)))
        .collect();
    let cpus: String =
        (0..1024).map(|cpu| format!("<object type=\"PU\" os_index=\"{cpu}\"/>")).collect();
    let all = ["0xffffffff"; 32].join(",");
    let value = format!(
        "<memattr_value target_obj_gp_index=\"0\" value=\"1\" initiator_cpuset=\"{all}\"/>"
    );
    let values = value.repeat(2000);
    let text = format!(
        "<topology>{nodes}{cpus}<memattr name=\"Latency\" flags=\"6\">{values}</memattr></topology>"
    );
    let refusal = hwloc::read_xml(&text).unwrap_err().to_string();
    assert!(
        refusal.contains("figures of memory attributes, expected at most 1048576"),
        "{refusal}"
    );
}

#[test]
fn damaged_xml_is_refused_with_its_line() {
    let refuse = |change: &dyn Fn(&str) -> String| xml(change).unwrap_err().to_string();
    assert_eq!(
        refuse(&|text| text.replace("local_memory=\"8192\"", "local_memory=\"much\"")),
        "lstopo XML, line 17: found `much`, expected a number for local_memory"
    );
    assert_eq!(
        refuse(&|text| text.replace("type=\"PU\" os_index=\"3\"", "type=\"PU\"")),
        "lstopo XML, line 18: found ``, expected an os_index"
    );
    assert!(refuse(&|text| text.replace("0xc", "0xf...f")).contains("a finite set for cpuset"));
    assert!(refuse(&|text| text.replace("</topology>", "")).starts_with("lstopo XML: "));
    assert_eq!(refuse(&|_| "<a/>".to_owned()), "lstopo XML: no `topology` element");
    assert_eq!(refuse(&|_| "<topology/>".to_owned()), "lstopo XML: no `PU` object");
}

#[test]
fn distances_that_do_not_fit_are_findings() {
    let found = |from: &str, to: &str| {
        let reading = hwloc::read_xml(&XML.replace(from, to)).unwrap();
        reading.findings[0].code.clone()
    };
    assert_eq!(found("10 21 22 10", "10 21 22"), "distances-ignored");
    assert_eq!(found("10 21 22 10", "10 2100 22 10"), "distance-too-large");
    assert_eq!(found("10 21 22 10", "10 0 22 10"), "distance-value");
    assert_eq!(found("10 21 22 10", "10 255 255 10"), "distance-unreachable");
    assert_eq!(found("indexing=\"os\"", "indexing=\"gp\""), "distances-ignored");
}

#[test]
fn empty_allowed_sets_mean_unknown() {
    let set = |name: &str, from: &str| format!("{name}=\"{from}\"");
    let reading = hwloc::read_xml(
        &XML.replace(&set("allowed_nodeset", "0x3"), &set("allowed_nodeset", "0x0"))
            .replace(&set("allowed_cpuset", "0x00000007"), &set("allowed_cpuset", "0x0"))
            .replace(&set("nodeset", "0x3"), &set("nodeset", "0x0")),
    )
    .unwrap();
    let said: Vec<_> =
        reading.findings.iter().map(|found| (&*found.code, &*found.message)).collect();
    let expected = |name, what| {
        ("allowed-set-empty", format!("{name} is empty: every {what} counts as allowed"))
    };
    let [cpus, nodes] = [expected("allowed_cpuset", "cpu"), expected("allowed_nodeset", "node")];
    assert_eq!(said[..2], [(cpus.0, &*cpus.1), (nodes.0, &*nodes.1)]);
    assert_eq!(reading.value.allowed, None);
    assert_eq!(reading.value.usable_memory_nodes().to_string(), "0-2");
}

#[test]
fn infinite_sets_restrict_nothing_and_are_refused_where_they_must_end() {
    let unrestricted = xml(|text| {
        text.replace("allowed_cpuset=\"0x00000007\"", "allowed_cpuset=\"0xf...f\"")
            .replace("allowed_nodeset=\"0x3\"", "allowed_nodeset=\"0xf...f,0x0\"")
    });
    assert_eq!(unrestricted.unwrap().allowed, None);
    let package = xml(|text| text.replace("\"7\" cpuset=\"0x3\"", "\"7\" cpuset=\"0xf...f\""));
    let said = package.unwrap_err().to_string();
    assert!(said.contains("found `0xf...f`, expected a finite set for cpuset"), "{said}");
}

#[test]
fn a_machine_of_hwloc_1_without_numa_has_one_node_with_its_memory() {
    let cpu = |number: u32| format!("<object type=\"PU\" os_index=\"{number}\" cpuset=\"0x1\"/>");
    let text = |memory: &str| {
        let cpus = [cpu(0), cpu(1)].concat();
        format!(
            "<topology><object type=\"Machine\" os_index=\"0\"{memory}>{cpus}</object></topology>"
        )
    };
    let reading = hwloc::read_xml(&text(" local_memory=\"8589934592\"")).unwrap();
    let node = &reading.value.nodes[0];
    assert_eq!((node.cpus.to_string().as_str(), node.memory_bytes), ("0,1", 8 << 30));
    assert_eq!(codes(&reading.findings), ["no-nodes"]);
    assert_eq!(hwloc::read_xml(&text("")).unwrap().value.nodes, []);
}

#[test]
fn the_toml_example_is_read_with_every_key() {
    let machine = machine_toml::read(machine_toml::EXAMPLE).unwrap();
    assert_eq!(machine.nodes.len(), 4);
    assert_eq!(machine.cpu(CpuId(11)).unwrap().thread, 1);
    assert!(!machine.cpu(CpuId(11)).unwrap().online);
    assert_eq!(machine.cpu(CpuId(8)).unwrap().apic_id, Some(64));
    assert_eq!(machine.distance(NodeId(3), NodeId(0)), Some(17));
    assert_eq!(machine.caches.len(), 9);
    assert_eq!(machine.ranges[1].base, 0x20_0000_0000);
    assert_eq!(machine.access[0].write_latency_ps, Some(260_000));
    assert_eq!(machine.tiers.len(), 2);
    assert_eq!(machine.validate(), []);
}

#[test]
fn a_short_toml_is_enough() {
    let machine =
        machine_toml::read("[[node]]\nid = 0\ncpus = \"0-3\"\nmemory = \"4G\"\n").unwrap();
    assert_eq!(machine.online_cpus().to_string(), "0-3");
    assert_eq!(machine.memory_bytes(), 4 << 30);
}

#[test]
fn bad_toml_is_refused_with_position_or_ids() {
    let refuse = |text: &str| machine_toml::read(text).unwrap_err().to_string();
    let unknown = refuse("[[node]]\nid = 0\nmemroy = \"4G\"\n");
    assert!(unknown.contains("line 3, column 1") && unknown.contains("`memroy`"), "{unknown}");
    let size = refuse("[[node]]\nid = 0\nmemory = \"4 giga\"\n");
    assert!(size.contains("line 3") && size.contains("`4 giga` is not a size"), "{size}");
    let key = refuse("[packages]\nx = \"0\"\n");
    assert!(key.contains("line 1") && key.contains("key `x`"), "{key}");
    let twice = refuse("[[node]]\nid = 0\ncpus = \"0\"\n[[node]]\nid = 1\ncpus = \"0\"\n");
    assert_eq!(twice, "machine TOML: cpu 0 is on node 0 and on node 1");
    assert_eq!(
        refuse("[[node]]\nid = 3\n[[node]]\nid = 3\n"),
        "machine TOML: node 3 is listed twice"
    );
    assert_eq!(
        refuse("distances = [[10, 20]]"),
        "machine TOML: row 0 of distances has 2 values, expected 1"
    );
    assert!(refuse("distances = [[300]]").contains("expected 0 to 255, or -1"));
    assert!(refuse("[cores]\n0 = \"4\"\n").contains("names cpu 4"));
    assert!(
        refuse("[cpus]\nonline = \"0\"\noffline = \"0\"\n").contains("both online and offline")
    );
    assert!(
        refuse("[cpus]\nonline = \"0\"\n[[node]]\nid = 0\ncpus = \"1\"").contains("neither in")
    );
}

#[test]
fn numactl_text_that_ends_early_or_is_of_two_machines_is_refused() {
    let whole = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1 10 11\nnode 0 size: 100 MB\n\
                 node 1 cpus: 2 3\nnode 1 size: 100 MB\nnode distances:\nnode   0   1\n  0:  10  20\n  \
                 1:  20  10\n";
    assert_eq!(numactl::read(whole).unwrap().findings, []);
    let refuse = |text: &str| numactl::read(text).unwrap_err().to_string();
    let cut = &whole[..whole.find(" 3\n").expect("its cpus")];
    assert_eq!(
        refuse(cut),
        "numactl --hardware: sizes of nodes: 0,1 announced, only 0 described; expected the whole text"
    );
    let cut = &whole[..whole.find("  1:").expect("a row")];
    assert_eq!(
        refuse(cut),
        "numactl --hardware: rows of node distances: 0,1 announced, only 0 described; expected \
         the whole text"
    );
    let cut = &whole[..whole.len() - 5];
    assert_eq!(
        refuse(cut),
        "numactl --hardware: node 1 has 1 distance under 2 nodes; expected one for each"
    );
    assert!(refuse(&whole.repeat(2)).contains("expected the output of one machine only"));
    let counted = whole.replace("2 nodes", "4 nodes");
    assert!(refuse(&counted).contains("the announced number of nodes in the list"), "{counted}");
}

#[test]
fn numactl_lists_are_the_same_wherever_a_terminal_or_a_mail_wraps_them() {
    let cpus = |from: u32| (from..from + 48).map(|cpu| format!(" {cpu}")).collect::<String>();
    let tail = "node distances:\nnode   0   1\n  0:  10  21\n  1:  21  10\n";
    let node =
        |node: u32| format!("node {node} cpus:{}\nnode {node} size: 100 MB\n", cpus(node * 48));
    let head = "available: 2 nodes (0-1)\n";
    let whole = numactl::read(&format!("{head}{}{}{tail}", node(0), node(1))).unwrap();
    for width in 24..140 {
        let wrapped: String = [head.to_owned(), node(0), node(1), tail.to_owned()]
            .concat()
            .lines()
            .flat_map(|line| {
                let parts = line.as_bytes().chunks(width).map(<[u8]>::to_vec);
                parts.map(|part| String::from_utf8(part).unwrap() + "\n").collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(numactl::read(&wrapped).unwrap().value, whole.value, "{width}: {wrapped}");
    }
    let alone = "available: 1 nodes (0)\nnode 0 cpus:\n0 1 2\nnode 0 size: 100 MB\n";
    assert_eq!(numactl::read(alone).unwrap().value.cpus.len(), 3);
    // 48 as 4 and 8, in order too, is noticed by the other node's cpus.
    let unclear = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1 2 3 4\n8 49\nnode 1 cpus: 4 5 6 7\n";
    let said = numactl::read(unclear).unwrap_err().to_string();
    assert!(said.contains("each cpu once and in order"), "{said}");
}

#[test]
fn lscpu_cores_are_those_of_the_architecture_or_unknown() {
    let text = |architecture: &str, cores: u32, online: &str| {
        format!(
            "Architecture: {architecture}\nOn-line CPU(s) list: {online}\nThread(s) per core: 2\n\
             Core(s) per socket: {cores}\nSocket(s): 1\nNUMA node(s): 1\nNUMA node0 CPU(s): {online}\n"
        )
    };
    let siblings = |text: &str| {
        let reading = lscpu::read(text).unwrap();
        let first: Vec<String> =
            reading.value.cores().iter().map(|core| core.cpus.to_string()).take(1).collect();
        (first.concat(), codes(&reading.findings).join(" "))
    };
    let known = |cpus: &str| (cpus.to_owned(), String::new());
    let assumed = ("0,2".to_owned(), "cores-assumed".to_owned());
    assert_eq!(siblings(&text("x86_64", 2, "0-3")), assumed);
    assert_eq!(siblings(&text("ppc64le", 2, "0-3")), known("0,1"));
    assert_eq!(siblings(&text("s390x", 2, "0-3")), known("0,1"));
    // Eight cores of two threads and four of one: lscpu counts twelve cores and two threads.
    let hybrid = siblings(&text("x86_64", 12, "0-19"));
    assert_eq!(hybrid, (String::new(), "cores-unknown".to_owned()));
}

#[test]
fn lscpu_caches_of_all_cpus_need_no_known_cores() {
    let text = "Architecture: x86_64\nOn-line CPU(s) list: 0-19\nThread(s) per core: 2\n\
                Core(s) per socket: 12\nSocket(s): 1\nL1d cache: 512 KiB (12 instances)\n\
                L2 cache: 12 MiB (9 instances)\nL3 cache: 25 MiB (1 instance)\n\
                NUMA node(s): 1\nNUMA node0 CPU(s): 0-19\n";
    let Reading { value: machine, findings } = lscpu::read(text).unwrap();
    let [cache] = &machine.caches[..] else { panic!("{:?}", machine.caches) };
    assert_eq!((cache.level, cache.size_bytes, cache.cpus.len()), (3, Some(25 << 20), 20));
    assert_eq!((machine.l3_groups().len(), machine.packages().len()), (1, 1));
    assert_eq!(codes(&findings), ["cores-unknown", "caches-unknown"]);
    assert!(findings[1].to_string().contains("L1d, L2"), "{}", findings[1]);
}

/// Returns the caches of a processor in lscpu's words, such as `L1d 32K x 4`, and the findings.
fn caches_of(head: &str, caches: &str) -> (String, String) {
    let reading = lscpu::read(&format!("{head}{caches}")).unwrap();
    let mut all: Vec<(String, usize)> = Vec::new();
    for cache in &reading.value.caches {
        let kib = cache.size_bytes.unwrap() >> 10;
        let name = format!("L{} {kib}K", cache.level);
        match all.last_mut().filter(|(last, _)| *last == name) {
            Some((_, count)) => *count += 1,
            None => all.push((name, 1)),
        }
    }
    let all: Vec<String> = all.iter().map(|(name, count)| format!("{name} x {count}")).collect();
    (all.join(", "), codes(&reading.findings).join(" "))
}

#[test]
fn sizes_of_caches_are_of_one_or_of_all_instances_by_the_version_of_lscpu() {
    let head = |vendor: &str, cores: u32, packages: u32| {
        let all = cores * packages - 1;
        format!(
            "Architecture: x86_64\nVendor ID: {vendor}\nOn-line CPU(s) list: 0-{all}\n\
             Thread(s) per core: 1\nCore(s) per socket: {cores}\nSocket(s): {packages}\n\
             NUMA node(s): 1\nNUMA node0 CPU(s): 0-{all}\n"
        )
    };
    let intel = head("GenuineIntel", 12, 2);
    let one = caches_of(&intel, "L1d cache: 32K\nL2 cache: 1024K\nL3 cache: 16896K\n");
    let whole = "L1 32K x 24, L2 1024K x 24, L3 16896K x 2".to_owned();
    assert_eq!(one, (whole.clone(), String::new()));
    let sums = caches_of(&intel, "L1d cache: 768 KiB\nL2 cache: 24 MiB\nL3 cache: 33 MiB\n");
    assert_eq!(sums, (whole, String::new()), "util-linux 2.34 to 2.36");
    let amd = caches_of(&head("AuthenticAMD", 12, 2), "L2 cache: 512K\nL3 cache: 16384K\n");
    assert_eq!(amd, ("L2 512K x 24".to_owned(), "caches-unknown".to_owned()), "several L3s");
    let phi = caches_of(&intel, "L1d cache: 32K\nL2 cache: 1024K\n");
    assert_eq!(phi, ("L1 32K x 24".to_owned(), "caches-unknown".to_owned()), "shared by a tile");
    let arm = intel.replace("x86_64", "aarch64").replace("GenuineIntel", "ARM");
    let arm = caches_of(&arm, "L1d cache: 64K\nL2 cache: 512K\nL3 cache: 32768K\n");
    assert_eq!(arm, ("L1 64K x 24".to_owned(), "caches-unknown caches-unknown".to_owned()));
}

#[test]
fn a_rounded_sum_of_caches_gives_the_size_of_each_or_shows_that_they_differ() {
    let of = |cores: u32, line: &str| {
        let head = format!(
            "Architecture: x86_64\nOn-line CPU(s) list: 0-{0}\nThread(s) per core: 1\n\
             NUMA node0 CPU(s): 0-{0}\n",
            cores - 1
        );
        caches_of(&head, line).0
    };
    // 112 times 48 KiB are 5.25 MiB, 24 times 48 KiB are 1.125 MiB, 12 times 96 MiB 1.125 GiB.
    assert_eq!(of(112, "L1d: 5.3 MiB (112 instances)\n"), "L1 48K x 112");
    assert_eq!(of(24, "L1d: 1.1 MiB (24 instances)\n"), "L1 48K x 24");
    assert_eq!(of(96, "L3: 1.1 GiB (12 instances)\n"), "L3 98304K x 12");
    assert_eq!(of(28, "L3: 38.5 MiB (1 instance)\n"), "L3 39424K x 1");
    assert_eq!(of(26, "L3: 35.8 MiB (1 instance)\n"), "L3 36608K x 1");
    // Hybrid processors of Intel without second threads: 8 of 48 KiB and 16 of 32 KiB.
    assert_eq!(of(24, "L1d: 896 KiB (24 instances)\n"), "");
    assert_eq!(of(24, "L2: 40 MiB (12 instances)\n"), "");
    let big_little = "Model name: Cortex-A55\nModel name: Cortex-A76\n";
    let differing = of(8, &format!("{big_little}L1d: 384 KiB (8 instances)\n"));
    assert_eq!(differing, "", "four of 32 KiB and four of 64 KiB");
}

#[test]
fn drawings_of_lstopo_are_refused_with_the_command_that_writes_xml() {
    for text in ["Machine (16GB total)\n  Package L#0\n", "Package:2 NUMANode:1 PU:2", ""] {
        let said = hwloc::read_xml(text).unwrap_err().to_string();
        assert!(said.contains("no XML in the text, as `lstopo --of xml FILE` writes it"), "{said}");
    }
}

#[test]
fn two_machines_in_one_text_are_refused_rather_than_one_half_of_each() {
    let numactl = "available: 1 nodes (0)\nnode 0 cpus: 0 1\nnode 0 size: 9 MB\n";
    for (again, expected) in [
        (
            "node 0 cpus: 2 3\n",
            "line 4: found `node 0 cpus: 2 3`, expected one line `node 0 cpus:`",
        ),
        ("node 0 size: 7 MB\n", "expected one line `node 0 size:`"),
    ] {
        let said = numactl::read(&format!("{numactl}{again}")).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
    let lscpu = "On-line CPU(s) list: 0-3\nNUMA node0 CPU(s): 0-3\n";
    assert!(lscpu::read(&format!("{lscpu}{lscpu}")).is_ok(), "the same twice");
    for again in ["On-line CPU(s) list: 0-7\n", "NUMA node0 CPU(s): 0,1\n"] {
        let said = lscpu::read(&format!("{lscpu}{again}")).unwrap_err().to_string();
        assert!(said.contains("expected cpus 0-3 again: the output of one machine"), "{said}");
    }
}
