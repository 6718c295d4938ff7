//! Limits of reserved huge pages (Linux `Documentation/admin-guide`: `cgroup-v2.rst`,
//! `cgroup-v1/hugetlb.rst`).

use super::{V1, V2, directories, group_directory, path_v1, path_v2};
use crate::root::Root;

/// The moment at which a group is charged for huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// On the first touch: a process that exceeds the limit gets SIGBUS.
    Touched,
    /// On mapping, touched or not.
    Mapped,
}

/// The huge pages of one size that a control group can still use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HugePageLimit {
    /// The file that holds the limit.
    pub(crate) file: String,
    pub(crate) limit_bytes: u64,
    /// Bytes below the limit that are left.
    pub(crate) left_bytes: u64,
    /// The text to write to the file to remove the limit.
    pub(crate) no_limit: &'static str,
}

/// Returns the tightest limit of this process's control groups on huge pages of a size.
pub(crate) fn huge_page_limit(
    root: &Root,
    page_bytes: u64,
    charge: Charge,
) -> Option<HugePageLimit> {
    let mounts = root.document("proc/self/mountinfo").ok()?;
    let groups = root.document("proc/self/cgroup").ok()?;
    let controller = "hugetlb";
    let size = size_name(page_bytes);
    // Linux 5.7 added the limits on mapped pages (`rsvd`). Where a file is missing there is no
    // limit.
    let reserved = match charge {
        Charge::Touched => "",
        Charge::Mapped => "rsvd.",
    };
    let versions = [
        (V1.file_system, path_v1(&groups, controller), ["limit_in_bytes", "usage_in_bytes"], "-1"),
        (V2.file_system, path_v2(&groups), ["max", "current"], "max"),
    ];
    let mut limits = Vec::new();
    for (file_system, path, names, no_limit) in versions {
        let place = group_directory(&mounts, file_system, controller, path);
        for directory in place.iter().flat_map(directories) {
            let [file, used] =
                names.map(|name| format!("{directory}/{controller}.{size}.{reserved}{name}"));
            let number = |file: &str| root.value(file).ok()?.parse::<u64>().ok();
            // `max` does not parse, and v1 writes a number larger than any memory: neither is a
            // limit.
            let Some(limit_bytes) = number(&file).filter(|&limit| limit < 1 << 62) else {
                continue;
            };
            let left_bytes = limit_bytes.saturating_sub(number(&used).unwrap_or(0));
            limits.push(HugePageLimit {
                file: format!("/{file}"),
                limit_bytes,
                left_bytes,
                no_limit,
            });
        }
    }
    limits.into_iter().min_by_key(|limit| limit.left_bytes)
}

/// Returns the size of a page as it appears in the names of these files: `2MB`.
fn size_name(page_bytes: u64) -> String {
    match page_bytes {
        0x4000_0000.. => format!("{}GB", page_bytes >> 30),
        0x10_0000.. => format!("{}MB", page_bytes >> 20),
        _ => format!("{}KB", page_bytes >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    #[test]
    fn the_tightest_limit_above_the_group_holds_for_its_own_size_only() {
        let top = tree(&[
            ("proc/self/cgroup", "0::/pod/app\n"),
            ("proc/self/mountinfo", "30 1 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/pod/app/hugetlb.2MB.max", "max\n"),
            ("sys/fs/cgroup/pod/app/hugetlb.2MB.rsvd.max", "4194304\n"),
            ("sys/fs/cgroup/pod/hugetlb.2MB.max", "20971520\n"),
            ("sys/fs/cgroup/pod/hugetlb.2MB.current", "2097152\n"),
        ]);
        let root = Root::at(top.path());
        let limit = huge_page_limit(&root, 2 << 20, Charge::Touched).unwrap();
        assert_eq!(limit.file, "/sys/fs/cgroup/pod/hugetlb.2MB.max");
        assert_eq!((limit.limit_bytes, limit.left_bytes), (20 << 20, 18 << 20));
        let mapped = huge_page_limit(&root, 2 << 20, Charge::Mapped).unwrap();
        assert_eq!(mapped.file, "/sys/fs/cgroup/pod/app/hugetlb.2MB.rsvd.max");
        assert_eq!(huge_page_limit(&root, 1 << 30, Charge::Touched), None);
    }

    #[test]
    fn a_cgroup_v1_limit_is_found_through_its_controller() {
        let top = tree(&[
            ("proc/self/cgroup", "5:memory:/m\n4:hugetlb:/job\n0::/\n"),
            (
                "proc/self/mountinfo",
                "34 2 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                 35 2 0:32 / /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb\n",
            ),
            ("sys/fs/cgroup/hugetlb/job/hugetlb.1GB.limit_in_bytes", "0\n"),
            ("sys/fs/cgroup/hugetlb/hugetlb.1GB.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let limit = huge_page_limit(&Root::at(top.path()), 1 << 30, Charge::Touched).unwrap();
        assert_eq!(limit.file, "/sys/fs/cgroup/hugetlb/job/hugetlb.1GB.limit_in_bytes");
        assert_eq!((limit.left_bytes, limit.no_limit), (0, "-1"));
    }

    #[test]
    fn sizes_are_named_as_the_kernel_does() {
        let names = [64 << 10, 16 << 20, 512 << 20, 16 << 30].map(size_name);
        assert_eq!(names, ["64KB", "16MB", "512MB", "16GB"]);
    }
}
