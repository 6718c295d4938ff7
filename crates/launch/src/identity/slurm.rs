//! What `srun` says (srun(1), "OUTPUT ENVIRONMENT VARIABLES").

use super::{Identity, IdentityError, Launcher, Local, Look, number, required};

/// The rank of a step that `srun` started. A batch script is a step of its own, but no
/// rank: it has no number of tasks.
pub(super) fn identity(look: Look<'_>) -> Result<Option<Identity>, IdentityError> {
    let launcher = Launcher::Slurm;
    let Some(size) = number(look, launcher, "SLURM_STEP_NUM_TASKS")? else { return Ok(None) };
    let Some(rank) = number(look, launcher, "SLURM_PROCID")? else { return Ok(None) };
    let step = look("SLURM_STEP_ID").or_else(|| look("SLURM_STEPID"));
    if step.is_none_or(|step| step == "4294967291" || step == "batch") {
        return Ok(None);
    }
    let local_rank = required(look, launcher, "SLURM_PROCID", "SLURM_LOCALID")?;
    let node = number(look, launcher, "SLURM_NODEID")?.unwrap_or(0);
    let per_node = look("SLURM_STEP_TASKS_PER_NODE").or_else(|| look("SLURM_TASKS_PER_NODE"));
    let local_size = per_node.and_then(|text| tasks_on_node(&text, node));
    let local = local_size.map(|size| Local { rank: local_rank, size });
    Ok(Some(Identity { launcher, rank, size, local }))
}

/// The tasks on the node with this number, from `2(x3),1`: two on each of three nodes, one
/// on the fourth.
#[must_use]
pub fn tasks_on_node(text: &str, node: usize) -> Option<usize> {
    let mut left = node;
    for item in text.split(',') {
        let (tasks, times) = match item.trim().split_once("(x") {
            Some((tasks, rest)) => (tasks, rest.strip_suffix(')')?.parse::<usize>().ok()?),
            None => (item.trim(), 1),
        };
        let tasks = tasks.parse().ok()?;
        if left < times {
            return Some(tasks);
        }
        left -= times;
    }
    None
}

/// The cpus of a `map_cpu` binding of this step, in order of local rank; `None` without
/// such a binding. SLURM begins anew where there are more ranks than cpus.
#[must_use]
pub fn map_cpu_list(look: Look<'_>) -> Option<Vec<u32>> {
    let kind = look("SLURM_CPU_BIND_TYPE")?;
    if !kind.starts_with("map_cpu") {
        return None;
    }
    let list = look("SLURM_CPU_BIND_LIST")?;
    let mut cpus = Vec::new();
    for item in list.split(',').filter(|item| !item.is_empty()) {
        let (cpu, times) = item.split_once('*').unwrap_or((item, "1"));
        let times: usize = times.parse().ok()?;
        let cpu = match cpu.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => cpu.parse().ok()?,
        };
        cpus.extend(std::iter::repeat_n(cpu, times.min(65_536)));
    }
    Some(cpus)
}
