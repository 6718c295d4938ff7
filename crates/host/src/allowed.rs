//! What the calling process may use.

use numalab_topology::{Allowed, CpuSet};

use crate::affinity::{AffinityError, current_affinity, set_thread_affinity};
use crate::proc::field;
use crate::root::Root;

/// The cpus that the calling thread may run on now, by `sched_getaffinity(2)`, which
/// heeds cpusets and offline cpus, and the nodes that its process may take memory
/// from, by `Mems_allowed_list` of `/proc/self/status`, where a kernel with cpusets
/// has it. No nodes means that the kernel does not tell.
///
/// # Errors
/// [`AffinityError::Unreadable`] if the affinity cannot be read.
pub fn allowed_now() -> Result<Allowed, AffinityError> {
    let status = Root::live().document("proc/self/status").unwrap_or_default();
    let memory_nodes = field(&status, "Mems_allowed_list").and_then(|list| list.parse().ok());
    let memory_nodes = memory_nodes.unwrap_or_default();
    Ok(Allowed { cpus: current_affinity()?, memory_nodes, ..Allowed::default() })
}

/// Those of the `listed` cpus outside `affinity` that a thread of this process may run on if it
/// asks. A process does not inherit isolated cpus, but only a cpuset forbids them: a thread of its
/// own asks the kernel, and ends.
pub(crate) fn isolated_now(listed: &CpuSet, affinity: &CpuSet) -> CpuSet {
    let asked = listed.difference(affinity);
    if asked.is_empty() {
        return asked;
    }
    let given = std::thread::spawn(move || {
        set_thread_affinity(0, &asked).ok()?;
        current_affinity().ok()
    });
    given.join().ok().flatten().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_may_use_at_least_the_cpu_it_runs_on() {
        let allowed = allowed_now().unwrap();
        assert!(allowed.cpus.contains(crate::affinity::current_place().cpu));
    }

    #[test]
    fn cpus_outside_the_affinity_may_be_asked_for_where_the_kernel_gives_them() {
        let all = current_affinity().unwrap();
        let first = CpuSet::from_iter(all.first());
        let mut listed = all.clone();
        listed.extend("65000-65001".parse::<CpuSet>().unwrap().iter());
        assert_eq!(isolated_now(&listed, &first), all.difference(&first));
        assert_eq!(isolated_now(&first, &all), CpuSet::new());
        assert_eq!(current_affinity().unwrap(), all, "this thread's own is as it was");
    }
}
