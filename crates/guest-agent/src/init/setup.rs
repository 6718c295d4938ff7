//! Sets up a system on a bare kernel: file systems, modules, the loopback device.

use std::fs;
use std::process::{Command, Stdio};

use rustix::mount::{MountFlags, mount};

use super::{InitError, MODULE_LIST, step};

/// File systems of every guest: type and mount point, parents first.
const REQUIRED: [(&str, &str); 3] = [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")];
/// File systems that a kernel may lack.
const OPTIONAL: [(&str, &str); 8] = [
    ("tmpfs", "/tmp"),
    ("tmpfs", "/run"),
    ("tmpfs", "/dev/shm"),
    ("devpts", "/dev/pts"),
    ("hugetlbfs", "/dev/hugepages"),
    ("cgroup2", "/sys/fs/cgroup"),
    ("debugfs", "/sys/kernel/debug"),
    ("tracefs", "/sys/kernel/tracing"),
];

pub(super) fn mount_all() -> Result<(), InitError> {
    for (kind, place) in REQUIRED {
        attach(kind, place).map_err(step(format!("mount {place}")))?;
    }
    for (kind, place) in OPTIONAL {
        // A program of the image keeps its path; the files around it are in memory anyway.
        if kind == "tmpfs" && fs::read_dir(place).is_ok_and(|mut files| files.next().is_some()) {
            continue;
        }
        // A job that needs the file system reports its absence better than process 1 can.
        let _ = attach(kind, place);
    }
    Ok(())
}

fn attach(kind: &str, place: &str) -> std::io::Result<()> {
    fs::create_dir_all(place)?;
    Ok(mount(kind, place, kind, MountFlags::empty(), None)?)
}

pub(super) fn load_modules() -> Result<(), InitError> {
    let list = fs::read_to_string(MODULE_LIST).map_err(step(MODULE_LIST))?;
    for path in list.lines() {
        load(path).map_err(step(path))?;
    }
    Ok(())
}

fn load(path: &str) -> std::io::Result<()> {
    let module = fs::read(path)?;
    match rustix::system::init_module(&module, c"") {
        // Already loaded by the kernel itself.
        Err(rustix::io::Errno::EXIST) => Ok(()),
        other => Ok(other?),
    }
}

/// Brings up the loopback device, which servers and their clients in one guest use.
pub(super) fn loopback() {
    let mut command = Command::new("/usr/bin/busybox");
    command.args(["ip", "link", "set", "lo", "up"]);
    // Without network support there is nothing to bring up.
    let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
}
