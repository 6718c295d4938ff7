//! The devices that a process has open: the files of `/dev` and `/sys` among its descriptors and
//! mappings. Devices used through sockets, file systems or the page cache are not found.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use numalab_host::Root;
use numalab_record::explore::DeviceUse;
use numalab_topology::{Device, Machine};

/// Returns the devices with their files, in order of their addresses.
pub(super) fn read<'a>(
    root: &Root,
    process: u32,
    mapped: impl Iterator<Item = &'a str>,
    machine: &Machine,
) -> Vec<DeviceUse> {
    let mut files: BTreeSet<String> = mapped.map(str::to_owned).collect();
    let descriptors = format!("proc/{process}/fd");
    for descriptor in root.names(&descriptors) {
        let link = fs::read_link(root.directory().join(&descriptors).join(descriptor));
        files.extend(link.ok().and_then(|link| Some(link.to_str()?.to_owned())));
    }
    let mut by_address: BTreeMap<&str, (&Device, Vec<String>)> = BTreeMap::new();
    for file in files {
        for device in machine.devices.iter().filter(|device| is_of(root, &file, device)) {
            by_address.entry(&device.address).or_insert((device, Vec::new())).1.push(file.clone());
        }
    }
    let used = by_address.into_values().map(|(device, files)| DeviceUse {
        address: device.address.clone(),
        name: device.name().to_owned(),
        kind: device.kind,
        node: device.node,
        files,
    });
    used.collect()
}

/// Returns true if a file belongs to a device: `/dev/nvme0n1p1`, `/dev/vfio/7`, or its memory,
/// `/sys/devices/pci0000:40/0000:41:00.0/resource0`.
fn is_of(root: &Root, file: &str, device: &Device) -> bool {
    if let Some(path) = file.strip_prefix("/sys/") {
        let mut parts = path.rsplit('/');
        let is_memory = parts.next().is_some_and(|part| part.starts_with("resource"));
        return is_memory && parts.next() == Some(&device.address);
    }
    let Some(path) = file.strip_prefix("/dev/") else { return false };
    if let Some(group) = path.strip_prefix("vfio/") {
        let members = root.names(&format!("sys/kernel/iommu_groups/{group}/devices"));
        return members.contains(&device.address);
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    device.names.iter().any(|own| own == name || is_partition(name, own))
}

/// Returns true for a partition of a disk: `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`.
fn is_partition(name: &str, disk: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(rest) = name.strip_prefix(disk) else { return false };
    match disk.ends_with(|last: char| last.is_ascii_digit()) {
        true => rest.strip_prefix('p').is_some_and(digits),
        false => digits(rest),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use numalab_topology::{DeviceKind, NodeId};

    use super::*;

    fn device(address: &str, names: &[&str]) -> Device {
        Device {
            address: address.to_owned(),
            kind: DeviceKind::Gpu,
            id: None,
            driver: None,
            node: Some(NodeId(1)),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn open_and_mapped_device_files_give_their_devices_and_others_none() {
        let top = tempfile::tempdir().unwrap();
        let descriptors = top.path().join("proc/7/fd");
        fs::create_dir_all(&descriptors).unwrap();
        fs::create_dir_all(top.path().join("sys/kernel/iommu_groups/5/devices/0000:03:00.0"))
            .unwrap();
        let open = ["/dev/nvme0n1p2", "socket:[12]", "/dev/null", "/dev/vfio/5", "/home/sda"];
        for (number, file) in open.into_iter().enumerate() {
            symlink(file, descriptors.join(number.to_string())).unwrap();
        }
        let machine = Machine {
            devices: vec![
                device("0000:01:00.0", &["nvme0n1", "nvme0"]),
                device("0000:02:00.0", &["sda", "null0"]),
                device("0000:03:00.0", &[]),
                device("0000:04:00.0", &[]),
            ],
            ..Machine::default()
        };
        let below = "/sys/devices/pci0000:00";
        let mapped = [
            format!("{below}/0000:04:00.0/resource2_wc"),
            format!("{below}/0000:02:00.0/config"),
            "/usr/lib/libc.so".to_owned(),
        ];
        let used = read(&Root::at(top.path()), 7, mapped.iter().map(String::as_str), &machine);
        let found: Vec<_> = used.iter().map(|used| (&*used.name, used.files.join(" "))).collect();
        let expected = [
            ("nvme0n1", "/dev/nvme0n1p2".to_owned()),
            ("0000:03:00.0", "/dev/vfio/5".to_owned()),
            ("0000:04:00.0", mapped[0].clone()),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_partition_is_distinguished_from_another_disk() {
        assert!(is_partition("sda1", "sda") && is_partition("nvme0n1p2", "nvme0n1"));
        assert!(!is_partition("sdaa", "sda") && !is_partition("nvme0n12", "nvme0n1"));
        assert!(!is_partition("sda", "sda") && !is_partition("nvidia12", "nvidia1"));
    }
}
