//! Brings the memory of CXL devices online, each as a node: Linux finds the devices and leaves it
//! to user space to make regions of them (`Documentation/ABI/testing/sysfs-bus-cxl`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{InitError, step};

const DEVICES: &str = "/sys/bus/cxl/devices";
const BIND: &str = "/sys/bus/cxl/drivers/cxl_region/bind";
const ONLINE: &str = "/sys/devices/system/memory/auto_online_blocks";
/// The driver directory of memory that the system uses as ordinary memory.
const SYSTEM_MEMORY: &str = "/sys/bus/dax/drivers/kmem";
/// Drivers find their devices one after another; a loaded machine under TCG takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The interleave granularity in bytes of a region with several devices; regions here have one
/// device.
const GRANULARITY: &str = "256";

/// Makes a region for each device, on the window of its host bridge; does nothing without devices.
pub(super) fn bring_online() -> Result<(), InitError> {
    let windows = devices_of_type("cxl_decoder_root");
    if windows.is_empty() {
        return Ok(());
    }
    let endpoints =
        wait_for("CXL devices", windows.len(), || devices_of_type("cxl_decoder_endpoint"))?;
    // Movable, so that the kernel does not put its own data there.
    write(Path::new(ONLINE), "online_movable")?;
    for window in &windows {
        let bus = read(&window.join("target_list"))?;
        let of_window = |endpoint: &&PathBuf| host_bridge(endpoint).as_ref() == Some(&bus);
        let first = endpoints.iter().filter(of_window).min();
        let first =
            first.ok_or_else(|| io::Error::other(format!("no device on host bridge {bus}")));
        make_region(window, &first.map_err(step(window.display().to_string()))?.clone())?;
    }
    wait_for("memory of CXL devices", windows.len(), || names(SYSTEM_MEMORY, "dax"))?;
    Ok(())
}

fn make_region(window: &Path, endpoint: &Path) -> Result<(), InitError> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let create = window.join("create_ram_region");
    let region = read(&create)?;
    write(&create, &region)?;
    let size = read(&window.join("size"))?;
    write(&endpoint.join("mode"), "ram")?;
    write(&endpoint.join("dpa_size"), &size)?;
    let place = Path::new(DEVICES).join(&region);
    for (file, value) in [
        ("interleave_granularity", GRANULARITY),
        ("interleave_ways", "1"),
        ("size", &size),
        ("target0", &name(endpoint)),
        ("commit", "1"),
    ] {
        write(&place.join(file), value)?;
    }
    write(Path::new(BIND), &region)
}

fn devices_of_type(kind: &str) -> Vec<PathBuf> {
    let is_kind = |path: &PathBuf| read(&path.join("devtype")).is_ok_and(|found| found == kind);
    names(DEVICES, "decoder").into_iter().filter(is_kind).collect()
}

fn names(directory: &str, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Returns the first bus of the device's host bridge, as in the windows' names.
fn host_bridge(endpoint: &Path) -> Option<String> {
    let device = fs::canonicalize(endpoint.join("../uport")).ok()?;
    bus_of(device.to_str()?).map(|bus| bus.to_string())
}

/// Returns 12 for `/sys/devices/pci0000:0c/0000:0c:00.0/0000:0d:00.0/mem0`.
fn bus_of(device: &str) -> Option<u32> {
    let (_, bus) = device.split_once("/pci")?.1.split('/').next()?.split_once(':')?;
    u32::from_str_radix(bus, 16).ok()
}

fn wait_for(
    what: &str,
    count: usize,
    look: impl Fn() -> Vec<PathBuf>,
) -> Result<Vec<PathBuf>, InitError> {
    let start = Instant::now();
    loop {
        let found = look();
        if found.len() >= count {
            return Ok(found);
        }
        if start.elapsed() > PATIENCE {
            let missing = format!("{} of {count} after {PATIENCE:?}", found.len());
            return Err(step(what)(io::Error::other(missing)));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn read(path: &Path) -> Result<String, InitError> {
    let text = fs::read_to_string(path).map_err(step(path.display().to_string()))?;
    Ok(text.trim().to_owned())
}

fn write(path: &Path, value: &str) -> Result<(), InitError> {
    fs::write(path, value).map_err(step(format!("`{value}` into {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bus_of_a_host_bridge_is_the_first_in_its_devices_path() {
        let device = "/sys/devices/pci0000:0c/0000:0c:00.0/0000:0d:00.0/mem0";
        assert_eq!(bus_of(device), Some(12));
        assert_eq!(bus_of("/sys/devices/platform/cxl_mem.0/mem0"), None);
    }
}
