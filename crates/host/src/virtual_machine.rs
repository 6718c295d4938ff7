//! Recognises virtual machines by files, which copied trees have too.

use crate::proc::field;
use crate::root::Root;

const FIRMWARE: &str = "sys/class/dmi/id";

/// Prefixes of the vendor or product in the firmware of virtual machines, as in
/// systemd-detect-virt(1), each with its hypervisor.
const PRODUCTS: [(&str, &str); 14] = [
    ("QEMU", "QEMU"),
    ("KVM", "KVM"),
    ("OpenStack", "KVM"),
    ("KubeVirt", "KVM"),
    ("VMware", "VMware"),
    ("VMW", "VMware"),
    ("innotek GmbH", "VirtualBox"),
    ("VirtualBox", "VirtualBox"),
    ("Xen", "Xen"),
    ("BHYVE", "bhyve"),
    ("Parallels", "Parallels"),
    ("Apple Virtualization", "Apple Virtualization"),
    ("Google Compute Engine", "KVM"),
    ("Amazon EC2", "Amazon EC2"),
];

/// Returns true if the machine is known to be a virtual one.
pub(crate) fn is_guest(root: &Root) -> bool {
    has_guest_flag(&root.document("proc/cpuinfo").unwrap_or_default()) || hypervisor(root).is_some()
}

/// Returns the name of the hypervisor that files give: only x86 processors have a flag for guests.
pub(crate) fn hypervisor(root: &Root) -> Option<String> {
    let of_xen = root.value("sys/hypervisor/type").ok().filter(|kind| !kind.is_empty());
    of_xen
        .or_else(|| named_by_firmware(root).map(str::to_owned))
        .or_else(|| named_by_device_tree(root))
        .or_else(|| named_by_partition(root))
}

/// Returns true if `/proc/cpuinfo` has the flag that x86 processors show to guests.
pub(crate) fn has_guest_flag(cpuinfo: &str) -> bool {
    let flags = field(cpuinfo, "flags").unwrap_or_default();
    flags.split(' ').any(|flag| flag == "hypervisor")
}

fn named_by_firmware(root: &Root) -> Option<&'static str> {
    let value = |name| root.value(&format!("{FIRMWARE}/{name}")).unwrap_or_default();
    let product = value("product_name");
    // Bare-metal machines of this cloud have the same vendor.
    if product.contains(".metal") {
        return None;
    }
    if product == "Virtual Machine" && value("sys_vendor").starts_with("Microsoft") {
        return Some("Microsoft");
    }
    let texts = [product, value("sys_vendor"), value("board_vendor"), value("bios_vendor")];
    let begins = |(text, _): &&(&str, &str)| texts.iter().any(|of| of.starts_with(text));
    PRODUCTS.iter().find(begins).map(|(_, name)| *name)
}

fn named_by_device_tree(root: &Root) -> Option<String> {
    let value = |name| root.value(&format!("proc/device-tree/{name}")).unwrap_or_default();
    let named = value("hypervisor/compatible");
    if let Some(first) = named.split('\0').next().filter(|first| !first.is_empty()) {
        return Some(if first == "linux,kvm" { "KVM" } else { first }.to_owned());
    }
    let machine = [value("model"), value("compatible")].concat();
    let is_of_qemu = machine.contains("qemu") || machine.contains("linux,dummy-virt");
    is_of_qemu.then(|| "QEMU".to_owned())
}

/// Returns the hypervisor of a partition of POWER or s390.
fn named_by_partition(root: &Root) -> Option<String> {
    let cpuinfo = root.document("proc/cpuinfo").unwrap_or_default();
    if field(&cpuinfo, "platform") == Some("pSeries") {
        return Some("PowerVM".to_owned());
    }
    let information = root.document("proc/sysinfo").ok()?;
    field(&information, "VM00 Control Program").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Option<String> {
        let top = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = top.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        hypervisor(&Root::at(top.path()))
    }

    #[test]
    fn virtual_machines_of_processors_without_a_flag_are_recognised() {
        let product = "sys/class/dmi/id/product_name";
        let vendor = "sys/class/dmi/id/sys_vendor";
        for (files, name) in [
            (&[(vendor, "QEMU\n"), (product, "QEMU Virtual Machine\n")][..], "QEMU"),
            (&[(vendor, "Amazon EC2\n"), (product, "c7g.xlarge\n")], "Amazon EC2"),
            (&[(vendor, "Microsoft Corporation\n"), (product, "Virtual Machine\n")], "Microsoft"),
            (&[("proc/device-tree/hypervisor/compatible", "linux,kvm\0")], "KVM"),
            (
                &[("proc/device-tree/hypervisor/compatible", "xen,xen-4.17\0xen,xen\0")],
                "xen,xen-4.17",
            ),
            (&[("proc/device-tree/compatible", "linux,dummy-virt\0")], "QEMU"),
            (&[("proc/device-tree/model", "riscv-virtio,qemu\0")], "QEMU"),
            (&[("proc/cpuinfo", "processor\t: 0\nplatform\t: pSeries\n")], "PowerVM"),
            (&[("proc/sysinfo", "LPAR Number: 1\nVM00 Control Program: KVM/Linux\n")], "KVM/Linux"),
        ] {
            assert_eq!(found(files).as_deref(), Some(name), "{files:?}");
        }
        for files in [
            &[(vendor, "Amazon EC2\n"), (product, "c7g.metal\n")][..],
            &[(vendor, "Microsoft Corporation\n"), (product, "Surface\n")],
            &[("proc/cpuinfo", "processor\t: 0\nplatform\t: PowerNV\n")],
            &[("proc/device-tree/model", "Raspberry Pi 5\0")],
            &[],
        ] {
            assert_eq!(found(files), None, "{files:?}");
        }
    }
}
