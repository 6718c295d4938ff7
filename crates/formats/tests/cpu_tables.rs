//! Tables of cpus by `lscpu`, and synthetic descriptions by hwloc.

mod own_machines;

use numalab_formats::hwloc::{is_synthetic, read_synthetic, write_synthetic};
use numalab_formats::{Feature, hwloc, lscpu};
use numalab_topology::{CacheKind, CpuId, EmulatedNodes, EmulationSpec, Machine, UniformMachine};
use proptest::prelude::*;

const TABLE: &str = "\
CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE MAXMHZ
  0    0      0    0 0:0:0:0          yes 3000.0
  1    1      1    1 1:1:1:1          yes 3000.0
  2    0      0    0 0:0:0:0          yes 3000.0
  3    -      -    - -                 no -
";

fn columns(machine: &Machine) -> Vec<[String; 6]> {
    let text = |number: Option<u32>| number.map_or("-".to_owned(), |number| number.to_string());
    let rows = machine.cpus.iter().map(|cpu| {
        let l3 = text(cpu.l3_group);
        let online = if cpu.online { "yes" } else { "no" };
        let node = text(cpu.node.map(|node| node.0));
        [cpu.id.to_string(), node, text(cpu.package), text(cpu.core), l3, online.to_owned()]
    });
    rows.collect()
}

/// Returns the outputs of `lscpu -e`, `-p` and `-J -e` for a machine.
fn outputs(machine: &Machine) -> [String; 3] {
    let mut text = "CPU NODE SOCKET CORE L3 ONLINE\n".to_owned();
    let mut parsable = "# The following\n# CPU,Node,Socket,Core,L3,Online\n".to_owned();
    let mut items = Vec::new();
    for row in columns(machine) {
        text += &format!("{}\n", row.join("    "));
        parsable += &format!("{}\n", row.map(|value| value.replace('-', "")).join(","));
        let row = columns(machine).swap_remove(items.len());
        let names = ["cpu", "node", "socket", "core", "l3", "online"];
        let cells = names.iter().zip(row).map(|(name, value)| match value.as_str() {
            "-" => format!("\"{name}\": null"),
            "yes" => format!("\"{name}\": true"),
            "no" => format!("\"{name}\": false"),
            _ => format!("\"{name}\": {value}"),
        });
        items.push(format!("{{{}}}", cells.collect::<Vec<_>>().join(", ")));
    }
    [text, parsable, format!("{{\"cpus\": [{}]}}", items.join(","))]
}

/// Describes the content of a table.
fn placed(machine: &Machine) -> Vec<(CpuId, bool, [Option<u32>; 4], u32)> {
    let cpus = machine.cpus.iter();
    cpus.map(|cpu| {
        let places = [cpu.node.map(|node| node.0), cpu.package, cpu.core, cpu.l3_group];
        (cpu.id, cpu.online, places, cpu.thread)
    })
    .collect()
}

fn refusal(text: &str) -> String {
    lscpu::read(text).unwrap_err().to_string()
}

#[test]
fn a_cpu_between_others_without_a_row_is_missed() {
    for (lost, missing) in [("  1    1", "cpus 1 have no row"), ("  0    0", "cpus 0 have no row")]
    {
        let kept: String = TABLE
            .lines()
            .filter(|row| !row.starts_with(lost))
            .map(|row| format!("{row}\n"))
            .collect();
        let findings = lscpu::read(&kept).unwrap().findings;
        assert!(findings.iter().any(|of| of.message.starts_with(missing)), "{findings:?}");
    }
}

/// `lscpu -e --physical` of s390, and of an Arm board with clusters.
#[test]
fn physical_numbers_count_within_their_book_or_cluster() {
    let of = |header: &str, rows: [&str; 4]| {
        let rows = (0..).zip(rows).map(|(cpu, row)| format!("{cpu} 0 {row}\n"));
        lscpu::read(&format!("CPU NODE {header}\n{}", rows.collect::<String>())).unwrap()
    };
    let reading = of("DRAWER BOOK SOCKET CORE", ["0 0 0 0", "0 0 0 1", "0 1 0 2", "1 0 0 3"]);
    let packages: Vec<_> = reading.value.cpus.iter().map(|cpu| cpu.package).collect();
    assert_eq!(packages, [Some(0), Some(0), Some(1), Some(2)]);
    let said = &reading.findings[0].message;
    assert!(said.starts_with("3 packages of several books have 1 numbers"), "{said}");
    let machine = of("SOCKET CLUSTER CORE", ["0 0 0", "0 0 1", "0 1 0", "0 1 1"]).value;
    assert_eq!(machine.cores().len(), 4);
    let logical = of("BOOK SOCKET CORE", ["0 4 0", "0 4 0", "1 5 1", "1 5 1"]);
    assert_eq!((logical.findings.len(), logical.value.cpus[2].package), (0, Some(5)));
}

#[test]
fn a_table_places_every_cpu_and_missing_columns_are_unknown() {
    let reading =
        lscpu::read(&format!("[user@host ~]$ lscpu -e\n{TABLE}[user@host ~]$\n")).unwrap();
    assert_eq!(reading.findings, []);
    let machine = reading.value;
    assert_eq!(machine.nodes[0].cpus.to_string(), "0,2");
    assert!(machine.nodes.iter().all(|node| node.memory_unknown && node.memory_bytes == 0));
    assert_eq!((machine.cores()[0].cpus.to_string().as_str(), machine.cpus[2].thread), ("0,2", 1));
    assert!(!machine.cpus[3].online && machine.cpus[3].node.is_none());
    let l1: Vec<_> = machine.caches.iter().filter(|cache| cache.level == 1).collect();
    assert_eq!((l1.len(), l1[0].kind, l1[0].size_bytes), (4, CacheKind::Data, None));
    assert!(
        lscpu::read(
            "Architecture: x86_64\nCPU(s): 2\nOn-line CPU(s) list: 0,1\nNUMA node0 CPU(s): 0,1\n"
        )
        .unwrap()
        .value
        .nodes[0]
            .memory_unknown
    );
}

#[test]
fn text_around_a_table_or_json_does_not_change_the_machine() {
    let whole = lscpu::read(TABLE).unwrap().value;
    let [_, parsable, json] = outputs(&whole);
    let json = json.replace(",{", ",\n{");
    for text in [TABLE, &parsable, &json] {
        let whole = lscpu::read(text).unwrap().value;
        let each_line =
            |before: &str| text.lines().map(|l| format!("{before}{l}\n")).collect::<String>();
        for around in [
            format!("\u{feff}{text}"),
            each_line(">"),
            each_line("\u{1b}[0m"),
            each_line("node17: "),
            format!("Sat Nov 29 12:00:00 UTC 2026\n```\n{text}\n```\nThanks,\nX\n"),
            format!("<pre>\n{text}\n</pre>\n"),
            serde_json::json!({"rc": 0, "stdout": format!("{text}\n")}).to_string(),
        ] {
            let read = lscpu::read(&around).unwrap_or_else(|error| panic!("{error}:\n{around}"));
            assert_eq!(read.value, whole, "{around}");
        }
    }
    let findings = lscpu::read(&format!("{TABLE}Thanks,\nX\n")).unwrap().findings;
    assert_eq!(findings[0].place, "line 6");
    assert!(findings[0].message.ends_with("ignored, as well as 1 more line"), "{findings:?}");
    assert!(refusal(&format!("{TABLE}  4 0\n")).contains("line 6: found `4 0`"));
}

#[test]
fn an_unknown_number_of_json_may_be_a_bare_dash() {
    let whole = lscpu::read(TABLE).unwrap().value;
    let json = outputs(&whole)[2].replace(", ", ",\n");
    let bare = json.replace(": null", ": -").replace("false", "false,\n\"book\": -\n");
    assert!(bare.contains(": -,") && bare.contains(": -\n"));
    assert_eq!(lscpu::read(&bare).unwrap().value, lscpu::read(&json).unwrap().value);
}

#[test]
fn plain_output_above_a_table_adds_sizes_and_shows_a_cut() {
    let plain = "CPU(s): 4\nOn-line CPU(s) list: 0-2\nOff-line CPU(s) list: 3\nThread(s) per core: 1\nSocket(s): 1\nL2 cache: 3 MiB (3 instances)\nNUMA node(s): 2\nNUMA node0 CPU(s): 0,2\nNUMA node1 CPU(s): 1\n";
    let machine = lscpu::read(&format!("{plain}\n{TABLE}")).unwrap().value;
    let l2 = machine.caches.iter().find(|cache| cache.level == 2).unwrap();
    assert_eq!((l2.size_bytes, l2.cpus.to_string().as_str()), (Some(1 << 20), "0,2"));
    let cut: String = TABLE.lines().take(2).map(|line| format!("{line}\n")).collect();
    let said = refusal(&format!("{plain}\n{cut}"));
    assert!(said.contains("online cpus: 0-2 announced, only 0 described"), "{said}");
}

#[test]
fn cores_numbered_in_each_package_are_different_cores() {
    let physical = "CPU SOCKET CORE\n0 0 0\n1 0 1\n2 1 0\n3 1 1\n4 0 0\n";
    let cores: Vec<String> = lscpu::read(physical)
        .unwrap()
        .value
        .cores()
        .iter()
        .map(|core| core.cpus.to_string())
        .collect();
    assert_eq!(cores, ["0,4", "1", "2", "3"]);
}

#[test]
fn a_table_that_may_lack_rows_is_noted() {
    let codes = |rows: &str| -> Vec<String> {
        let read = lscpu::read(&format!("# CPU,Core,Socket,Node\n{rows}")).expect("a table");
        read.findings.into_iter().map(|of| format!("{} {}", of.code, of.message)).collect()
    };
    let whole = "0,0,0,0\n1,1,0,0\n2,0,0,0\n3,1,0,0\n";
    assert_eq!(codes(whole), Vec::<String>::new());
    let cut = codes("0,0,0,0\n1,1,0,0\n2,0,0,0\n");
    assert_eq!(cut.len(), 1);
    assert!(cut[0].starts_with("cores-differ the cores of cpus 1 have fewer threads"), "{cut:?}");
    let gap = codes("0,0,0,0\n2,0,0,0\n3,1,0,0\n");
    assert!(gap[0].starts_with("cpus-missing cpus 1 have no row"), "{gap:?}");
}

#[test]
fn columns_that_are_missing_are_findings() {
    let reading = lscpu::read("# CPU,Core\n0,0\n1,1\n").unwrap();
    let codes: Vec<&str> = reading.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["nodes-missing", "packages-unknown"]);
}

#[test]
fn online_cpus_of_no_node_are_a_finding_unless_no_cpu_has_one() {
    let found = |nodes: [&str; 2]| {
        let [a, b] = nodes;
        let text = format!("# CPU,Core,Socket,Node\n0,0,0,{a}\n1,1,0,{b}\n");
        let reading = lscpu::read(&text).unwrap();
        reading.findings.into_iter().map(|of| format!("{} {}", of.code, of.place)).collect()
    };
    let (all, some, none): (Vec<String>, Vec<String>, Vec<String>) =
        (found(["0", "0"]), found(["0", ""]), found(["", ""]));
    assert_eq!((all, some), (vec![], vec!["cpu-without-node column NODE of cpus 1".to_owned()]));
    assert_eq!(none, ["nodes-missing column NODE"]);
}

#[test]
fn a_table_that_is_damaged_is_refused_with_the_line() {
    for (text, expected) in [
        ("CPU NODE CORE\n0 0 0\n1 0\n", "line 3: found `1 0`, expected 3 values"),
        ("CPU NODE CORE\n0 0 0\n0 0 0\n", "line 3: found `0`, expected each cpu once"),
        ("CPU NODE CORE\n0 x 0\n", "line 2: found `x`, expected a number in column NODE"),
        ("CPU NODE CORE\n0 0 0\nand so on for all 96\n", "line 3: found `and so on for all 96`"),
        ("CPU NODE ONLINE\n0 0 ja\n", "found `ja`, expected yes or no in column ONLINE"),
        ("CPU L1d:L2\n0 0:0:0\n", "found `0:0:0`, expected numbers for L1d:L2"),
        ("# CPU,Node\n", "no row of a cpu below the header"),
        ("# CPU,Node\n0,0\n# CPU,Node\n0,0\n", "line 3: found `# CPU,Node`, expected one table"),
        ("{\"cpus\": [{\"cpu\": 0}, {\"node\": 1}]}", "cpus[1]: found `a row`, expected a number"),
        ("{\"cpus\": [{\"cpu\": 0}", "lscpu -J: EOF"),
        ("{\"caches\": []}", "no list `lscpu` or `cpus`"),
    ] {
        let said = refusal(text);
        assert!(said.contains(expected), "{text}: {said}");
    }
}

#[test]
fn fields_below_fields_of_json_are_read() {
    let json = r#"{"lscpu": [{"field": "CPU(s):", "data": "2",
        "children": [{"field": "On-line CPU(s) list:", "data": "0,1"}]},
        {"field": "NUMA:", "data": null,
         "children": [{"field": "NUMA node(s):", "data": "1"},
                      {"field": "NUMA node0 CPU(s):", "data": "0,1"}]}]}"#;
    let machine = lscpu::read(&format!("$ lscpu -J\n{json}\n$\n")).unwrap().value;
    assert_eq!((machine.nodes.len(), machine.cpus.len()), (1, 2));
}

#[test]
fn a_negative_count_is_refused_and_an_unknown_one_is_not() {
    let text = |sockets| format!("CPU(s): 2\nOn-line CPU(s) list: 0,1\nSocket(s): {sockets}\n");
    let error = lscpu::read(&text("-2")).unwrap_err().to_string();
    assert!(error.contains("line 3: found `-2`, expected a number of at least 0"), "{error}");
    assert_eq!(lscpu::read(&text("-")).unwrap().value.cpus.len(), 2);
}

#[test]
fn own_regular_machines_survive_synthetic_descriptions() {
    let mut survived = 0;
    for (name, machine) in own_machines::all() {
        let Ok(written) = write_synthetic(&machine) else { continue };
        survived += 1;
        let text = written.output;
        assert!(is_synthetic(&text), "{text}");
        let mut read = read_synthetic(&text).unwrap().value;
        let expected = hwloc::SYNTHETIC_CARRIED.left(&machine);
        Feature::Distances.clear(&mut read);
        assert_eq!(read, expected, "{name}: {text}");
        assert_eq!(write_synthetic(&read).unwrap().output, text, "{name}");
    }
    assert_eq!(survived, 2, "regular machines");
}

#[test]
fn l3s_of_unequal_sizes_have_no_size_in_a_synthetic_description() {
    let whole = |machine: &Machine| write_synthetic(machine).unwrap();
    let mut machine =
        read_synthetic("pack:1 [numa(memory=8589934592)] l3:2(size=33554432) core:4 pu:1")
            .unwrap()
            .value;
    let equal = whole(&machine);
    assert!(equal.output.contains("l3:2(size=33554432)") && equal.losses.is_empty(), "{equal:?}");
    let first = machine.caches.iter_mut().find(|cache| cache.level == 3).unwrap();
    first.size_bytes = Some(96 << 20);
    let unequal = whole(&machine);
    assert!(unequal.output.contains("l3:2 core"), "{unequal:?}");
    assert_eq!(unequal.losses[0].code, "l3-unequal");
}

#[test]
fn memory_that_a_description_does_not_give_is_unknown() {
    let machine = read_synthetic("pack:2 [numa] core:2 pu:1").unwrap().value;
    assert!(machine.nodes.iter().all(|node| node.memory_unknown));
    let whole = read_synthetic("pack:2 core:2 pu:1").unwrap().value;
    assert_eq!((whole.nodes.len(), whole.nodes[0].cpus.to_string().as_str()), (1, "0-3"));
    assert!(whole.nodes[0].memory_unknown);
}

#[test]
fn synthetic_descriptions_of_another_form_are_refused_with_the_part() {
    for (text, expected) in [
        ("2 3 4", "found `2`, expected a level such as pack:2"),
        ("pack:2 pu:x", "found `pu:x`, expected a number of objects"),
        ("pack:0 pu:2", "found `pack:0`"),
        ("pack:2 [core] pu:2", "found `[core]`, expected memory in brackets"),
        ("pack:2 [numa(memory=8G)] pu:2", "found `memory=8G`, expected bytes"),
        ("pack:2 pu:2(indexes=0,1,2,2)", "expected 4 different numbers"),
        ("pack:2 pu:2(indexes=1*2)", "expected 4 different numbers"),
        ("pack:2 pu:2(indexes=pack:pu)", "types of different levels above, such as numa:core"),
        ("pack:2 pu:2(indexes=pack:pack)", "expected 4 different numbers"),
        ("pack:2 pu:2(indexes=die)", "expected 4 different numbers"),
        ("pack:2 [numa(memory=1GiB pu:2", "expected a closing bracket"),
        ("pack:2 core:2", "no last level such as `pu:2`"),
        ("pack:1000000 pu:2", "found `pack:1000000`, expected a number of objects"),
        ("pack:60000 pu:60000", "cpus, expected at most"),
    ] {
        let said = read_synthetic(text).unwrap_err().to_string();
        assert!(said.contains(expected), "{text}: {said}");
    }
}

fn machines() -> impl Strategy<Value = Machine> {
    (1u32..4, 1u32..4, 1u32..3, any::<u16>()).prop_map(|(packages, groups, threads, offline)| {
        let cpus = packages * groups * threads * 2;
        let l3_groups = packages * groups;
        let memory_bytes = u64::from(packages) << 30;
        let shape =
            UniformMachine { cpus, threads_per_core: threads, packages, l3_groups, memory_bytes };
        let nodes = EmulatedNodes::Equal(packages as usize);
        let mut machine = EmulationSpec::new(nodes).emulate(&shape.build().unwrap()).unwrap();
        for (cpu, bit) in machine.cpus.iter_mut().zip(0..16).skip(1) {
            cpu.online = offline >> bit & 1 == 0;
        }
        machine
    })
}

proptest! {
    #[test]
    fn every_table_of_a_machine_gives_its_cpus(machine in machines()) {
        for text in outputs(&machine) {
            let read = lscpu::read(&text).unwrap().value;
            prop_assert_eq!(placed(&read), placed(&machine), "{}", text);
        }
    }

    #[test]
    fn no_text_of_a_table_makes_the_reader_panic(
        text in "(CPU|NODE|SOCKET|CORE|L1d:L3|ONLINE|# CPU,|[0-9,:{}\\[\\]\"# -]|\n){0,40}",
    ) {
        let _ = lscpu::read(&text);
    }

    #[test]
    fn no_synthetic_description_makes_the_reader_panic(
        text in "(pack:|numa:|pu:|l3:|core:|[0-9]|\\[numa\\]|memory=|indexes=|[*:,() GiB\\[\\]]){0,40}",
    ) {
        let _ = read_synthetic(&text);
    }

    #[test]
    fn regular_machines_survive_synthetic_descriptions(machine in machines()) {
        let Ok(written) = write_synthetic(&machine) else { return Ok(()) };
        let again = read_synthetic(&written.output).unwrap().value;
        prop_assert_eq!(write_synthetic(&again).unwrap().output, written.output);
    }
}
