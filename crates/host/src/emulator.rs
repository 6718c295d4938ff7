//! The counters that the memory emulator publishes into a guest through the memory of a PCI device
//! (QEMU `ivshmem-plain`, `docs/specs/ivshmem-spec.txt`).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use rustix::mm::{self, MapFlags, ProtFlags};

const DEVICES: &str = "/sys/bus/pci/devices";
/// Red Hat's PCI vendor id, used by Inter-VM shared memory.
const VENDOR: &str = "0x1af4";
const DEVICE: &str = "0x1110";
/// BAR 2 is the shared memory.
const RESOURCE: &str = "resource2";

/// Maps the memory that QEMU shares with this guest, once for the life of the process. Returns
/// `None` where there is no such device or it may not be mapped. The caller has to check that an
/// emulator publishes there.
pub fn emulator_counters() -> Option<&'static [AtomicU64]> {
    static MAPPED: OnceLock<Option<&'static [AtomicU64]>> = OnceLock::new();
    *MAPPED.get_or_init(|| map(&device(Path::new(DEVICES))?).ok())
}

/// Returns the sysfs directory of the device.
fn device(devices: &Path) -> Option<PathBuf> {
    let is = |directory: &Path, file: &str, id: &str| {
        fs::read_to_string(directory.join(file)).is_ok_and(|text| text.trim() == id)
    };
    let mut found = fs::read_dir(devices).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    found.find(|path| is(path, "vendor", VENDOR) && is(path, "device", DEVICE))
}

fn map(device: &Path) -> io::Result<&'static [AtomicU64]> {
    // Reads of a device without a driver return all ones until it is enabled.
    fs::write(device.join("enable"), "1")?;
    map_file(&OpenOptions::new().read(true).write(true).open(device.join(RESOURCE))?)
}

fn map_file(file: &File) -> io::Result<&'static [AtomicU64]> {
    let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
    let start =
        unsafe { mm::mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0)? };
    // SAFETY: 1. `bytes` bytes were just mapped, page-aligned, and are never unmapped. 2. They are a
    // device's memory, which keeps its length as long as the device is there. 3. The emulator
    // writes to them at any time, which atomics allow.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), bytes / size_of::<AtomicU64>()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::atomic::Ordering;

    #[test]
    fn the_device_is_found_by_its_ids() {
        let devices = tempfile::tempdir().unwrap();
        assert_eq!(device(devices.path()), None);
        for (name, id) in [("0000:00:01.0", "0x1003"), ("0000:00:02.0", DEVICE)] {
            let directory = devices.path().join(name);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("vendor"), "0x1af4\n").unwrap();
            fs::write(directory.join("device"), format!("{id}\n")).unwrap();
        }
        assert_eq!(device(devices.path()), Some(devices.path().join("0000:00:02.0")));
        assert_eq!(device(Path::new("/no/such")), None);
    }

    #[test]
    fn writes_of_another_process_are_seen() {
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let words = map_file(&file).unwrap();
        assert_eq!(words.len(), 512);
        file.write_all(&7_u64.to_ne_bytes()).unwrap();
        assert_eq!(words[0].load(Ordering::Relaxed), 7);
        assert!(map_file(&tempfile::tempfile().unwrap()).is_err(), "nothing to map");
    }
}
