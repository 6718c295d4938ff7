//! All available machines: our own shapes, our recordings, and those of the corpus.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use numalab_acpi::{AnyTable, Severity, Slot, Tables, check};
use numalab_formats::{architecture, emulation, hwloc, machine_toml, numactl, tiers};
use numalab_host::{Root, read_machine_and_devices};
use numalab_topology::{
    AccessAttributes, AccessClass, Allowed, Cache, CacheKind, CpuId, Device, DeviceKind,
    HugePagePool, Machine, MemorySideCache, MemoryTier, NodeId, ProximityDomain, UniformMachine,
};

/// Directories that the reader of trees never looks at, and that take most of the time to unpack.
const LEFT_OUT: [&str; 10] = [
    "*/sys/block",
    "*/sys/bus",
    "*/sys/class",
    "*/sys/devices/css*",
    "*/sys/devices/pci*",
    "*/dev/cpuset",
    "*/acpi_cppc",
    "*/cpufreq",
    "*/cpuidle",
    "*/power",
];

/// Returns all machines, with names that give their origin.
pub fn all() -> &'static [(String, Machine)] {
    static ALL: OnceLock<Vec<(String, Machine)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut machines = own();
        machines.extend(recorded());
        match corpus() {
            Some(corpus) => machines.extend(of_corpus(&corpus)),
            None => eprintln!("NOT RUN: machines of the corpus: it is not there (NUMALAB_CORPUS)"),
        }
        machines
    })
}

/// Returns the corpus of real machines, if it is present.
pub fn corpus() -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let path = std::env::var_os("NUMALAB_CORPUS").map_or_else(|| default.into(), PathBuf::from);
    path.is_dir().then_some(path)
}

fn own() -> Vec<(String, Machine)> {
    let emulated = [
        ("two nodes", (8, 1, 2), "2", None),
        (
            "four nodes with threads",
            (16, 2, 2),
            "4",
            Some("10,12,32,32;12,10,32,32;32,32,10,12;32,32,12,10"),
        ),
        ("one node", (2, 1, 1), "1", None),
        ("memory beside cpus", (4, 1, 2), "1G:2,1G:2,2G:0,4G:0", None),
        ("a node with nothing", (4, 1, 2), "2G:2,2G:2,0:0", Some("10,40,80;40,10,80;80,80,10")),
        ("cpus without memory", (6, 1, 1), "1G:1,3G:2,0:3", Some("10,20,15;20,10,15;15,15,10")),
        ("unequal distances", (4, 1, 2), "2", Some("10,21;31,10")),
        ("memory before cpus", (2, 1, 1), "1G:0,1G:2", None),
        ("below a MiB", (2, 1, 1), "1500K:1,1025K:1", None),
    ];
    let shape = |(cpus, threads_per_core, packages): (u32, u32, u32)| UniformMachine {
        cpus,
        threads_per_core,
        packages,
        l3_groups: packages,
        memory_bytes: 8 << 30,
    };
    let mut machines: Vec<(String, Machine)> = emulated
        .into_iter()
        .map(|(name, cpus, nodes, distances)| {
            let base = shape(cpus).build().expect("a uniform machine");
            let spec = emulation::parse(nodes, distances).expect("nodes");
            (name.to_owned(), spec.emulate(&base).expect("emulated"))
        })
        .collect();
    let example = machine_toml::read(machine_toml::EXAMPLE).expect("the example");
    machines.push(("the example".to_owned(), example));
    machines.push(("cpus of no node".to_owned(), without_a_home()));
    let dies = UniformMachine { l3_groups: 4, ..shape((8, 1, 2)) };
    machines.push(("two L3 groups in a package".to_owned(), dies.build().expect("uniform")));
    let tiers = tiers::parse("512M@100ns,256M@300ns").expect("tiers");
    machines.push(("a CXL device".to_owned(), tiers.cxl_machine(4).expect("a machine")));
    machines.push(("something of everything".to_owned(), rich()));
    for name in ["lumi_partc", "lumi_partg"] {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/architectures").join(name);
        let text = fs::read_to_string(file).expect("an architecture file");
        let reading = architecture::read(&text).expect("known by name");
        machines.push((name.to_owned(), reading.value.machine));
    }
    machines
}

/// Returns two nodes, the second without the cpus that are near it.
fn without_a_home() -> Machine {
    let shape = UniformMachine::of_packages(2, 4, 2 << 30);
    let spec = emulation::parse("2", None).expect("nodes");
    let mut machine = spec.emulate(&shape.build().expect("uniform")).expect("emulated");
    let cpus = std::mem::take(&mut machine.nodes[1].cpus);
    let homeless = |cpu: &&mut numalab_topology::Cpu| cpus.contains(cpu.id);
    machine.cpus.iter_mut().filter(homeless).for_each(|cpu| cpu.node = None);
    machine
}

/// Returns devices of every kind, some near a node and some not.
fn devices_of_everything() -> Vec<Device> {
    use DeviceKind::{Accelerator, Gpu, Memory, Network, Storage};
    let kinds = [Gpu, Accelerator, Network, Storage, Memory, Network].into_iter().zip(0..);
    let device = |(kind, number): (DeviceKind, u32)| Device {
        address: format!("0000:{number:02x}:00.0"),
        kind,
        id: (number > 0).then(|| format!("1af4:104{number}")),
        driver: (number > 1).then(|| "virtio-pci".to_owned()),
        node: (number < 5).then_some(NodeId(number % 4)),
        names: (0..number).map(|name| format!("device{number}{name}")).collect(),
    };
    kinds.map(device).collect()
}

/// Returns a machine with every feature.
fn rich() -> Machine {
    let shape = UniformMachine {
        cpus: 8,
        threads_per_core: 2,
        packages: 2,
        l3_groups: 2,
        memory_bytes: 8 << 30,
    };
    let spec = emulation::parse("1G:4,1G:3,2G:0,4G:0", None).expect("nodes");
    let mut machine = spec.emulate(&shape.build().expect("uniform")).expect("emulated");
    for (index, node) in (0..).zip(&mut machine.nodes) {
        node.memory_bytes += index << 12;
        node.free_bytes = Some((index << 20) + 4096);
        node.proximity_domain = Some(ProximityDomain(10 + node.id.0));
        node.huge_pages = [64 << 10, 2 << 20, 1 << 30]
            .map(|page_bytes| HugePagePool { page_bytes, total: 4 * index, free: 2 * index })
            .into();
    }
    machine.nodes[2].memory_side_caches = vec![
        MemorySideCache { level: 2, size_bytes: 1 << 28, line_bytes: Some(64), ways: Some(1) },
        MemorySideCache { level: 1, size_bytes: 1 << 27, line_bytes: None, ways: Some(4) },
    ];
    machine.nodes[3].online = false;
    machine.access = access_of_everything();
    let last = CpuId(7);
    machine.nodes.iter_mut().for_each(|node| {
        node.cpus.remove(last);
    });
    for cpu in &mut machine.cpus {
        cpu.apic_id = Some(2 * cpu.id.0);
        cpu.online = cpu.id != CpuId(3);
        cpu.node = cpu.node.filter(|_| cpu.id != last);
    }
    machine.devices = devices_of_everything();
    machine.tiers = vec![
        MemoryTier { id: 4, nodes: "0-1".parse().expect("nodes") },
        MemoryTier { id: 22, nodes: "2-3".parse().expect("nodes") },
    ];
    machine.allowed = Some(Allowed {
        cpus: "0".parse().expect("cpus"),
        memory_nodes: "0".parse().expect("nodes"),
        isolated: "1".parse().expect("cpus"),
    });
    for (level, kind, groups) in [
        (1, CacheKind::Data, machine.cores()),
        (1, CacheKind::Instruction, machine.cores()),
        (3, CacheKind::Unified, machine.l3_groups()),
    ] {
        machine.caches.extend(groups.into_iter().map(|group| Cache {
            level,
            kind,
            size_bytes: Some(u64::from(level) << 20),
            line_bytes: Some(64),
            ways: Some(8),
            cpus: group.cpus,
        }));
    }
    machine
}

/// Returns attributes for cpus and for any initiator, with reads only and with both, from nodes
/// without cpus too.
fn access_of_everything() -> Vec<AccessAttributes> {
    let mut access = Vec::new();
    for (initiator, target, class, ps) in [
        (0, 0, AccessClass::Any, 80_250),
        (0, 0, AccessClass::Cpu, 90_000),
        (0, 2, AccessClass::Any, 250_000),
        (1, 0, AccessClass::Cpu, 180_000),
        (2, 0, AccessClass::Any, 70_000),
        (0, 3, AccessClass::Cpu, 300_000),
    ] {
        access.push(AccessAttributes {
            initiator: NodeId(initiator),
            target: NodeId(target),
            class,
            read_latency_ps: Some(ps),
            write_latency_ps: (target != 2).then_some(2 * ps),
            read_bandwidth_mb_per_s: Some(20_000),
            write_bandwidth_mb_per_s: (initiator != 0).then_some(10_000),
        });
    }
    access
}

/// Returns the machines from sysfs trees that were recorded in guests.
fn recorded() -> Vec<(String, Machine)> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../host/tests/fixtures/qemu-4-nodes/tree.tar.gz");
    vec![("a guest of four nodes".to_owned(), of_tree(&tree, ""))]
}

fn of_corpus(corpus: &Path) -> Vec<(String, Machine)> {
    let mut machines = Vec::new();
    for (name, text) in texts(&corpus.join("text"), ".txt") {
        if name.starts_with("numactl-H") {
            machines
                .push((format!("numactl {name}"), numactl::read(&text).expect("numactl").value));
        }
    }
    for folder in ["sysfs/xml", "sysfs/expected", "samples"] {
        for (name, text) in texts(&corpus.join(folder), ".xml") {
            let machine = hwloc::read_xml(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            machines.push((format!("hwloc {name}"), machine.value));
        }
    }
    for (name, text) in texts(&corpus.join("numa-mem-bench/architectures"), "") {
        machines
            .push((format!("arch {name}"), architecture::read(&text).expect("arch").value.machine));
    }
    let manifest = fs::read_to_string(corpus.join("sysfs/MANIFEST.tsv")).expect("a manifest");
    for line in manifest.lines().skip(1) {
        let mut fields = line.split('\t');
        let (file, root) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        if file.contains(".tar.") {
            let tree = corpus.join("sysfs/trees").join(file);
            machines.push((format!("sysfs {file}"), of_tree(&tree, root)));
        }
    }
    machines.extend(of_tables(&corpus.join("tables")));
    machines
}

fn texts(folder: &Path, ending: &str) -> Vec<(String, String)> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<(String, String)> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_str().is_some_and(|path| path.ends_with(ending)))
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            Some((name, fs::read_to_string(path).ok()?))
        })
        .collect();
    files.sort();
    files
}

/// Reads the machine from a packed copy of sysfs.
fn of_tree(tarball: &Path, root: &str) -> Machine {
    let directory =
        tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let mut tar = Command::new("tar");
    // Where characters are bytes, names are matched in half of the time.
    tar.env("LC_ALL", "C")
        .arg("--no-same-owner")
        .args(LEFT_OUT.map(|pattern| format!("--exclude={pattern}")));
    tar.arg("-xf").arg(tarball).arg("-C").arg(directory.path());
    let status = tar.status().expect("tar is needed: apt-get install tar bzip2 xz-utils");
    assert!(status.success(), "{}: tar: {status}", tarball.display());
    let reading = read_machine_and_devices(&Root::at(directory.path().join(root)));
    reading.unwrap_or_else(|error| panic!("{}: {error}", tarball.display())).machine
}

/// Returns the machines of all valid sets of tables.
fn of_tables(folder: &Path) -> Vec<(String, Machine)> {
    let mut sets: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("tables")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "bin")) {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let machine = name.rsplit_once('.').map_or(name, |(machine, _)| machine).to_owned();
        sets.entry(machine).or_default().push(fs::read(path).expect("a table"));
    }
    let machine = |(name, files): (String, Vec<Vec<u8>>)| {
        let mut tables = Tables::default();
        for bytes in &files {
            tables.insert(AnyTable::read(bytes).ok()?);
        }
        let mut scratch = vec![Slot::default(); tables.scratch_slots()];
        let mut wrong = tables.srat.is_none();
        let judge =
            &mut |finding: numalab_acpi::Finding| wrong |= finding.severity() == Severity::Error;
        check(&tables, &mut scratch, judge).expect("scratch as asked for");
        (!wrong).then(|| (format!("acpi {name}"), Machine::from_tables(&tables)))
    };
    sets.into_iter().filter_map(machine).collect()
}
