//! Limits of cpu time (Linux `Documentation/admin-guide/cgroup-v2.rst`, `Documentation/scheduler`:
//! `sched-bwc.rst`): `docker --cpus`, `limits.cpu` of Kubernetes, `CPUQuota=` of systemd.

use super::{V1, V2, directories, group_directory, path_v1, path_v2};
use crate::root::Root;

/// The cpu time that a control group may use.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuQuota {
    /// The time, in cpus: 0.5 is half of one cpu's.
    pub cpus: f64,
    /// The file that holds the limit.
    pub file: String,
}

impl CpuQuota {
    /// Returns true if it is less than the full time of this number of cpus.
    #[expect(clippy::cast_precision_loss, reason = "there are few cpus")]
    pub fn limits(&self, cpus: usize) -> bool {
        self.cpus < cpus as f64
    }
}

/// Returns the tightest limit of cpu time of this process's control group and the groups above it.
/// The kernel stops the threads of a group that has used up its time until the next period, usually
/// of 100 ms.
pub fn cpu_quota(root: &Root) -> Option<CpuQuota> {
    let mounts = root.document("proc/self/mountinfo").ok()?;
    let groups = root.document("proc/self/cgroup").ok()?;
    let controller = "cpu";
    let v1 = group_directory(&mounts, V1.file_system, controller, path_v1(&groups, controller));
    let v2 = group_directory(&mounts, V2.file_system, controller, path_v2(&groups));
    let of_v1 = v1.iter().flat_map(directories).filter_map(|directory| {
        let period = root.value(&format!("{directory}/cpu.cfs_period_us")).ok()?;
        let file = format!("{directory}/cpu.cfs_quota_us");
        quota(&root.value(&file).ok()?, &period, &file)
    });
    let of_v2 = v2.iter().flat_map(directories).filter_map(|directory| {
        let file = format!("{directory}/cpu.max");
        let text = root.value(&file).ok()?;
        let (time, period) = text.split_once(' ')?;
        quota(time, period, &file)
    });
    of_v1.chain(of_v2).min_by(|a, b| a.cpus.total_cmp(&b.cpus))
}

/// Returns the limit; `None` for `max`, and for -1 in version 1, which are no limits.
fn quota(time: &str, period: &str, file: &str) -> Option<CpuQuota> {
    let time: f64 = time.parse().ok().filter(|&time| time > 0.0)?;
    let period: f64 = period.parse().ok().filter(|&period| period > 0.0)?;
    Some(CpuQuota { cpus: time / period, file: format!("/{file}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    fn found(group: &str, mounts: &str, files: &[(&str, &str)]) -> Option<CpuQuota> {
        let known = [("proc/self/cgroup", group), ("proc/self/mountinfo", mounts)];
        cpu_quota(&Root::at(tree(&[&known, files].concat()).path()))
    }

    #[test]
    fn the_tightest_quota_of_cpu_time_above_a_group_holds() {
        let mounts = "30 1 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let file = |directory: &str| format!("sys/fs/cgroup/{directory}cpu.max");
        let [pod, container] = [file("pod/"), file("pod/box/")];
        let of = |pod_text, text| {
            found("0::/pod/box\n", mounts, &[(pod.as_str(), pod_text), (&container, text)])
        };
        let quota = of("250000 100000\n", "max 100000\n").unwrap();
        assert!(quota.limits(3) && !quota.limits(2));
        assert_eq!((quota.cpus, quota.file), (2.5, format!("/{pod}")));
        assert_eq!(of("250000 100000\n", "50000 100000\n").unwrap().file, format!("/{container}"));
        assert_eq!(of("max 100000\n", "max 100000\n"), None);
    }

    #[test]
    fn quotas_of_version_1_are_in_two_files() {
        let mounts = "31 2 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
        let [time, period] =
            ["quota", "period"].map(|of| format!("sys/fs/cgroup/cpu/x/cpu.cfs_{of}_us"));
        let of = |text| {
            found("4:cpu,cpuacct:/x\n", mounts, &[(time.as_str(), text), (&period, "50000\n")])
        };
        assert_eq!(of("25000\n").unwrap(), CpuQuota { cpus: 0.5, file: format!("/{time}") });
        assert_eq!(of("-1\n"), None);
    }
}
