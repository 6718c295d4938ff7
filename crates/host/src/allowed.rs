//! What the calling process may use.

use numalab_topology::{Allowed, NodeSet};

use crate::affinity::{AffinityError, current_affinity};
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
    Ok(Allowed {
        cpus: current_affinity()?,
        memory_nodes: memory_nodes(&status).unwrap_or_default(),
    })
}

fn memory_nodes(status: &str) -> Option<NodeSet> {
    let list = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"))?;
    list.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_nodes_are_read_from_the_status() {
        let status = "Name:\tx\nMems_allowed:\t0000000d\nMems_allowed_list:\t0,2-3\n";
        assert_eq!(memory_nodes(status).unwrap().to_string(), "0,2,3");
        assert_eq!(memory_nodes("Name:\tx\n"), None);
    }

    #[test]
    fn this_thread_may_use_at_least_the_cpu_it_runs_on() {
        let allowed = allowed_now().unwrap();
        assert!(allowed.cpus.contains(crate::affinity::current_place().cpu));
    }
}
