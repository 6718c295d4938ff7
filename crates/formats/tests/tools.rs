//! The real tools accept the output of the writers. A test whose tool is not installed reports that
//! on stderr, and fails with `NUMALAB_REQUIRE_TOOLS=1`.

mod own_machines;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use numalab_formats::hwloc::{read_outline, read_synthetic, read_xml, write_synthetic, write_xml};
use numalab_formats::{capabilities, libvirt, likwid, lscpu, qemu, svg};
use numalab_topology::Machine;

/// Returns true if `tool` can be run here; `package` is its Debian package.
fn has(tool: &str, package: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()) {
        return true;
    }
    let message = format!("NOT RUN: {tool} is not installed (apt-get install {package})");
    assert!(
        std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_none_or(|value| value != "1"),
        "{message}"
    );
    eprintln!("{message}");
    false
}

/// Runs a tool that must succeed, and returns its output.
fn run(name: &str, command: &mut Command, input: &str) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {command:?}\n{stderr}\n{input}");
    String::from_utf8(output.stdout).unwrap()
}

fn lstopo(name: &str, input: &str) -> String {
    let mut command = Command::new("lstopo-no-graphics");
    command.args(["--of", "xml", "--input", input]);
    run(name, &mut command, "")
}

/// Describes the nodes with cpus and memory, L3 groups, cores and distances: the parts that lstopo
/// must show again.
fn essence(machine: &Machine) -> String {
    let mut text = String::new();
    for node in &machine.nodes {
        let cpus = node.cpus.intersection(&machine.online_cpus());
        text += &format!("node {} `{cpus}` {}\n", node.id, node.memory_bytes);
    }
    for group in machine.packages().iter().chain(&machine.l3_groups()).chain(&machine.cores()) {
        let cpus = group.cpus.intersection(&machine.online_cpus());
        if !cpus.is_empty() {
            text += &format!("`{cpus}` ");
        }
    }
    text += &format!("\n{:?}", machine.distances);
    text
}

/// Returns the machine as an outline has it: without distances, and with sizes in whole GiB.
fn rounded(mut machine: Machine) -> Machine {
    machine.distances = numalab_topology::Distances::default();
    machine.nodes.iter_mut().for_each(|node| node.memory_bytes &= !((1 << 30) - 1));
    machine
}

/// Returns the machines that XML can represent.
fn nested() -> impl Iterator<Item = (&'static str, Machine)> {
    own_machines::all().into_iter().map(|(name, mut machine)| {
        if name == "uneven" {
            machine.cpus.iter_mut().for_each(|cpu| cpu.l3_group = None);
        }
        (name, machine)
    })
}

#[test]
fn lstopo_shows_our_xml_as_intended() {
    if !has("lstopo-no-graphics", "hwloc-nox") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, machine) in nested() {
        let path = folder.path().join("machine.xml");
        std::fs::write(&path, write_xml(&machine).unwrap()).unwrap();
        let shown = lstopo(name, path.to_str().unwrap());
        let read = read_xml(&shown).unwrap().value;
        assert_eq!(essence(&read), essence(&machine), "{name}\n{shown}");
    }
}

#[test]
fn lstopo_shows_our_memory_attributes_without_warnings() {
    if !has("lstopo-no-graphics", "hwloc-nox") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.xml");
    let one_node = {
        let mut machine = own_machines::two_nodes();
        numalab_formats::Feature::Nodes.clear(&mut machine);
        machine.distances = numalab_topology::Distances::uniform(1, 10);
        ("one_node", machine)
    };
    for (name, machine) in nested().chain([one_node]) {
        std::fs::write(&path, write_xml(&machine).unwrap()).unwrap();
        let mut command = Command::new("lstopo-no-graphics");
        command.env("HWLOC_HIDE_ERRORS", "0").args(["--memattrs", "--input"]).arg(&path);
        let Output { status, stdout, stderr } = command.output().unwrap();
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.success() && said.is_empty(), "{name}: {said}");
        let shown = String::from_utf8_lossy(&stdout);
        let figures = |access: &numalab_topology::AccessAttributes| {
            [access.read_latency_ps.map(|ps| ps / 1000), access.read_bandwidth_mb_per_s]
        };
        for figure in machine.access.iter().flat_map(figures).flatten() {
            assert!(
                shown.contains(&format!(" = {figure} from cpuset")),
                "{name}: {figure}: {shown}"
            );
        }
    }
}

#[test]
fn our_reader_agrees_with_version_1_as_lstopo_exports_it() {
    if !has("lstopo-no-graphics", "hwloc-nox") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, machine) in nested() {
        if machine.nodes.iter().any(|node| node.cpus.is_empty()) {
            // lstopo 2.9 loses nodes when it exports memory attached to all cpus to version 1.
            continue;
        }
        let path = folder.path().join("machine.xml");
        std::fs::write(&path, write_xml(&machine).unwrap()).unwrap();
        let mut command = Command::new("lstopo-no-graphics");
        command.args(["--of", "xml", "--export-xml-flags", "v1", "--input"]).arg(&path);
        let read = read_xml(&run(name, &mut command, "")).unwrap().value;
        assert_eq!(essence(&read), essence(&machine), "{name}");
    }
}

#[test]
fn the_outline_of_lstopo_has_what_its_xml_has() {
    if !has("lstopo-no-graphics", "hwloc-nox") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.xml");
    for (name, machine) in nested() {
        let machine = rounded(machine);
        std::fs::write(&path, write_xml(&machine).unwrap()).unwrap();
        for numbers in ["--physical", "--no-caches", "--verbose"] {
            let mut command = Command::new("lstopo-no-graphics");
            command.args(["--of", "console", numbers, "--input"]).arg(&path);
            let shown = run(name, &mut command, "");
            let mut read = rounded(read_outline(&shown).unwrap().value);
            let mut expected = read_xml(&std::fs::read_to_string(&path).unwrap()).unwrap().value;
            expected = rounded(expected);
            if numbers == "--no-caches" {
                for machine in [&mut read, &mut expected] {
                    machine.cpus.iter_mut().for_each(|cpu| cpu.l3_group = None);
                }
            }
            assert_eq!(essence(&read), essence(&expected), "{name}\n{shown}");
        }
    }
}

#[test]
fn the_host_of_libvirts_test_driver_is_read_as_virsh_prints_it() {
    if !has("virsh", "libvirt-clients") {
        return;
    }
    let mut command = Command::new("virsh");
    command.args(["-c", "test:///default", "capabilities"]);
    let shown = run("test driver", &mut command, "");
    let reading = capabilities::read(&shown).unwrap();
    assert_eq!(reading.findings, [], "{shown}");
    let machine = reading.value;
    assert_eq!(machine.nodes.len(), shown.matches("<cell ").count());
    assert_eq!(machine.cpus.len(), shown.matches("<cpu id=").count());
    assert!(machine.nodes.iter().all(|node| node.memory_bytes > 0 && !node.cpus.is_empty()));
}

#[test]
fn likwid_topology_of_this_machine_is_read_with_and_without_its_options() {
    if !has("likwid-topology", "likwid") {
        return;
    }
    let of = |options: &[&str]| {
        let shown = run("likwid-topology", Command::new("likwid-topology").args(options), "");
        let reading = likwid::read(&shown).unwrap_or_else(|error| panic!("{error}:\n{shown}"));
        let mut machine = reading.value;
        machine.nodes.iter_mut().for_each(|node| node.free_bytes = None);
        machine.caches.iter_mut().for_each(|of| (of.line_bytes, of.ways) = (None, None));
        machine
    };
    let machine = of(&[]);
    assert!(machine.nodes.iter().any(|node| node.memory_bytes > 0 && !node.cpus.is_empty()));
    assert!(machine.cpus.iter().all(|cpu| cpu.node.is_some() && cpu.core.is_some()));
    for options in [&["-c"][..], &["-g"], &["-O"], &["-c", "-O"]] {
        assert_eq!(of(options), machine, "{options:?}");
    }
}

#[test]
fn lstopo_builds_the_machines_of_our_synthetic_descriptions() {
    if !has("lstopo-no-graphics", "hwloc-nox") {
        return;
    }
    for (name, mut machine) in
        [("two_nodes", own_machines::two_nodes()), ("small_epyc", own_machines::small_epyc())]
    {
        let description = write_synthetic(&machine).unwrap().output;
        let mut read = read_xml(&lstopo(name, &description)).unwrap().value;
        machine.distances = numalab_topology::Distances::default();
        read.distances = numalab_topology::Distances::default();
        assert_eq!(essence(&read), essence(&machine), "{name}: {description}");
    }
}

#[test]
fn lstopo_and_numalab_read_synthetic_descriptions_the_same_way() {
    if !has("lstopo-no-graphics", "hwloc-nox") {
        return;
    }
    let descriptions = [
        "pack:2 [numa(memory=8GB)] l3:2 core:2 pu:2",
        "numa:2(memory=1000) l3:2 core:2 pu:1(indexes=4*2:1*4)",
        "numa:2(memory=1000) l3:2 core:2 pu:2(indexes=8*2)",
        "numa:2(memory=1000) core:2 pu:2(indexes=numa)",
        "numa:2(memory=1000) core:2 pu:2(indexes=node:core)",
        "numa:2(memory=1000) core:2 pu:1(indexes=core:numa)",
        "pack:2 numa:2(memory=1000 indexes=socket) core:2 pu:2(indexes=core:pack)",
        "pack:2 [numa(memory=1GiB)] group:3 core:1 pu:2(indexes=group:pack)",
        "Package:2 [NUMANode(memory=64GiB)] [NUMANode(memory=16GiB)] Core:4 PU:1",
        "pack:2 [numa(memory=1GiB)] l3:2 [numa(memory=2MiB indexes=5,4,0,1,2,3)] core:1 pu:1",
        "[NUMANode(memory=0x1000)] Package:1 L3Cache:1(size=8MiB) L2Cache:4(size=1024) PU:2",
        "pack:1 [numa(memory=1GiB)] die:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)",
    ];
    for description in descriptions {
        let mut theirs = read_xml(&lstopo(description, description)).unwrap().value;
        let ours = read_synthetic(description).unwrap().value;
        theirs.distances = ours.distances.clone();
        assert_eq!(essence(&ours), essence(&theirs), "{description}");
    }
}

#[test]
fn every_output_of_lscpu_gives_the_same_cpus() {
    if !has("lscpu", "util-linux") {
        return;
    }
    let of = |arguments: &[&str]| {
        let mut command = Command::new("lscpu");
        let text = run("lscpu", command.env("LC_ALL", "C").args(arguments), "");
        let reading = lscpu::read(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
        reading.value
    };
    let table = of(&["-p"]);
    assert_eq!(of(&["-e"]), table);
    assert_eq!(of(&["-J", "-e"]), table);
    assert_eq!(of(&["-p=cache,online,core,node,socket,cpu"]), table);
    let plain = of(&[]);
    assert_eq!(of(&["-J"]), plain);
    assert_eq!(plain.online_cpus(), table.online_cpus());
    assert_eq!(plain.nodes, table.nodes);
}

#[test]
fn qemu_accepts_our_arguments_and_shows_the_nodes() {
    if !has("qemu-system-x86_64", "qemu-system-x86") {
        return;
    }
    for (name, machine) in own_machines::all() {
        let arguments = qemu::write(&machine).unwrap().output;
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-machine", "q35", "-accel", "tcg", "-nodefaults", "-display", "none", "-S"]);
        command.args(["-monitor", "stdio"]).args(&arguments);
        let shown = run(name, &mut command, "info numa\nquit\n");
        let line = |text: String| {
            assert!(shown.contains(&text), "{name}: no `{text}` in\n{shown}\n{arguments:?}");
        };
        let nodes: Vec<_> = machine.nodes.iter().filter(|node| node.online).collect();
        line(format!("{} nodes", nodes.len()));
        for (index, node) in nodes.iter().enumerate() {
            line(format!("node {index} size: {} MB", node.memory_bytes >> 20));
            let cpus = node.cpus.intersection(&machine.online_cpus());
            let start = format!("node {index} cpus:");
            let own = shown.lines().find_map(|line| line.trim().strip_prefix(&start)).unwrap();
            assert_eq!(own.split_whitespace().count(), cpus.len(), "{name}\n{shown}");
        }
    }
}

#[test]
fn qemu_gets_memory_side_caches_only_if_it_accepts_them() {
    if !has("qemu-system-x86_64", "qemu-system-x86") {
        return;
    }
    let cache = |level: u8, size_bytes: u64| numalab_topology::MemorySideCache {
        level,
        size_bytes,
        line_bytes: Some(64),
        ways: Some(1),
    };
    let with = |change: &dyn Fn(&mut Machine)| {
        let mut machine = own_machines::memory_only();
        change(&mut machine);
        machine
    };
    let machines = [
        ("both", with(&|_| ()), true),
        ("no access", with(&|machine| machine.access.clear()), false),
        (
            "latency only",
            with(&|machine| {
                for access in &mut machine.access {
                    (access.read_bandwidth_mb_per_s, access.write_bandwidth_mb_per_s) =
                        (None, None);
                }
            }),
            false,
        ),
        (
            "two levels, nearest to the cpus first",
            with(&|machine| {
                machine.nodes[2].memory_side_caches = vec![cache(2, 128 << 20), cache(1, 64 << 20)];
            }),
            true,
        ),
        (
            "a level left out",
            with(&|machine| machine.nodes[2].memory_side_caches = vec![cache(2, 64 << 20)]),
            false,
        ),
    ];
    for (name, machine, given) in machines {
        let written = qemu::write(&machine).unwrap();
        let caches = written.output.iter().filter(|word| word.starts_with("hmat-cache")).count();
        assert_eq!(caches > 0, given, "{name}");
        let lost = written.losses.iter().any(|loss| loss.code == "memory-side-caches-lost");
        assert_eq!(lost, !given, "{name}: {:?}", written.losses);
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-machine", "q35", "-accel", "tcg", "-nodefaults", "-display", "none", "-S"]);
        command.args(["-monitor", "stdio"]).args(&written.output);
        run(name, &mut command, "quit\n");
    }
}

#[test]
fn qemu_gets_bandwidths_that_fit_its_sixteen_bits() {
    if !has("qemu-system-x86_64", "qemu-system-x86") {
        return;
    }
    // A wide memory and a narrow one, as measured.
    for (name, wide, narrow) in [("one", 67_243, 77_441), ("many", 1_477_443, 3)] {
        let mut machine = own_machines::memory_only();
        for access in &mut machine.access {
            access.read_bandwidth_mb_per_s = Some(wide);
            access.write_bandwidth_mb_per_s = Some(narrow);
        }
        let arguments = qemu::write(&machine).unwrap().output;
        let given = arguments.iter().find_map(|word| word.split_once("data-type=read-bandwidth,"));
        let mb = given.unwrap().1.trim_start_matches("bandwidth=").trim_end_matches('M');
        let off = mb.parse::<u64>().unwrap() as f64 / wide as f64;
        assert!((0.9999..=1.0).contains(&off), "{name}: {mb}");
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-machine", "q35", "-accel", "tcg", "-nodefaults", "-display", "none", "-S"]);
        command.args(["-monitor", "stdio"]).args(&arguments);
        run(name, &mut command, "quit\n");
    }
}

#[test]
fn libvirt_schema_accepts_our_domains() {
    if !has("virt-xml-validate", "libvirt-clients") || !has("xmllint", "libxml2-utils") {
        return;
    }
    let schema = Path::new("/usr/share/libvirt/schemas/domain.rng");
    if !schema.is_file() {
        assert!(std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_none_or(|value| value != "1"));
        eprintln!("NOT RUN: {} is not installed (apt-get install libvirt0)", schema.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, machine) in own_machines::all() {
        let elements = libvirt::write(&machine).unwrap().output;
        let domain = format!(
            "<domain type='qemu'><name>n</name>{elements}<os><type arch='x86_64' machine='q35'>hvm</type></os></domain>"
        );
        let path = folder.path().join("domain.xml");
        std::fs::write(&path, domain).unwrap();
        let mut command = Command::new("virt-xml-validate");
        command.arg(&path).arg("domain");
        run(name, &mut command, "");
    }
}

#[test]
fn drawings_are_well_formed_and_can_be_rendered() {
    if !has("xmllint", "libxml2-utils") || !has("rsvg-convert", "librsvg2-bin") {
        return;
    }
    for (name, machine) in own_machines::all() {
        let drawing = svg::write(&machine);
        run(name, Command::new("xmllint").args(["--noout", "-"]), &drawing);
        let folder = tempfile::tempdir().unwrap();
        let picture = folder.path().join("machine.png");
        run(name, Command::new("rsvg-convert").arg("-o").arg(&picture), &drawing);
        assert!(std::fs::metadata(&picture).unwrap().len() > 5_000, "{name}");
    }
}
