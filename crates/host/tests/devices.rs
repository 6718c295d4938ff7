//! Devices of real machines, and of nonsensical trees.

mod tree;

use std::path::{Path, PathBuf};
use std::process::Command;

use numalab_host::{MachineReading, Root, read_machine, read_machine_and_devices};
use numalab_topology::{Device, DeviceKind, Machine, NodeId};

fn machine_below(top: &Path) -> (Machine, Vec<String>) {
    let reading = read_machine_and_devices(&Root::at(top)).expect("a machine");
    (reading.machine, reading.findings.iter().map(ToString::to_string).collect())
}

/// Returns a machine of two nodes with these files of its devices.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let top = tempfile::tempdir().expect("made");
    let always = [
        ("sys/devices/system/cpu/cpu0/online", "1"),
        ("sys/devices/system/node/node0/cpulist", "0"),
        ("sys/devices/system/node/node1/cpulist", ""),
        ("sys/devices/system/node/online", "0-1"),
    ];
    for (path, text) in always.iter().chain(files) {
        tree::write(top.path(), path, text);
    }
    top
}

#[test]
fn a_device_has_its_node_its_driver_and_its_names() {
    let at = "sys/bus/pci/devices/0000:41:00.0";
    let file = |name: &str| format!("{at}/{name}");
    let files = [
        (file("class"), "0x020700\n"),
        (file("vendor"), "0x15b3\n"),
        (file("device"), "0x101b\n"),
        (file("numa_node"), "1\n"),
        (file("uevent"), "DRIVER=mlx5_core\nPCI_CLASS=20700\n"),
        (file("infiniband/mlx5_0/node_type"), "1: CA\n"),
        ("sys/bus/pci/devices/0000:40:00.0/class".to_owned(), "0x060400\n"),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
    let (machine, findings) = machine_below(tree(&files).path());
    let expected = Device {
        address: "0000:41:00.0".to_owned(),
        kind: DeviceKind::Network,
        id: Some("15b3:101b".to_owned()),
        driver: Some("mlx5_core".to_owned()),
        node: Some(NodeId(1)),
        names: vec!["mlx5_0".to_owned()],
    };
    assert_eq!(machine.devices, [expected], "the bridge is none of them");
    assert!(!findings.iter().any(|finding| finding.contains("bus/pci")), "{findings:?}");
}

#[test]
fn a_node_made_of_a_cxl_region_is_marked_and_one_of_other_devices_is_not() {
    let at = |place: &str| format!("sys/devices/platform/{place}/target_node");
    let (cxl, other) = ("ACPI0017:00/root0/decoder0.0/region0/dax_region0/dax0.0", "e820/dax1.0");
    let top = tree(&[(&at(cxl), "1\n"), (&at(other), "0\n")]);
    let links = top.path().join("sys/bus/dax/devices");
    std::fs::create_dir_all(&links).expect("made");
    for place in [cxl, other] {
        let (_, name) = place.rsplit_once('/').expect("a name");
        let to = format!("../../../devices/platform/{place}");
        std::os::unix::fs::symlink(to, links.join(name)).expect("made");
    }
    let (machine, _) = machine_below(top.path());
    assert_eq!(machine.nodes.iter().map(|node| node.cxl).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn missing_nodes_and_invalid_classes_are_findings() {
    let at = |address: &str, name: &str| format!("sys/bus/pci/devices/{address}/{name}");
    let files = [
        (at("0000:01:00.0", "class"), "0x030000"),
        (at("0000:01:00.0", "numa_node"), "7"),
        (at("0000:02:00.0", "class"), "0x030000"),
        (at("0000:02:00.0", "numa_node"), "-1"),
        (at("0000:03:00.0", "class"), "network"),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
    let (machine, findings) = machine_below(tree(&files).path());
    let nodes: Vec<_> = machine.devices.iter().map(|device| device.node).collect();
    assert_eq!(nodes, [None, None]);
    let says = |words: &[&str]| {
        findings.iter().any(|finding| words.iter().all(|word| finding.contains(word)))
    };
    assert!(says(&["0000:01:00.0/numa_node", "`7`: expected a node of the machine"]));
    assert!(says(&["0000:03:00.0/class", "`network`: expected a hexadecimal number"]));
    assert!(!says(&["0000:02:00.0"]), "{findings:?}");
}

#[test]
fn a_guest_has_its_devices_near_the_nodes_that_it_was_booted_with() {
    let tarball =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/qemu-devices/tree.tar.gz");
    let (machine, findings) = unpacked(&tarball, "");
    assert!(!findings.iter().any(|finding| finding.contains("bus/pci")), "{findings:?}");
    let of = |device: &Device| {
        let driver = device.driver.clone().unwrap_or_default();
        (device.kind, device.node.map(|node| node.0), driver, device.names.join(" "))
    };
    let text = |text: &str| text.to_owned();
    let expected = [
        (DeviceKind::Storage, None, text(""), text("")),
        (DeviceKind::Gpu, Some(0), text(""), text("")),
        (DeviceKind::Storage, Some(0), text("virtio-pci"), text("")),
        (DeviceKind::Network, Some(1), text("virtio-pci"), text("eth0")),
    ];
    assert_eq!(machine.devices.iter().map(of).collect::<Vec<_>>(), expected);
}

fn unpacked(tarball: &Path, below: &str) -> (Machine, Vec<String>) {
    let top = tempfile::tempdir().expect("made");
    let tar = Command::new("tar").arg("-xf").arg(tarball).arg("-C").arg(top.path()).status();
    assert!(tar.is_ok_and(|status| status.success()), "{}", tarball.display());
    machine_below(&top.path().join(below))
}

/// A tarball, the directory in it, and the number of devices on each node.
type RealTree = (&'static str, &'static str, &'static [(i64, usize)]);

/// Trees of the corpus that include devices, with their number on each node (-1: none).
const REAL: [RealTree; 2] = [
    ("40intel64-2g2n4c+pcilocality.tar.bz2", "40intel64-2g2n4c+pci", &[(2, 1), (-1, 7)]),
    ("linux-amd64-accel-nvidia.tar.gz", "", &[(-1, 7)]),
];

#[test]
fn real_trees_have_their_devices_on_their_nodes() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let corpus = std::env::var_os("NUMALAB_CORPUS").map_or_else(|| default.into(), PathBuf::from);
    for (file, below, expected) in REAL {
        let tarball = corpus.join("sysfs/trees").join(file);
        if !tarball.exists() {
            eprintln!("NOT RUN: {}: not there (NUMALAB_CORPUS)", tarball.display());
            continue;
        }
        let (machine, _) = unpacked(&tarball, below);
        let on = |node: i64| {
            let own = |device: &Device| device.node.map_or(-1, |node| i64::from(node.0));
            machine.devices.iter().filter(|device| own(device) == node).count()
        };
        for &(node, count) in expected {
            assert_eq!(on(node), count, "{file}, node {node}");
        }
    }
}

#[test]
fn devices_are_read_only_on_request() {
    let top = tree(&[("sys/bus/pci/devices/0000:41:00.0/class", "no class\n")]);
    let asked = read_machine_and_devices(&Root::at(top.path())).expect("a machine");
    let plain = read_machine(&Root::at(top.path())).expect("a machine");
    let of_class = |reading: &MachineReading| {
        reading.findings.iter().filter(|finding| finding.to_string().contains("no class")).count()
    };
    assert_eq!((of_class(&asked), of_class(&plain)), (1, 0));
}
