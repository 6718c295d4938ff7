//! Memory limits of the control groups that this process is in.

mod cpu_quota;
mod huge_pages;

pub use cpu_quota::{CpuQuota, cpu_quota};
pub(crate) use huge_pages::{Charge, HugePageLimit, huge_page_limit};

use crate::root::Root;

/// The memory that a control group can still allocate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupLimit {
    /// Bytes that are left: the limit less the memory that is used and cannot be reclaimed.
    pub(crate) left_bytes: u64,
    /// The file that holds the limit.
    pub(crate) file: String,
}

/// File names of one version of the memory controller (Linux `Documentation/admin-guide`:
/// `cgroup-v2.rst`, `cgroup-v1/memory.rst`).
struct Version {
    file_system: &'static str,
    /// Each file limits the memory; the first one always exists.
    limits: &'static [&'static str],
    used: &'static str,
    inactive_files: &'static str,
}

const MEMORY: &str = "memory";

const V1: Version = Version {
    file_system: "cgroup",
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    inactive_files: "total_inactive_file",
};
const V2: Version = Version {
    file_system: "cgroup2",
    // Above `memory.high` the kernel slows the group down so much that it hardly progresses.
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    inactive_files: "inactive_file",
};

/// Returns the tightest memory limit of this process's control group and the groups above it.
pub(crate) fn tightest(root: &Root) -> Option<GroupLimit> {
    let mounts = root.document("proc/self/mountinfo").ok()?;
    let groups = root.document("proc/self/cgroup").ok()?;
    let v1 = group_directory(&mounts, V1.file_system, MEMORY, path_v1(&groups, MEMORY));
    let v2 = group_directory(&mounts, V2.file_system, MEMORY, path_v2(&groups));
    // A machine can have both versions mounted, each with some of the controllers.
    let limits = v1
        .iter()
        .flat_map(|place| limits(root, place, &V1))
        .chain(v2.iter().flat_map(|place| limits(root, place, &V2)));
    limits.min_by_key(|limit| limit.left_bytes)
}

/// Returns the memory limit's file of the group that this process is in.
pub fn memory_limit_file(root: &Root) -> Option<String> {
    let mounts = root.document("proc/self/mountinfo").ok()?;
    let groups = root.document("proc/self/cgroup").ok()?;
    let v1 = group_directory(&mounts, V1.file_system, MEMORY, path_v1(&groups, MEMORY))
        .map(|place| (place, &V1));
    let v2 = group_directory(&mounts, V2.file_system, MEMORY, path_v2(&groups))
        .map(|place| (place, &V2));
    let file = |(place, version): (GroupPlace, &Version)| {
        let directory = format!("{}/{}", place.mount, place.group);
        format!("{}/{}", directory.trim_end_matches('/'), version.limits[0])
    };
    // The root group of version 2 has no limit.
    v1.into_iter().chain(v2).map(file).find(|file| root.path(file).exists())
}

/// Returns the path of a file of this process's group, such as `pids.max`, if the group has it.
pub fn group_file(root: &Root, name: &str) -> Option<String> {
    let mounts = root.document("proc/self/mountinfo").ok()?;
    let groups = root.document("proc/self/cgroup").ok()?;
    let controller = name.split('.').next().unwrap_or(name);
    let v1 = group_directory(&mounts, V1.file_system, controller, path_v1(&groups, controller));
    let v2 = group_directory(&mounts, V2.file_system, MEMORY, path_v2(&groups));
    let file = |place: GroupPlace| {
        let directory = format!("{}/{}", place.mount, place.group);
        format!("{}/{name}", directory.trim_end_matches('/'))
    };
    v1.into_iter().chain(v2).map(file).find(|file| root.path(file).exists())
}

/// Returns the path of the group in the hierarchy of a v1 controller, from `4:memory:/group`.
fn path_v1<'g>(groups: &'g str, controller: &str) -> Option<&'g str> {
    groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    })
}

/// Returns the path of the group in the v2 hierarchy, from `0::/group`.
fn path_v2(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::"))
}

/// The mount point of a hierarchy, and the group's path below it without a leading `/`.
struct GroupPlace {
    mount: String,
    group: String,
}

/// Finds the mount of the hierarchy (`proc_pid_mountinfo(5)`). A container sees its part of the
/// hierarchy as the mount's root, so that root is removed from the group's path.
fn group_directory(
    mounts: &str,
    wanted: &str,
    controller: &str,
    path: Option<&str>,
) -> Option<GroupPlace> {
    let path = path?;
    mounts.lines().find_map(|line| {
        let (head, tail) = line.split_once(" - ")?;
        let mut tail = tail.split(' ');
        let file_system = tail.next()?;
        let options = tail.nth(1)?;
        let has_controller =
            wanted == V2.file_system || options.split(',').any(|option| option == controller);
        if file_system != wanted || !has_controller {
            return None;
        }
        // After id, parent and device (proc_pid_mountinfo(5)).
        let mut head = head.split(' ').skip(3);
        let (mount_root, mount) = (head.next()?, head.next()?);
        // In a container the mount may show only a part of the hierarchy.
        let group = path.strip_prefix(mount_root).unwrap_or(path);
        Some(GroupPlace {
            mount: mount.trim_matches('/').to_owned(),
            group: group.trim_matches('/').to_owned(),
        })
    })
}

/// Returns the directories of a group and of all groups above it.
fn directories(place: &GroupPlace) -> Vec<String> {
    let mut directories = Vec::new();
    // A group is also limited by each of its ancestors.
    let mut group = place.group.as_str();
    loop {
        let directory = format!("{}/{group}", place.mount);
        directories.push(directory.trim_end_matches('/').to_owned());
        if group.is_empty() {
            return directories;
        }
        group = group.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
}

/// Returns the limits of a group and of all groups above it.
fn limits(root: &Root, place: &GroupPlace, version: &Version) -> Vec<GroupLimit> {
    let directories = directories(place);
    let files =
        directories.iter().flat_map(|of| version.limits.iter().map(move |name| (of, *name)));
    files.filter_map(|(directory, name)| limit(root, directory, name, version)).collect()
}

fn limit(root: &Root, directory: &str, name: &str, version: &Version) -> Option<GroupLimit> {
    let file = format!("{directory}/{name}");
    // `max` does not parse, and v1 writes a number larger than any memory: neither is a limit.
    let limit_bytes: u64 = root.value(&file).ok()?.parse().ok()?;
    if limit_bytes >= 1 << 62 {
        return None;
    }
    let used = root.value(&format!("{directory}/{}", version.used)).ok()?;
    let stat = root.document(&format!("{directory}/memory.stat")).unwrap_or_default();
    let reclaimable_bytes: u64 = stat
        .lines()
        .find_map(|line| line.strip_prefix(version.inactive_files)?.trim().parse().ok())
        .unwrap_or(0);
    // The kernel reclaims inactive file pages before it kills a process of the group.
    let kept_bytes = used.parse::<u64>().ok()?.saturating_sub(reclaimable_bytes);
    Some(GroupLimit {
        left_bytes: limit_bytes.saturating_sub(kept_bytes),
        file: format!("/{file}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::write;

    #[test]
    fn the_tightest_limit_above_a_v2_group_holds() {
        let top = tempfile::tempdir().unwrap();
        write(&top, "proc/self/cgroup", "0::/slice/job/step\n");
        write(
            &top,
            "proc/self/mountinfo",
            "30 1 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        let slice = "sys/fs/cgroup/slice";
        write(&top, &format!("{slice}/job/step/memory.max"), "max\n");
        write(&top, &format!("{slice}/job/memory.max"), "1000000\n");
        write(&top, &format!("{slice}/job/memory.current"), "300000\n");
        write(&top, &format!("{slice}/job/memory.stat"), "anon 5\ninactive_file 100000\n");
        write(&top, &format!("{slice}/memory.max"), "900000000\n");
        write(&top, &format!("{slice}/memory.current"), "0\n");
        let limit = tightest(&Root::at(top.path())).unwrap();
        assert_eq!(limit.left_bytes, 800_000);
        assert_eq!(limit.file, "/sys/fs/cgroup/slice/job/memory.max");
        write(&top, &format!("{slice}/memory.high"), "700000\n");
        let limit = tightest(&Root::at(top.path())).unwrap();
        assert_eq!(limit.file, "/sys/fs/cgroup/slice/memory.high");
    }

    #[test]
    fn a_v1_group_within_a_container_is_found_below_its_mount() {
        let top = tempfile::tempdir().unwrap();
        write(&top, "proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n");
        write(
            &top,
            "proc/self/mountinfo",
            "31 2 0:30 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
             35 2 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
        );
        let memory = "sys/fs/cgroup/memory";
        write(&top, &format!("{memory}/memory.limit_in_bytes"), "5000\n");
        write(&top, &format!("{memory}/memory.usage_in_bytes"), "6000\n");
        let limit = tightest(&Root::at(top.path())).unwrap();
        assert_eq!(limit.left_bytes, 0);
    }

    #[test]
    fn a_v1_group_without_limit_does_not_limit() {
        let top = tempfile::tempdir().unwrap();
        write(&top, "proc/self/cgroup", "4:memory:/\n");
        write(
            &top,
            "proc/self/mountinfo",
            "35 2 0:32 / /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
        );
        let limit = "sys/fs/cgroup/memory/memory.limit_in_bytes";
        write(&top, limit, "9223372036854771712\n");
        assert_eq!(tightest(&Root::at(top.path())), None);
    }
}
