//! Jobs with numbers that are not ranks: each is independent, but may share its host with others.

use super::VariableLookup;

/// Names a variable, the kind of number that it gives, and its owner.
type Number = (&'static str, &'static str, &'static str);

/// The number of processes of PyTorch's launchers.
const WORLD_SIZE: &str = "WORLD_SIZE";

const SLOT: Number = ("PARALLEL_JOBSLOT", "slot", "GNU parallel");

/// `RANK` comes last: a launcher sets other variables as well.
const NUMBERS: [Number; 11] = [
    ("SLURM_ARRAY_TASK_ID", "task", "a job array"),
    ("SGE_TASK_ID", "task", "a job array"),
    ("PBS_ARRAY_INDEX", "task", "a job array"),
    ("LSB_JOBINDEX", "task", "a job array"),
    ("JOB_COMPLETION_INDEX", "pod", "an indexed job"),
    ("VC_TASK_INDEX", "pod", "a job of Volcano"),
    ("AWS_BATCH_JOB_ARRAY_INDEX", "job", "an array of AWS Batch"),
    ("BATCH_TASK_INDEX", "task", "a job of Google Batch"),
    ("NOMAD_ALLOC_INDEX", "allocation", "a job of Nomad"),
    ("_CONDOR_PROCNO", "process", "a cluster of HTCondor"),
    ("RANK", "number", "an unknown launcher"),
];

/// Returns the number of this process among others that may run on the same host, for display;
/// `None` without one, and for the number 0, which LSF also sets outside of arrays.
pub fn numbered_job(look: VariableLookup<'_>) -> Option<String> {
    let numbered = || NUMBERS.iter().find_map(|number| described(number, look));
    slot(look).or_else(numbered).or_else(|| of_world(look))
}

/// Names the processes among which this one is without a number: a job's script, or a container that
/// kept only their number.
fn of_world(look: VariableLookup<'_>) -> Option<String> {
    let size: u32 = look(WORLD_SIZE)?.trim().parse().ok().filter(|&size| size > 1)?;
    Some(format!("one of {size} processes of an unknown launcher ({WORLD_SIZE})"))
}

/// Returns the number of this process among those that GNU parallel starts, in a job's script or in a
/// single task too, where a launcher sets the same variables for all.
pub fn slot(look: VariableLookup<'_>) -> Option<String> {
    described(&SLOT, look)
}

fn described((name, what, owner): &Number, look: VariableLookup<'_>) -> Option<String> {
    let number: u32 = look(name)?.trim().parse().ok().filter(|&number| number > 0)?;
    Some(format!("{what} {number} of {owner} ({name})"))
}
