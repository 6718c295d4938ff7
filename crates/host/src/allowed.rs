//! The cpus and nodes that the calling process may use.

use numalab_topology::{Allowed, Cpu, CpuSet};

use crate::affinity::{AffinityError, current_affinity, set_thread_affinity};
use crate::proc::allowed;
use crate::root::Root;

/// Returns the cpus that the calling thread may run on now (`sched_getaffinity(2)`, which leaves
/// out offline cpus and those outside the cpuset) and the nodes from which its process may allocate
/// (`Mems_allowed_list` of `/proc/self/status`). The set of nodes is empty on a kernel without
/// cpusets, which does not report them.
///
/// # Errors
/// [`AffinityError::Unreadable`] if the affinity cannot be read.
pub fn allowed_now() -> Result<Allowed, AffinityError> {
    let status = Root::live().document("proc/self/status").unwrap_or_default();
    let memory_nodes = allowed(&status, "Mems").unwrap_or_default();
    Ok(Allowed { cpus: current_affinity()?, memory_nodes, ..Allowed::default() })
}

/// Returns the restrictions in the `proc/self/status` of a copied tree: the online ones of these
/// cpus in its mask, its nodes, and the `isolated` cpus outside of the mask; `None` without the file.
pub(crate) fn allowed_then(root: &Root, cpus: &[Cpu], isolated: &CpuSet) -> Option<Allowed> {
    let status = root.document("proc/self/status").ok()?;
    let mask: CpuSet = allowed(&status, "Cpus")?;
    let online: CpuSet = cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.id).collect();
    Some(Allowed {
        cpus: mask.intersection(&online),
        memory_nodes: allowed(&status, "Mems").unwrap_or_default(),
        isolated: isolated.difference(&mask).intersection(&online),
    })
}

/// Returns the `listed` cpus outside `affinity` to which a thread of this process can still be
/// pinned: a process does not inherit isolated cpus, but only a cpuset forbids them. A helper
/// thread tries each one, so that the caller's own affinity never changes.
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
