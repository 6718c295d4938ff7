//! The variables of `srun` (srun(1), "OUTPUT ENVIRONMENT VARIABLES").

use super::{IdentityError, Launcher, Task, VariableLookup, number};

/// The first of the step ids without ranks (`slurm.h`): pending -3, extern -4, batch -5 and
/// interactive -6, all as unsigned 32-bit numbers.
const FIRST_SPECIAL_STEP: u32 = 0xffff_fff0;

/// Returns the rank of a step that `srun` started. The shell of a batch script, of `salloc` or of
/// an adopted login belongs to a step too, but is not a rank; it has number 0. If a container or a
/// wrapper has removed the step's number, any number other than 0 is a rank's.
pub(super) fn task(look: VariableLookup<'_>) -> Result<Option<Task>, IdentityError> {
    let launcher = Launcher::Slurm;
    let step = look("SLURM_STEP_ID").or_else(|| look("SLURM_STEPID"));
    let is_of_ranks = |step: &str| step.parse().is_ok_and(|step: u32| step < FIRST_SPECIAL_STEP);
    if step.as_ref().is_some_and(|step| !is_of_ranks(step.trim())) {
        return Ok(None);
    }
    let Some((_, rank)) = number(look, launcher, "SLURM_PROCID")? else { return Ok(None) };
    if step.is_none() && rank == 0 {
        return Ok(None);
    }
    // The last name is the one before SLURM 2.2.
    let names = ["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"];
    let named = names.into_iter().find(|name| look(name).is_some());
    let size = named.map_or(Ok(None), |name| number(look, launcher, name))?;
    // In a heterogeneous job ranks count through all components, sizes and hosts need not.
    let is_of_parts = ["SLURM_HET_SIZE", "SLURM_PACK_SIZE"].iter().any(|name| look(name).is_some());
    let size = size.filter(|&(_, size)| !is_of_parts || rank < size);
    let local_rank = number(look, launcher, "SLURM_LOCALID")?;
    let node = number(look, launcher, "SLURM_NODEID")?;
    let name = ["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"];
    let per_node = name.into_iter().find_map(|name| Some((name, look(name)?)));
    let local_size = node
        .zip(per_node)
        .filter(|_| !is_of_parts)
        .and_then(|((_, node), (name, text))| Some((name, tasks_on_node(&text, node)?)));
    Ok(Some(Task {
        launcher,
        rank: ("SLURM_PROCID", rank),
        size,
        local_rank,
        local_size,
        outer: None,
    }))
}

/// Returns the part of a SLURM job that a process without a rank is, for display; `None` outside of
/// jobs.
pub fn shell(look: VariableLookup<'_>) -> Option<&'static str> {
    let step = look("SLURM_STEP_ID").or_else(|| look("SLURM_STEPID"));
    let id = step.and_then(|step| step.trim().parse::<u32>().ok());
    look("SLURM_JOB_ID").or_else(|| look("SLURM_JOBID"))?;
    Some(match id.map(u32::cast_signed) {
        Some(-4) => "the extern step, for adopted logins",
        Some(-5) => "the batch script",
        Some(-6) => "the interactive shell",
        None if look("SLURM_PROCID").is_some() => "the batch script",
        _ => "a shell",
    })
}

/// Returns the tasks on the node with this number, from `2(x3),1`: two on each of three nodes, one
/// on the fourth.
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

/// Returns the cpus of a `map_cpu` binding of this step, by local rank; `None` without such a
/// binding. SLURM starts over if there are more ranks than cpus.
pub fn map_cpu_list(look: VariableLookup<'_>) -> Option<Vec<u32>> {
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
