//! The innermost of the launchers that have variables here.

use super::launchers::{
    AFTER_SLURM, BEFORE_SLURM, FLUX, JSRUN, OWN, PBSDSH, PMIX, PYTORCH, TORCHRUN, Variables,
};
use super::{IdentityError, Launcher, Task, VariableLookup, number, slurm, starters};

/// Returns the variables of the innermost launcher; `None` if no launcher set any, or if it is
/// SLURM. Of launchers whose processes have known names, the `nearest` one is the innermost.
pub(super) fn innermost(look: VariableLookup<'_>, nearest: Option<Launcher>) -> Option<Variables> {
    let usual = usual(look)?;
    let nearest = nearest.filter(|_| starters::are_known(usual.launcher));
    let step = slurm::task(look).ok().flatten();
    // PALS itself gives the number on the host; SLURM only repeats the rank.
    let is_repeated = usual.launcher == Launcher::Pals
        && usual.local_rank.iter().all(|name| look(name).is_none());
    if step.is_some() && (is_repeated || nearest == Some(Launcher::Slurm)) {
        return None;
    }
    let is_nearest =
        |variables: &Variables| nearest == Some(variables.launcher) && is_there(variables, look);
    Some(BEFORE_SLURM.into_iter().find(is_nearest).unwrap_or(usual))
}

/// Returns the variables of the launcher that is innermost as far as variables show: a launcher of
/// several ranks usually runs within a world of one rank, seldom the other way round.
fn usual(look: VariableLookup<'_>) -> Option<Variables> {
    let is_elastic = look("TORCHELASTIC_RUN_ID").is_some();
    // numalab starts no ranks within one of several tasks, so a launcher of several tasks ran
    // within its rank.
    let torchrun = Task::of(&TORCHRUN, look).ok().flatten().filter(|_| is_elastic);
    let mut others = outers(look).chain(torchrun);
    let is_innermost = !others
        .any(|task| task.launcher != Launcher::Local && task.size().is_some_and(|size| size > 1));
    let is_there = |variables: &Variables| is_there(variables, look);
    let mut certain = is_innermost.then_some(OWN).into_iter().chain(is_elastic.then_some(TORCHRUN));
    if let Some(found) = certain.find(is_there) {
        return Some(found);
    }
    let mut order = Vec::new();
    // jsrun sets Open MPI's variables too, so they prove an mpirun within Flux or jsrun only if they
    // are not jsrun's.
    let differs = look("OMPI_COMM_WORLD_RANK").is_some_and(|rank| look(JSRUN.rank) != Some(rank));
    if is_there(&JSRUN) && !differs {
        order.extend([FLUX, JSRUN]);
    }
    order.extend(BEFORE_SLURM);
    order.retain(is_there);
    let size = |variables: &Variables| Task::of(variables, look).ok().flatten()?.size();
    let several = order.iter().position(|variables| size(variables) != Some(1));
    order.into_iter().nth(several.unwrap_or(0))
}

/// Reports whether all signs of a launcher are present.
fn is_there(variables: &Variables, look: VariableLookup<'_>) -> bool {
    variables.signs.iter().all(|name| look(name).is_some())
}

/// Returns the ranks of all launchers that have variables here and that can run another one.
pub(super) fn outers(look: VariableLookup<'_>) -> impl Iterator<Item = Task> {
    let is_there = move |variables: &&Variables| look(variables.rank).is_some();
    let others = BEFORE_SLURM.iter().chain([&JSRUN, &OWN]).filter(is_there);
    let others = others.filter_map(move |variables| Task::of(variables, look).ok().flatten());
    others.chain(slurm::task(look).ok().flatten())
}

/// Detects a rank if no launcher identifies itself.
pub(super) fn last(look: VariableLookup<'_>) -> Result<Option<Task>, IdentityError> {
    let is_there = |variables: &&Variables| is_there(variables, look);
    if let Some(variables) = AFTER_SLURM.iter().find(is_there) {
        return Task::of(variables, look);
    }
    if let Some(task) = charm_task(look) {
        return Ok(Some(task));
    }
    let found = match pytorch(look)? {
        Some(task) => Some(task),
        None => pbs_task(look)?,
    };
    if found.is_some() {
        return Ok(found);
    }
    // A local rank alone belongs to a task with other variables that are missing here. Platform MPI's is
    // also that of Hydra, which is much more common.
    let is_common = |of: &&Variables| of.launcher != Launcher::PlatformMpi;
    let known = BEFORE_SLURM.iter().filter(is_common).chain(&AFTER_SLURM).chain([&OWN, &JSRUN]);
    for &Variables { launcher, rank, local_rank, .. } in known {
        if let Some(&present) = local_rank.iter().find(|name| look(name).is_some()) {
            return Err(IdentityError::Incomplete { present, missing: rank, launcher });
        }
    }
    let of_slurm = ["SLURM_LOCALID"].into_iter().find(|name| look(name).is_some());
    let of_slurm = of_slurm.or_else(|| several(&["SLURM_STEP_NUM_TASKS"], look));
    if let Some(present) = of_slurm.filter(|_| look("SLURM_PROCID").is_none()) {
        let (missing, launcher) = ("SLURM_PROCID", Launcher::Slurm);
        return Err(IdentityError::Incomplete { present, missing, launcher });
    }
    sizes_without_rank(look)
}

/// Refuses to take one of several tasks for the only one: a container or `sudo` may have kept the number
/// of ranks and not the rank.
fn sizes_without_rank(look: VariableLookup<'_>) -> Result<Option<Task>, IdentityError> {
    // These have names that MPICH or users take as well. Flux removes its own from the shells that it
    // starts (`broker/runat.c`).
    const SHARED: [Launcher; 3] = [Launcher::Nec, Launcher::Condor, Launcher::PlatformMpi];
    let has_own_names = |of: &&Variables| !SHARED.contains(&of.launcher);
    let known = BEFORE_SLURM.iter().chain(&AFTER_SLURM).chain([&OWN, &JSRUN]);
    for &Variables { launcher, rank, size, local_size, .. } in known.filter(has_own_names) {
        let names: Vec<&'static str> = size.into_iter().chain(local_size.iter().copied()).collect();
        if let Some(present) = several(&names, look).filter(|_| look(rank).is_none()) {
            return Err(IdentityError::Incomplete { present, missing: rank, launcher });
        }
    }
    Ok(None)
}

/// Returns the first of these variables that gives a number of several ranks.
fn several(names: &[&'static str], look: VariableLookup<'_>) -> Option<&'static str> {
    let is_several = |name: &&&'static str| {
        look(name).is_some_and(|value| value.parse::<usize>().is_ok_and(|ranks| ranks > 1))
    };
    names.iter().find(is_several).copied()
}

/// Returns the rank that variables of PyTorch describe if there is no other launcher. `RANK` alone,
/// or with a text, belongs to another tool.
fn pytorch(look: VariableLookup<'_>) -> Result<Option<Task>, IdentityError> {
    let value = |name| number(look, Launcher::Pytorch, name).ok().flatten().map(|(_, value)| value);
    match ["RANK", "WORLD_SIZE", "LOCAL_RANK"].map(value) {
        [Some(_), Some(_), _] | [Some(_), None, Some(_)] => Task::of(&PYTORCH, look),
        // Lightning's own launcher gives each process all but `RANK`.
        [None, Some(_), Some(_)] if look("RANK").is_none() => Err(without_rank()),
        [None, None, Some(1..)] => Err(without_rank()),
        _ => Ok(None),
    }
}

/// Returns the process that `charmrun` of Charm++ started: its number, host, port, process and port
/// (`machine.C`, `parse_netstart`). With `++local` all are on one host.
fn charm_task(look: VariableLookup<'_>) -> Option<Task> {
    const NAME: &str = "NETSTART";
    let text = look(NAME)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let [rank, _, _, _, _] = words.as_slice() else { return None };
    let rank = (NAME, rank.parse().ok()?);
    let local_rank = look("CmiLocal").map(|_| rank);
    let launcher = Launcher::Charmrun;
    Some(Task { launcher, rank, size: None, local_rank, local_size: None, outer: None })
}

/// Returns the task of PBS that this process is, unless it is the job's script.
fn pbs_task(look: VariableLookup<'_>) -> Result<Option<Task>, IdentityError> {
    let value = |name| number(look, PBSDSH.launcher, name).map(|value| value.map_or(0, |of| of.1));
    let is_task = value(PBSDSH.rank)? >= PBSDSH.first
        || (look(PBSDSH.rank).is_some()
            && (value("PBS_NODENUM")?, value("PBS_VNODENUM")?) != (0, 0));
    if is_task { Task::of(&PBSDSH, look) } else { Ok(None) }
}

fn without_rank() -> IdentityError {
    let Variables { launcher, rank: missing, .. } = PYTORCH;
    IdentityError::Incomplete { present: "LOCAL_RANK", missing, launcher }
}

/// Returns the rank of a launcher of PyTorch that ran in the task of another launcher. It has a
/// world of another size: job scripts and wrappers export the same or a single rank.
pub(super) fn pytorch_within(task: Task, look: VariableLookup<'_>) -> Task {
    let is_own = matches!(task.launcher, Launcher::Local | Launcher::Torchrun);
    let inner = Task::of(&PYTORCH, look).ok().flatten().filter(|_| !is_own);
    let is_of_another_world = |inner: &Task| {
        let (size, outer) = (inner.size().unwrap_or(1), task.size());
        size > 1
            && inner.rank() < size
            && inner.local_rank.is_some()
            && outer.is_some_and(|outer| outer != size)
    };
    inner.filter(is_of_another_world).unwrap_or(task)
}

/// Returns the rank of `prterun`, if the launcher of `task` started only PRRTE's daemons: these pass
/// their own number on to all ranks that they start (PRRTE, `plm/slurm`, `plm/pals`), which have
/// nothing else of their own than PMIx's rank.
pub(super) fn pmix_within(
    task: Task,
    look: VariableLookup<'_>,
    nearest: Option<Launcher>,
) -> Result<Task, IdentityError> {
    use Launcher::{Flux, Jsrun, Pals, Slurm};
    let is_of_daemon = matches!(task.launcher, Slurm | Pals | Flux | Jsrun);
    if !is_of_daemon || nearest == Some(task.launcher) || !is_there(&PMIX, look) {
        return Ok(task);
    }
    // The launcher's own PMIx repeats its rank.
    let is_of_prrte = look("PMIX_NAMESPACE").is_some_and(|name| name.starts_with("prte"));
    let inner = Task::of(&PMIX, look)?;
    Ok(inner.filter(|inner| is_of_prrte || inner.rank() != task.rank()).unwrap_or(task))
}
