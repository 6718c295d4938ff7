//! Finds and opens the result channel.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::InitError;
use crate::protocol::PORT_NAME;

const PORTS: &str = "/sys/class/virtio-ports";
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Opens the port; the kernel creates it some time after the driver is loaded.
pub(super) fn open(patience: Duration) -> Result<File, InitError> {
    let end = Instant::now() + patience;
    loop {
        if let Some(device) = find(Path::new(PORTS)) {
            let opened = OpenOptions::new().read(true).write(true).open(device);
            if let Ok(port) = opened {
                return Ok(port);
            }
        }
        if Instant::now() >= end {
            return Err(InitError::NoPort(PORT_NAME));
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Returns the device file of the port with our name.
fn find(ports: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(ports).ok()?.filter_map(Result::ok);
    let ours = |entry: &fs::DirEntry| {
        let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
        name.trim() == PORT_NAME
    };
    let mut entries = entries.into_iter();
    let entry = entries.find(ours)?;
    Some(Path::new("/dev").join(entry.file_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_found_by_its_name_among_others() {
        let ports = tempfile::tempdir().unwrap();
        for (port, name) in [("vport0p1", "other"), ("vport0p2", PORT_NAME)] {
            let directory = ports.path().join(port);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("name"), format!("{name}\n")).unwrap();
        }
        assert_eq!(find(ports.path()), Some(PathBuf::from("/dev/vport0p2")));
        assert_eq!(find(Path::new("/no/such/place")), None);
    }
}
