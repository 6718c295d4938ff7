//! Jobs with numbers that are not ranks: each is independent, but may share its host with others.

use super::{Launcher, RANK, Task, VariableLookup, slurm};

/// Names a variable, the kind of number that it gives, its owner, and the least number that shows a job:
/// some are 0 outside of one too.
type Number = (&'static str, &'static str, &'static str, u32);

/// The number of processes of PyTorch's launchers.
const WORLD_SIZE: &str = "WORLD_SIZE";

const SLOT: Number = ("PARALLEL_JOBSLOT", "slot", "GNU parallel", 1);

/// `RANK` comes last: a launcher sets other variables as well.
const NUMBERS: [Number; 13] = [
    ("SLURM_ARRAY_TASK_ID", "task", "a job array", 0),
    ("SGE_TASK_ID", "task", "a job array", 1),
    ("PBS_ARRAY_INDEX", "task", "a job array", 0),
    // TORQUE.
    ("PBS_ARRAYID", "task", "a job array", 0),
    ("LSB_JOBINDEX", "task", "a job array", 1),
    ("JOB_COMPLETION_INDEX", "pod", "an indexed job", 0),
    ("VC_TASK_INDEX", "pod", "a job of Volcano", 0),
    ("AWS_BATCH_JOB_ARRAY_INDEX", "job", "an array of AWS Batch", 0),
    ("BATCH_TASK_INDEX", "task", "a job of Google Batch", 1),
    ("NOMAD_ALLOC_INDEX", "allocation", "a job of Nomad", 1),
    ("PARSL_WORKER_RANK", "worker", "Parsl", 0),
    ("_CONDOR_PROCNO", "process", "a cluster of HTCondor", 1),
    ("RANK", "number", "an unknown launcher", 1),
];

/// Variables of processes that others of their kind run beside, without a number: HTCondor's manual,
/// "Services for running jobs"; Ray 2.60; the Dask operator of Kubernetes. A worker that Dask itself
/// starts has no variable (2026.8).
const UNNUMBERED: [(&str, &str); 3] = [
    ("_CONDOR_SLOT", "a job of HTCondor"),
    ("RAY_RAYLET_PID", "a worker of Ray"),
    ("DASK_WORKER_NAME", "a worker of Dask"),
];

/// Returns what this process is among others that may run on the same host, for display; `None` if
/// no variable shows others.
fn job(look: VariableLookup<'_>) -> Option<String> {
    let numbered = || NUMBERS.iter().find_map(|number| described(number, look));
    let is_set = |(name, _): &&(&str, &str)| look(name).is_some();
    let unnumbered =
        || UNNUMBERED.iter().find(is_set).map(|(name, what)| format!("{what} ({name})"));
    slot(look).or_else(numbered).or_else(unnumbered).or_else(|| of_world(look))
}

/// Returns a line for a part of a job that is not a rank, or is one of a launcher within such a part;
/// empty for all others.
pub fn not_a_rank(task: Option<&Task>, look: VariableLookup<'_>) -> String {
    let of_job =
        |job: String| format!("Not a rank: {job}, bound as one process; {RANK} makes it a rank\n");
    let slot = slot(look);
    if let Some(task) = task {
        let is_alone = task.launcher() != Launcher::Local && task.size() == Some(1);
        return slot.filter(|_| is_alone).map_or_else(String::new, of_job);
    }
    match slurm::shell(look).filter(|_| slot.is_none()) {
        None => job(look).map_or_else(String::new, of_job),
        Some(part) => {
            let job = look("SLURM_JOB_ID").or_else(|| look("SLURM_JOBID")).unwrap_or_default();
            format!("Not a rank: {part} of SLURM job {job}, bound as one process\n")
        }
    }
}

/// Names the processes among which this one is without a number: a job's script, or a container that
/// kept only their number.
fn of_world(look: VariableLookup<'_>) -> Option<String> {
    let size: u32 = look(WORLD_SIZE)?.trim().parse().ok().filter(|&size| size > 1)?;
    Some(format!("one of {size} processes of an unknown launcher ({WORLD_SIZE})"))
}

/// Returns the number of this process among those that GNU parallel starts, in a job's script or in a
/// single task too, where a launcher sets the same variables for all.
fn slot(look: VariableLookup<'_>) -> Option<String> {
    described(&SLOT, look)
}

fn described((name, what, owner, least): &Number, look: VariableLookup<'_>) -> Option<String> {
    let number: u32 = look(name)?.trim().parse().ok().filter(|number| number >= least)?;
    Some(format!("{what} {number} of {owner} ({name})"))
}

#[cfg(test)]
mod tests {
    use super::super::detect;
    use super::*;

    /// Returns the description of a process with these variables, `A=1 B=2`, as one that is not a rank.
    fn described(task: Option<&Task>, variables: &str) -> String {
        not_a_rank(task, &|name| {
            let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        })
    }

    #[test]
    fn a_numbered_job_that_is_no_rank_is_named() {
        let line = |job: &str| {
            format!("Not a rank: {job}, bound as one process; NUMALAB_RANK makes it a rank\n")
        };
        for (variable, job) in [
            ("PARALLEL_JOBSLOT=2", "slot 2 of GNU parallel (PARALLEL_JOBSLOT)"),
            ("SGE_TASK_ID=3", "task 3 of a job array (SGE_TASK_ID)"),
            ("PARSL_WORKER_RANK=3", "worker 3 of Parsl (PARSL_WORKER_RANK)"),
            ("RANK=3", "number 3 of an unknown launcher (RANK)"),
            ("WORLD_SIZE=8", "one of 8 processes of an unknown launcher (WORLD_SIZE)"),
            ("VC_TASK_INDEX=2", "pod 2 of a job of Volcano (VC_TASK_INDEX)"),
            ("JOB_COMPLETION_INDEX=0", "pod 0 of an indexed job (JOB_COMPLETION_INDEX)"),
            ("PBS_ARRAYID=0", "task 0 of a job array (PBS_ARRAYID)"),
            ("RAY_RAYLET_PID=7862 RAY_JOB_ID=ffffffff", "a worker of Ray (RAY_RAYLET_PID)"),
            ("_CONDOR_SLOT=slot1_3", "a job of HTCondor (_CONDOR_SLOT)"),
        ] {
            assert_eq!(described(None, variable), line(job));
        }
        for none in ["", "WORLD_SIZE=1", "SGE_TASK_ID=undefined", "LSB_JOBINDEX=0", "RANK=gold"] {
            assert_eq!(described(None, none), "", "{none}");
        }
    }

    #[test]
    fn a_part_of_a_slurm_job_is_named_unless_it_has_a_slot_of_its_own() {
        let script = "Not a rank: the batch script of SLURM job 7, bound as one process\n";
        assert_eq!(described(None, "SLURM_JOB_ID=7 SLURM_STEP_ID=4294967291"), script);
        let slot = described(None, "SLURM_JOB_ID=7 PARALLEL_JOBSLOT=2");
        assert!(slot.starts_with("Not a rank: slot 2 of GNU parallel"), "{slot}");
    }

    #[test]
    fn a_launchers_only_rank_may_be_one_of_many_slots() {
        let rank = |size| {
            let look = |name: &str| match name {
                "SLURM_STEP_ID" | "SLURM_PROCID" | "SLURM_LOCALID" => Some("0".to_owned()),
                "SLURM_STEP_NUM_TASKS" => Some(format!("{size}")),
                _ => None,
            };
            detect(&look, None).unwrap().unwrap()
        };
        let said = |task: &Task| described(Some(task), "PARALLEL_JOBSLOT=2");
        assert!(said(&rank(1)).starts_with("Not a rank: slot 2"), "{}", said(&rank(1)));
        assert_eq!(said(&rank(2)), "");
        assert_eq!(said(&Task::of_own(0, 1)), "", "numalab's own ranks");
    }
}
