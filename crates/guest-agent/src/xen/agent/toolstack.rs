//! Starts the toolstack in our own first domain, or finds that of an existing one.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, mount};

use super::{AgentError, tool_output, tool_path, xl};
use crate::xen::event::XenEvent;
use crate::xen::plan::XenPlan;
use crate::xen::xenstore::SOCKET;

const DIRECTORIES: [&str; 7] = [
    "/run/xen",
    "/run/xenstored",
    "/run/lock",
    "/run/numalab",
    "/var/lib/xen",
    "/var/lib/xenstored",
    "/var/log/xen/console",
];
/// Words in the lines of the hypervisor's log that concern NUMA.
const LOGGED: [&str; 6] = ["SRAT: Node", "NUMA", "Faking", "Command line:", "SLIT", "nr_sockets"];
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The pause between checks that domains are alive.
pub(super) const PAUSE: Duration = Duration::from_secs(2);

/// Sets up a toolstack in a bare first domain (Xen `tools/hotplug/Linux/init.d/xencommons`).
pub(super) fn start(plan: &XenPlan) -> Result<(), AgentError> {
    for directory in DIRECTORIES {
        fs::create_dir_all(directory).map_err(step(directory))?;
    }
    for (link, target) in [("/var/run", "/run"), ("/var/lock", "/run/lock")] {
        if !Path::new(link).exists() {
            symlink(target, link).map_err(step(link))?;
        }
    }
    let done = mount("xenfs", "/proc/xen", "xenfs", MountFlags::empty(), None);
    done.map_err(|error| step("mount /proc/xen")(error.into()))?;
    daemon(plan, "xenstored", &["--pid-file", "/run/xenstored.pid"])?;
    connect(plan)?;
    tool_output(plan, "xen-init-dom0", &[])?;
    daemon(plan, "xenconsoled", &["--log=guest", "--log-dir=/var/log/xen/console"])
}

/// Checks that this machine is a first domain, by Linux's information about its hypervisor.
pub(super) fn check_dom0(root: &Path) -> Result<(), AgentError> {
    let capabilities = root.join("proc/xen/capabilities");
    let found = match fs::read_to_string(&capabilities) {
        Ok(text) if text.contains("control_d") => return Ok(()),
        Ok(_) => "it is a Xen domain, but not dom0 (no control_d in /proc/xen/capabilities)",
        Err(_) if root.join("sys/hypervisor/type").exists() => {
            "no /proc/xen/capabilities (is xenfs mounted?)"
        }
        Err(_) => "neither /proc/xen/capabilities nor /sys/hypervisor/type exists",
    };
    Err(AgentError::NoDom0 { found: found.to_owned() })
}

/// Connects to xenstored, as soon as it listens.
pub(super) fn connect(plan: &XenPlan) -> Result<UnixStream, AgentError> {
    let end = Instant::now() + Duration::from_secs(plan.limits.create_s);
    loop {
        match UnixStream::connect(SOCKET) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PAUSE)).map_err(step(SOCKET))?;
                return Ok(stream);
            }
            Err(error) if Instant::now() >= end => return Err(step(SOCKET)(error)),
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }
}

/// Returns the toolstack's description of the machine.
pub(super) fn describe(plan: &XenPlan, began: Instant) -> Result<XenEvent, AgentError> {
    let info = xl(plan, &["info", "-n"])?;
    let log = xl(plan, &["dmesg"])?;
    let about = |line: &&str| LOGGED.iter().any(|words| line.contains(words));
    let log = log.lines().filter(about).map(ToOwned::to_owned).collect();
    Ok(XenEvent::Toolstack { seconds: began.elapsed().as_secs_f64(), info, log })
}

/// Starts a program that daemonises itself, and waits until it has.
fn daemon(plan: &XenPlan, name: &str, arguments: &[&str]) -> Result<(), AgentError> {
    let mut command = Command::new(tool_path(name));
    command.args(arguments);
    // With pipes of ours, which the daemon keeps open, reading would never end.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(step(name))?;
    let end = Instant::now() + Duration::from_secs(plan.limits.create_s);
    loop {
        match child.try_wait().map_err(step(name))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(step(name)(io::Error::other(status.to_string()))),
            None if Instant::now() >= end => {
                return Err(step(name)(io::ErrorKind::TimedOut.into()));
            }
            None => thread::sleep(LOOK_EVERY),
        }
    }
}

fn step(name: &str) -> impl FnOnce(io::Error) -> AgentError {
    let step = name.to_owned();
    |source| AgentError::Step { step, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_domain_is_distinguished_from_other_machines() {
        let root = tempfile::tempdir().unwrap();
        let error = check_dom0(root.path()).unwrap_err().to_string();
        assert!(error.contains("not a dom0: neither"), "{error}");
        fs::create_dir_all(root.path().join("proc/xen")).unwrap();
        let capabilities = root.path().join("proc/xen/capabilities");
        fs::write(&capabilities, "").unwrap();
        let error = check_dom0(root.path()).unwrap_err().to_string();
        assert!(error.contains("not dom0 ("), "{error}");
        fs::write(&capabilities, "control_d\n").unwrap();
        check_dom0(root.path()).unwrap();
    }
}
