//! Control groups of this machine: a limit that is too small, a cpuset that shrinks.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use numalab_host::{
    AffinityError, Classed, ErrorClass, LimitSource, Mapping, MemoryError, MemoryLimit, Root,
    base_pages, current_affinity, pin,
};

/// Set in the process of a test within its group: the group's directory.
const GROUP: &str = "NUMALAB_TEST_GROUP";
const LIMIT_BYTES: u64 = 96 << 20;

/// A control group made for a test, removed on drop.
struct Group(PathBuf);

impl Group {
    /// Creates a group below the root of the controller's hierarchy, or returns the reason why it
    /// cannot.
    fn new(controller: &str, name: &str) -> Result<Self, String> {
        let v1 = Path::new("/sys/fs/cgroup").join(controller);
        let enabled = fs::read_to_string("/sys/fs/cgroup/cgroup.subtree_control");
        let parent = match enabled {
            _ if v1.join("cgroup.procs").exists() => v1,
            Ok(list) if list.split_whitespace().any(|word| word == controller) => {
                PathBuf::from("/sys/fs/cgroup")
            }
            _ => return Err(format!("no control groups with {controller} in /sys/fs/cgroup")),
        };
        let directory = parent.join(format!("numalab-test-{name}-{}", std::process::id()));
        fs::create_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        Ok(Self(directory))
    }

    fn set(&self, file: &str, value: &str) {
        let file = self.0.join(file);
        fs::write(&file, value).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap_or_default()
    }

    /// Runs this test again in a process within the group, and asserts that it succeeds.
    fn run(&self, test: &str) {
        let enter = "echo $$ >\"$0\" && exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", enter]).arg(self.0.join("cgroup.procs"));
        command.arg(env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
        let ran = command.env(GROUP, &self.0).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        let complaint = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success() && said.contains("1 passed"), "{said}{complaint}");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group can be removed only a moment after its last process has ended.
        let begun = Instant::now();
        while fs::remove_dir(&self.0).is_err() && begun.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn own_group() -> Option<PathBuf> {
    env::var_os(GROUP).map(PathBuf::from)
}

/// Creates a group for the test, or prints why there is none.
fn group(controller: &str, name: &str) -> Option<Group> {
    Group::new(controller, name).map_err(|why| eprintln!("NOT RUN: {why}")).ok()
}

#[test]
fn more_memory_than_the_group_has_left_is_refused_and_granted_memory_can_be_touched() {
    if let Some(directory) = own_group() {
        return within_a_memory_limit(&directory);
    }
    let Some(group) = group("memory", "limit") else { return };
    let is_v1 = group.0.join("memory.limit_in_bytes").exists();
    let (limit, events) = if is_v1 {
        ("memory.limit_in_bytes", "memory.oom_control")
    } else {
        ("memory.max", "memory.events")
    };
    group.set(limit, &LIMIT_BYTES.to_string());
    group.run("more_memory_than_the_group_has_left_is_refused_and_granted_memory_can_be_touched");
    let events = group.read(events);
    assert!(events.lines().any(|line| line == "oom_kill 0"), "{events}");
}

fn within_a_memory_limit(directory: &Path) {
    let limit = MemoryLimit::read(&Root::live()).unwrap();
    let LimitSource::ControlGroup(file) = &limit.source else {
        panic!("limited by {}", limit.source);
    };
    assert!(Path::new(file).starts_with(directory), "{file}");
    let error = limit.check(256 << 20, None).unwrap_err();
    assert!(matches!(error, MemoryError::TooLarge { .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::Lacking);
    assert_eq!(error.class().exit_code(), 3);
    let said = error.to_string();
    assert!(said.contains("256 MiB of memory needed") && said.contains(file), "{said}");
    // The largest size that is granted, in steps of a huge page.
    let sizes = (1..LIMIT_BYTES >> 21).rev().map(|count| count << 21);
    let granted = sizes.into_iter().find(|size| limit.check(*size, None).is_ok()).unwrap();
    assert!(granted > LIMIT_BYTES / 2, "{granted}");
    let mut mapping = Mapping::new(usize::try_from(granted).unwrap(), base_pages()).unwrap();
    mapping.as_bytes_mut().iter_mut().step_by(4096).for_each(|byte| *byte = 1);
}

#[test]
fn a_cpu_that_the_cpuset_loses_while_a_thread_is_pinned_to_it_is_found_out_and_named() {
    if let Some(directory) = own_group() {
        return within_a_cpuset_that_shrinks(&directory);
    }
    let cpus = current_affinity().unwrap();
    let Some(group) = group("cpuset", "shrinks") else { return };
    if cpus.len() < 2 {
        eprintln!("NOT RUN: a cpuset of one cpu cannot shrink");
        return;
    }
    group.set("cpuset.cpus", &cpus.to_string());
    let mems = fs::read_to_string("/sys/devices/system/node/online");
    group.set("cpuset.mems", mems.as_deref().unwrap_or("0").trim());
    group.run("a_cpu_that_the_cpuset_loses_while_a_thread_is_pinned_to_it_is_found_out_and_named");
}

fn within_a_cpuset_that_shrinks(directory: &Path) {
    let before = current_affinity().unwrap();
    let (kept, lost) = (before.first().unwrap(), before.iter().next_back().unwrap());
    let pinned = pin(lost).unwrap();
    pinned.verify().unwrap();
    fs::write(directory.join("cpuset.cpus"), kept.to_string()).unwrap();
    let error = pinned.verify().unwrap_err();
    let AffinityError::NotApplied { cpu, affinity, .. } = &error else { panic!("{error}") };
    assert_eq!(*cpu, lost);
    assert!(!affinity.contains(lost), "{error}");
    drop(pinned);
    let error = pin(lost).unwrap_err();
    let said = error.to_string();
    assert!(said.contains(&format!("cpu {lost} is offline, absent or outside")), "{said}");
    assert!(said.ends_with(&format!("expected one of cpus {kept}")), "{said}");
    pin(kept).unwrap().verify().unwrap();
}
