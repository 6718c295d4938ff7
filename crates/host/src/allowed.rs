//! What the calling process may use.

use numalab_topology::Allowed;

use crate::affinity::{AffinityError, current_affinity};
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
    Ok(Allowed { cpus: current_affinity()?, memory_nodes: memory_nodes.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_may_use_at_least_the_cpu_it_runs_on() {
        let allowed = allowed_now().unwrap();
        assert!(allowed.cpus.contains(crate::affinity::current_place().cpu));
    }
}
