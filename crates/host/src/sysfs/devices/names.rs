//! The system's names for the interfaces, disks and device files of a device.

use std::fs;

use crate::root::Root;

/// Directories with entries named after interfaces, disks or files in `/dev`.
const CLASSES: [&str; 8] =
    ["net", "infiniband", "block", "nvme", "drm", "accel", "infiniband_verbs", "dax"];
/// Depth of the search: a SAS disk is seven directories below its controller.
const DEEPEST: usize = 8;

/// Returns the names in the order of [`CLASSES`], the most common ones first.
pub(super) fn device_names(root: &Root, directory: &str, address: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(root, directory, DEEPEST, &mut found);
    found.extend(nvidia(root, address).map(|name| (CLASSES.len(), name)));
    found.sort();
    found.dedup();
    found.into_iter().map(|(_, name)| name).collect()
}

/// Collects names below a directory with the index of their class. Links, and directories named by
/// a PCI address, belong to other devices.
fn collect(root: &Root, directory: &str, deep: usize, found: &mut Vec<(usize, String)>) {
    for name in root.names(directory) {
        let path = format!("{directory}/{name}");
        let is_directory = fs::symlink_metadata(root.path(&path)).is_ok_and(|file| file.is_dir());
        if !is_directory || is_address(&name) {
            continue;
        }
        if let Some(class) = CLASSES.iter().position(|class| *class == name) {
            for entry in root.names(&path) {
                if is_own(&name, &entry) {
                    let disks = root.names(&format!("{path}/{entry}"));
                    // The disk of a path is named after its subsystem, not after its controller.
                    let is_disk = |disk: &String| {
                        name == "nvme"
                            && (disk.starts_with(&entry) || multipath_name(disk).is_some())
                    };
                    let block = CLASSES.iter().position(|class| *class == "block");
                    for disk in disks.into_iter().filter(is_disk) {
                        let visible =
                            multipath_name(&disk).map(|name| (block.unwrap_or(class), name));
                        let own = if visible.is_some() { class } else { block.unwrap_or(class) };
                        found.extend(visible.into_iter().chain([(own, disk)]));
                    }
                    found.push((class, entry));
                }
            }
        } else if deep > 0 {
            collect(root, &path, deep - 1, found);
        }
    }
}

/// Returns the name of the disk that programs use, `nvme0n1`, for the hidden one of a path to it,
/// `nvme0c1n1` (Linux `drivers/nvme/host/multipath.c`).
fn multipath_name(disk: &str) -> Option<String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (subsystem, rest) = disk.strip_prefix("nvme")?.split_once('c')?;
    let (controller, namespace) = rest.split_once('n')?;
    let are_numbers = [subsystem, controller, namespace].into_iter().all(is_number);
    are_numbers.then(|| format!("nvme{subsystem}n{namespace}"))
}

/// Rejects connectors and versions, which `drm` has along with devices.
fn is_own(class: &str, entry: &str) -> bool {
    class != "drm"
        || ["card", "renderD"].iter().any(|prefix| {
            let number = entry.strip_prefix(prefix);
            number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
        })
}

/// Recognises `0000:41:00.0`.
fn is_address(name: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let mut parts = name.split([':', '.']);
    let lengths = parts.by_ref().take(4).filter(|part| digits(part)).map(str::len);
    let lengths: Vec<usize> = lengths.collect();
    matches!(lengths.as_slice(), [domain, 2, 2, 1] if *domain >= 4) && parts.next().is_none()
}

/// Returns the name that NVIDIA's driver gives its device file, by its own number.
fn nvidia(root: &Root, address: &str) -> Option<String> {
    let text = root.document(&format!("proc/driver/nvidia/gpus/{address}/information")).ok()?;
    let minor = text.lines().find_map(|line| line.strip_prefix("Device Minor:"))?;
    Some(format!("nvidia{}", minor.trim().parse::<u32>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> (tempfile::TempDir, Root) {
        let top = tempfile::tempdir().unwrap();
        for file in files {
            fs::create_dir_all(top.path().join(file)).unwrap();
        }
        let root = Root::at(top.path());
        (top, root)
    }

    #[test]
    fn interfaces_disks_and_device_files_are_names_of_their_device() {
        let (_top, root) = tree(&[
            "d/net/eth0/queues",
            "d/infiniband/mlx5_0",
            "d/infiniband_verbs/uverbs0",
            "d/virtio0/block/vda/vda1",
            "d/ata1/host0/target0:0:0/0:0:0:0/block/sda",
            "d/nvme/nvme0/nvme0n1",
            "d/nvme/nvme0/power",
            "d/drm/card0/card0-DP-1",
            "d/drm/renderD128",
            "d/drm/version",
            "d/0000:42:00.0/net/eth9",
        ]);
        let names = device_names(&root, "d", "0000:41:00.0");
        let expected =
            ["eth0", "mlx5_0", "nvme0n1", "sda", "vda", "nvme0", "card0", "renderD128", "uverbs0"];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_disk_with_several_paths_has_its_visible_name_first() {
        let (_top, root) = tree(&["d/nvme/nvme3/nvme0c3n1", "d/nvme/nvme3/ng0n1"]);
        assert_eq!(device_names(&root, "d", "0000:41:00.0"), ["nvme0n1", "nvme0c3n1", "nvme3"]);
        assert_eq!(multipath_name("nvme0n1"), None);
        assert_eq!(multipath_name("nvme0cn1"), None);
    }

    #[test]
    fn an_nvidia_gpu_is_named_by_its_minor_number() {
        let (top, root) = tree(&["proc/driver/nvidia/gpus/0000:41:00.0", "d"]);
        let file = top.path().join("proc/driver/nvidia/gpus/0000:41:00.0/information");
        fs::write(file, "Model: \t\t NVIDIA A100\nDevice Minor: \t 3\n").unwrap();
        assert_eq!(device_names(&root, "d", "0000:41:00.0"), ["nvidia3"]);
        assert_eq!(device_names(&root, "d", "0000:42:00.0"), [""; 0]);
    }
}
